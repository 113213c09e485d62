"""`clusterwright plan` on a bundle: exit statuses, policies, and one clear line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from clusterwright.api.meta import Json
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli.main import main
from clusterwright.simulation import samples
from clusterwright.testing import run_virtual, virtual_plane
from support.plans import captured

Told = Callable[..., tuple[int, str, str]]


@cache
def _objects() -> tuple[Json, ...]:
    async def run() -> tuple[Json, ...]:
        async with virtual_plane() as p:
            await p.apply(samples.cluster("c", has_control_plane_object=True))
            await p.apply(samples.control_plane("c", replicas=1, version="v1.34.0"))
            await p.apply(samples.workers("c", "w", replicas=1, version="v1.34.0"))
            await p.until_available("c", control_plane=1, workers=1, within=3600)
            made = await captured(p)
            return tuple(o for o in made.objects if o["kind"] != "CustomResourceDefinition")

    return run_virtual(run())


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Return a function that plans on a bundle and returns the status, the output and the errors."""
    bundle = tmp_path / "bundle.yaml"
    bundle.write_text(dump_all(_objects()))

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["plan", "--from", str(bundle), "--runs", "1", *arguments])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_without_a_change_there_is_nothing_to_do(told: Told):
    assert told() == (0, "Nothing to do.\n", "")


def test_changes_exit_with_2_and_replacements_with_3(told: Told):
    assert told("--edit", "md/w", "--set", "spec.replicas=2")[0] == 2
    status, out, _ = told("--edit", "md/w", "--set", "spec.template.spec.version=v1.34.1", "-o", "json")
    made = json.loads(out)
    assert (status, made["outcome"], len(made["replaced"])) == (3, "replacements", 1)


def test_a_denied_plan_exits_with_1_and_names_the_machines(told: Told, tmp_path: Path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("deny: [replace]\n")
    status, out, _ = told("--edit", "md/w", "--set", "spec.template.spec.version=v1.34.1", "--policy", str(policy), "-o", "markdown")
    assert status == 1
    assert "denied by policy: replace: these Machines would be replaced: Machine/default/w-" in out


def test_a_manifest_is_applied_and_what_is_missing_in_it_stays(told: Told, tmp_path: Path):
    manifest = tmp_path / "md.yaml"
    metadata = {"name": "w", "namespace": "default", "labels": {"tier": "gold"}}
    manifest.write_text(dump_all([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": metadata}]))
    status, out, _ = told("-f", str(manifest))
    assert status == 2
    assert 'metadata.labels: (none) -> {"tier":"gold"}' in out or "metadata.labels.tier: (none) -> gold" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--edit", "md/w"], "--edit md/w: at least one --set PATH=VALUE is expected after it"),
        (["--edit", "md/w", "--set", "spec.replicas"], "--set spec.replicas: path=value is expected"),
        (["--edit", "nonsense/w", "--set", "a=b"], "nonsense/w: KIND/NAME with a kind of Cluster API or Kubernetes is expected"),
        (["--deny", "everything"], "--deny everything: one of replace"),
        (["-f", "/nowhere.yaml"], "/nowhere.yaml: No such file or directory"),
        (["--runs", "-1"], "--runs: a number of at least 0 is expected"),
        (["--class", "/nowhere"], "/nowhere: no such folder"),
        (["--feature-gates", "Nonsense=true"], "'Nonsense' is not known"),
    ],
)
def test_bad_input_is_one_line_and_exits_with_1(told: Told, arguments: list[str], said: str):
    status, out, err = told(*arguments)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert said in err


def test_an_object_that_is_not_there_is_refused(told: Told):
    status, out, _ = told("--edit", "md/missing", "--set", "spec.replicas=1")
    assert status == 1
    assert 'machinedeployments.cluster.x-k8s.io "missing" not found' in out


def test_an_unreachable_server_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    kubeconfig.write_text(json.dumps({"clusters": [cluster], "contexts": [context], "users": [{"name": "c"}], "current-context": "c"}))
    assert main(["plan", "--kubeconfig", str(kubeconfig)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "no answer from https://127.0.0.1:1" in err
