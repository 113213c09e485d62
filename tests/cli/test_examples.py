"""Every file in examples/ is applied, and comes up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.conftest import Run, environment, run_in, running
from clusterwright.cli.connect import connected
from clusterwright.cli.flags import FLAVORS
from clusterwright.runtime.kubeconfig import Kubeconfig

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = {
    "ignition.yaml",
    "external-etcd/cluster.yaml",
    "external-etcd/certificates.py",
    "provider/provider.py",
    "provider/crds.yaml",
    "provider/cluster.yaml",
}
ELSEWHERE = {*(f"{flavor}.yaml" for flavor in FLAVORS), "extension/extension.py", "extension/extensionconfig.yaml"}
ELSEWHERE |= {"alerts/clusterwright.yaml", "holmesgpt/README.md", "holmesgpt/clusterwright.yaml", "holmesgpt/mcp.yaml"}
ELSEWHERE |= {f"testing/{name}" for name in ("kopf_operator.py", "test_with_kopf.py", "test_with_kr8s.py")}
ELSEWHERE |= {"testing/controller-runtime/config_map_test.go", "testing/controller-runtime/go.mod"}
ELSEWHERE |= {f"first-class/{name}.yaml" for name in ("templates", "class", "cluster")}
ELSEWHERE |= {f"tasks/{name}.yaml" for name in ("add-ons", "drain-rule", "health-check")}
"""Tried by tests/documentation/test_first_class.py and test_book.py, tests/testing/test_plugin.py (the suite in Go by hand), test_create.py, by the tests of the runtime SDK, and by tests/verdicts/test_examples_for_tools.py."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running(tmp_path_factory.mktemp("plane"), "--feature-gates", "KubeadmBootstrapFormatIgnition=true") as folder:
        yield folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_in(folder)


def apply(folder: Path, text: str) -> None:
    """What `kubectl create -f -` does."""

    async def create() -> None:
        connection = Kubeconfig.load([folder / ".clusterwright" / "kubeconfig"]).resolve()
        async with connected(connection) as client:
            for obj in yaml.safe_load_all(text):
                if obj["kind"] != "CustomResourceDefinition":
                    obj["metadata"].setdefault("namespace", "default")
                await client.create(obj)

    asyncio.run(create())


def until_up(run: Run, name: str) -> None:
    for waited in (("wait", name), ("wait", f"kcp/{name}"), ("wait", f"md/{name}-md-0")):
        done = run(*waited)
        assert done.returncode == 0, f"{done.stderr}\n{run('explain', name).stdout}"


def test_no_example_is_forgotten() -> None:
    there = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts}

    assert there == HERE | ELSEWHERE


def test_ignition(folder: Path, run: Run) -> None:
    apply(folder, (EXAMPLES / "ignition.yaml").read_text())
    until_up(run, "ignition")


def test_external_etcd(folder: Path, run: Run) -> None:
    made = subprocess.run([sys.executable, EXAMPLES / "external-etcd" / "certificates.py"], capture_output=True, text=True, check=True)
    apply(folder, made.stdout)
    apply(folder, (EXAMPLES / "external-etcd" / "cluster.yaml").read_text())
    until_up(run, "external-etcd")

    conditions = yaml.safe_load(run("get", "kcp/external-etcd", "-o", "yaml").stdout)["status"]["conditions"]
    assert "EtcdClusterHealthy" not in {condition["type"] for condition in conditions}  # it is not ours to judge


def test_the_example_of_a_provider_works(folder: Path, run: Run) -> None:
    apply(folder, (EXAMPLES / "provider" / "crds.yaml").read_text())
    env = environment(folder, KUBECONFIG=str(folder / ".clusterwright" / "kubeconfig"))
    with (folder / "provider").open("w") as said:
        provider = subprocess.Popen([sys.executable, EXAMPLES / "provider" / "provider.py"], env=env, stdout=said, stderr=said)
    try:
        apply(folder, (EXAMPLES / "provider" / "cluster.yaml").read_text())
        until_up(run, "rack")
        machines = yaml.safe_load(run("get", "machines", "-c", "rack", "-o", "yaml").stdout)["items"]
        assert {m["spec"]["infrastructureRef"]["kind"] for m in machines} == {"RackMachine"}
        assert all(m["spec"]["providerID"] and m["status"]["addresses"] for m in machines)
        deleted = run("delete", "rack", "--timeout", "600")
        assert deleted.returncode == 0, deleted.stdout
        assert "No devmachines found" in run("get", "devmachines", "-c", "rack").stderr
    finally:
        provider.kill()
        provider.wait()
    log = (folder / "provider").read_text().splitlines()
    assert log
    assert [line for line in log if " INFO " not in line] == []
