"""`clusterwright render`: what a user sees."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from clusterwright.api.meta import ObjectKey
from clusterwright.cli import render
from clusterwright.cli.main import main
from clusterwright.offline.bundle import assemble
from support import kubeadmconfig as harness


async def _bundle(world: Any, name: str = "m1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await render.gather(world.judge, ObjectKey("default", name))
    return found


@pytest.fixture
async def worker() -> list[dict[str, Any]]:
    world = await harness.a_world()
    await world.cluster(initialized=True)
    await world.certificates()
    await world.secret("s", {"k": "content of the secret"})
    source = {"secret": {"name": "s", "key": "k"}}
    await world.config(spec={"files": [{"path": "/a", "contentFrom": source}]}, owner=await world.machine(), paused_reported=False)
    return await _bundle(world)


def _written(tmp_path: Path, objects: list[dict[str, Any]]) -> str:
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


def test_data_that_would_be_written_is_shown_without_secrets(worker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "kubeadmconfig/m1", "--from", _written(tmp_path, worker)]) == 0

    out = capsys.readouterr().out
    assert out.startswith("## template: jinja\n#cloud-config\n")
    assert "kubeadm join --config" in out
    assert "content of the secret" not in out
    assert "content: <redacted>" in out


def test_secrets_are_shown_on_request(worker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "kubeadmconfig/m1", "--from", _written(tmp_path, worker), "--show-secrets"]) == 0

    assert "content of the secret" in capsys.readouterr().out


async def test_data_that_is_stored_is_shown_as_it_is() -> None:
    world = await harness.a_world()
    await world.cluster()
    await world.certificates()
    await world.control_plane_machine()
    await world.reconcile()
    await world.set_initialized()  # now it would be a join, but what was stored counts

    shown = render.render(assemble(await _bundle(world)), "m1", show_secrets=True)

    assert shown == await world.data()
    assert "PRIVATE KEY" in shown
    assert "PRIVATE KEY" not in render.render(assemble(await _bundle(world)), "m1")


def test_a_compressed_bundle_and_several_documents(worker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "b.gz"
    path.write_bytes(gzip.compress("\n---\n".join(json.dumps(o) for o in worker).encode()))

    assert main(["render", "KubeadmConfig/default/m1", "--from", str(path)]) == 0
    assert "kubeadm join" in capsys.readouterr().out


async def _refusal(world: Any, name: str = "m1") -> str:
    with pytest.raises(render.NothingToRender) as caught:
        render.render(assemble(await _bundle(world, name)), name)
    return str(caught.value)


async def test_missing_bootstrap_data_is_explained() -> None:
    world = await harness.a_world()
    await world.cluster()
    await world.worker()

    assert await _refusal(world) == "no data would be written yet: Waiting for Cluster control plane to be initialized"


async def test_bootstrap_data_that_will_never_exist_is_explained() -> None:
    world = await harness.a_world()
    await world.cluster(initialized=True)
    await world.worker()
    await world.config("alone")

    assert await _refusal(world) == "no data would be written: missing certificate"
    assert "no owner" in await _refusal(world, "alone")


async def test_data_whose_secret_is_gone() -> None:
    world = await harness.a_world()
    await world.cluster(initialized=True)
    status = {"initialization": {"dataSecretCreated": True}, "dataSecretName": "m1"}
    await world.config(owner=await world.machine(), status=status)

    assert "generated already" in await _refusal(world)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["machine/m1", "--from", "x"], 2, "is not kubeadmconfig/NAME"),
        (["kubeadmconfig/", "--from", "x"], 2, "is not KIND/NAME"),
        (["kubeadmconfig/m1", "--from", "/nowhere"], 1, "No such file"),
        ([], 2, "required"),
    ],
)
def test_misuse_is_explained(arguments: list[str], status: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", *arguments]) == status
    assert text in capsys.readouterr().err


def test_a_missing_config_is_named(worker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "kubeadmconfig/other", "--from", _written(tmp_path, worker)]) == 1
    assert "no KubeadmConfig other" in capsys.readouterr().err


def test_two_configs_of_one_name_must_be_told_apart(worker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin = [{**o, "metadata": {**o["metadata"], "namespace": "two"}} for o in worker]
    path = _written(tmp_path, worker + twin)

    assert main(["render", "kubeadmconfig/m1", "--from", path]) == 1
    assert "--namespace" in capsys.readouterr().err
    assert main(["render", "kubeadmconfig/m1", "--from", path, "-n", "two"]) == 0
