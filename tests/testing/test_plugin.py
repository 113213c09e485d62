"""The fixtures that pytest finds by itself, and the examples that use them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from ssl import CERT_NONE, create_default_context
from typing import Any

import pytest

from clusterwright.api.core import Cluster
from clusterwright.api.meta import ObjectKey
from clusterwright.runtime.errors import NotFound
from clusterwright.testing import samples
from clusterwright.testing.servers import Served, ServedPlane, served_api_server, served_plane

ROOT = Path(__file__).parents[2]
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


def status_of(url: str) -> int:
    """Return the HTTP status of a request without credentials."""
    context = create_default_context()
    context.check_hostname, context.verify_mode = False, CERT_NONE
    try:
        with urllib.request.urlopen(url, context=context, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_each_test_gets_an_api_server_of_its_own(api_server: Served) -> None:
    with served_api_server() as other:
        api_server.apply(CONFIG_MAP)

        assert api_server.get("v1", "ConfigMap", "a")["metadata"]["name"] == "a"
        with pytest.raises(NotFound):
            other.get("v1", "ConfigMap", "a")
        assert status_of(f"{api_server.url}/readyz") == 200
        assert status_of(f"{api_server.url}/api/v1/secrets") == 403
        assert api_server.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert not other.kubeconfig.exists()


def test_a_plane_brings_up_clusters_whose_nodes_are_on_the_network(plane: ServedPlane) -> None:
    made = plane.workload_cluster("c", workers=1)

    assert b"server: https://127.0." in made.kubeconfig.read_bytes()
    assert plane.get("cluster.x-k8s.io/v1beta2", "Cluster", "c")["status"]["phase"] == "Provisioned"
    assert plane.run(lambda: plane.plane.client.find(Cluster, ObjectKey("default", "other"))) is None


def test_a_plane_has_admission(plane: ServedPlane) -> None:
    (cluster, *_) = samples.cluster("c")
    cluster["spec"]["topology"] = {"classRef": {"name": ""}, "version": "x"}

    with pytest.raises(Exception, match=r"spec\.topology"):
        plane.apply(cluster)


def test_a_virtual_plane_takes_no_time(virtual_plane: Any) -> None:
    async def body(plane: Any) -> float:
        begin = plane.clock.monotonic()
        await plane.clock.sleep(3600)
        return float(plane.clock.monotonic() - begin)

    assert virtual_plane(body, seed=3) == 3600


def test_a_failure_during_the_start_of_a_server_is_raised() -> None:
    def setup(manager: Any) -> None:
        raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"), served_plane(setup=setup):
        pass


def played(folder: Path, *files: str) -> str:
    """Run pytest on copies of files, far from our conftest.py, and return what it prints."""
    for file in files:
        shutil.copy(ROOT / "examples" / "testing" / file, folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", str(folder)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_pytest_finds_the_fixtures_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_mine(api_server):\n    assert api_server.url.startswith('https://127.0.0.1:')\n")

    assert "1 passed" in played(tmp_path)


@pytest.mark.parametrize(
    ("module", "files"), [("kopf", ["kopf_operator.py", "test_with_kopf.py"]), ("kr8s", ["test_with_kr8s.py"])], ids=["kopf", "kr8s"]
)
def test_an_example_passes(module: str, files: list[str], tmp_path: Path) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: examples/testing/{files[-1]} was not run")

    assert " passed" in played(tmp_path, *files)
