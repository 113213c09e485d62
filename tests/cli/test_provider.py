"""`clusterwright provider` against a plane: a release and a program of a provider, as files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.conftest import Run, run_in, running
from providers.conftest import NAME, deployment, objects, script

PROGRAM = """
if '--help' in sys.argv:
    sys.exit('Usage of acme:\\n  -webhook-port int\\n')
print('started with', *sys.argv[1:], flush=True)
if os.environ.get('BROKEN'):
    sys.exit('no credentials for the cloud')
while True: time.sleep(3600)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running(tmp_path_factory.mktemp("plane")) as place:
        script(place, PROGRAM, "acme")
        release = [obj for obj in objects() if obj["kind"] not in {"Deployment", "ValidatingWebhookConfiguration"}]
        (place / "release.yaml").write_text(yaml.safe_dump_all([*release, deployment({"args": ["--zone=${ZONE}", "--v=${V:=2}"]})]))
        other = deployment({"args": ["--zone=${ZONE}"]}, serviceAccountName="other")
        (place / "other.yaml").write_text(yaml.safe_dump_all([*release, other]))
        yield place


@pytest.fixture
def run(folder: Path) -> Run:
    return run_in(folder)


def test_a_provider_is_added_listed_read_and_removed(run: Run) -> None:
    added = run("provider", "add", "release.yaml", "--binary", "./acme", "--set", "ZONE=b12", "--arg=--more")
    assert added.returncode == 0, added.stderr
    assert f"provider {NAME} runs" in added.stdout
    assert "left out: Service webhooks: the API server calls the process on loopback" in added.stderr

    listed = run("provider", "list").stdout.splitlines()
    assert listed[1].split()[:4] == [NAME, "v1.2.3", "Running", "0"]
    assert NAME in run("get", "providers", "-A").stdout
    said = run("provider", "logs", NAME, "--tail", "1").stdout
    assert re.fullmatch(r"started with --zone=b12 --v=2 --webhook-port=\d+ --more\n", said)

    removed = run("provider", "remove", NAME, "--include-crds", "--include-namespace")
    assert (removed.returncode, removed.stdout) == (0, f"provider {NAME} removed\n"), removed.stderr
    assert "no providers" in run("provider", "list").stderr


def test_a_provider_that_does_not_run_is_explained_by_its_output(run: Run) -> None:
    added = run("provider", "add", "release.yaml", "--binary", "./acme", "--set", "ZONE=b12", "--env", "BROKEN=1")

    assert added.returncode == 1
    assert f"provider {NAME} does not run: Crashed: the process ended: exit status 1" in added.stderr
    assert "no credentials for the cloud" in added.stderr
    assert "Crashed" in run("provider", "list").stdout

    other = run("provider", "add", "other.yaml", "--binary", "./acme", "--set", "ZONE=b12")
    assert other.returncode == 1
    assert f"provider {NAME} exists and uses the ServiceAccount acme-system/acme; this release uses acme-system/other: " in other.stderr
    assert run("provider", "remove", NAME).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["add", "release.yaml", "--binary", "./acme"], "no value for ZONE: set it with --set NAME=VALUE or the environment"),
        (["add", "release.yaml", "--binary", "./nothing", "--set", "ZONE=a"], "there is no such program, or it is not executable"),
        (["add", "nothing.yaml", "--binary", "./acme"], "nothing.yaml: No such file or directory"),
        (["add", "release.yaml", "--binary", "./acme", "--set", "ZONE=a", "--env", "="], "--env =: NAME=VALUE is expected"),
        (["add", "release.yaml", "--binary", "./acme", "--set", "ZONE=a", "--data-dir", "."], ". is not the data directory of a plane"),
        (["add", "release.yaml", "--binary", "./acme", "--set", "ZONE=a", "--container", "x"], "choose one with --container"),
        (["logs", "nothing"], "has no provider nothing; it has: none"),
        (["remove", "../x"], "'../x' is not the name of a provider"),
    ],
)
def test_a_wrong_call_names_what_to_do(run: Run, arguments: list[str], told: str) -> None:
    answer = run("provider", *arguments)

    assert answer.returncode in {1, 2}
    assert told in answer.stderr
    assert "Traceback" not in answer.stderr
    assert len(answer.stderr.splitlines()) <= 1 + answer.stderr.count("left out")


def test_the_data_directory_of_another_plane_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("another authority")

    answer = run("provider", "add", "release.yaml", "--binary", sys.executable, "--set", "ZONE=a", "--no-help", "--data-dir", str(tmp_path))

    assert answer.returncode == 1
    assert f"{tmp_path} is not the data directory of the plane at https://127.0.0.1:" in answer.stderr
