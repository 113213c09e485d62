"""Cluster API's own e2e and quick-start templates, as they are: built by kustomize, filled in by `generate`, Available, and gone again.

They are not ours to keep here: UPSTREAM_SOURCE names a checkout of kubernetes-sigs/cluster-api. Run by `make test-real`.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json
from clusterwright.cli.main import main
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.registry import Registry
from clusterwright.testing import NAMESPACE, Plane, run_virtual, virtual_plane
from support.extension import InProcess, example_module

SOURCE = Path(os.environ.get("UPSTREAM_SOURCE") or "/nowhere")
E2E = SOURCE / "test/e2e/data/infrastructure-docker/main"
QUICK_START = SOURCE / "test/infrastructure/docker/templates"
FEATURES = {"RuntimeSDK": True, "InPlaceUpdates": True, "KubeadmBootstrapFormatIgnition": True, "MachineTaintPropagation": True}
NAME = "upstream"
ANY = {"x-kubernetes-preserve-unknown-fields": True}
VARIABLES: dict[str, Json] = {
    "kubeadmControlPlaneMaxSurge": {"type": "string"},
    "imageRepository": {"type": "string"},
    "files": {"type": "array", "items": {"type": "object", **ANY}},
    "preKubeadmCommands": {"type": "array", "items": {"type": "string"}},
}
COPIED = ("files", "preKubeadmCommands")
"""The variables that the extension adds to the KubeadmConfigTemplates of workers; files may be templates of v1.14."""

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not E2E.is_dir(), reason="UPSTREAM_SOURCE names no checkout of kubernetes-sigs/cluster-api: NOT tried"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which builds the templates, is not installed: NOT tried"),
]


def templates() -> list[Any]:
    """Every template of a cluster; one of two steps is two files, of which the second belongs to the first."""
    found = [path for folder in (E2E, QUICK_START) if folder.is_dir() for path in sorted(folder.glob("cluster-template*"))]
    steps = [path / "step1" if (path / "step1").is_dir() else path for path in found]
    return [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in steps]


def built(path: Path) -> str:
    """A template as upstream's Makefile builds it."""
    if path.is_file():
        return path.read_text()
    command = ["kubectl", "kustomize", "--load-restrictor", "LoadRestrictionsNone", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def stand_in() -> Any:
    """What the templates expect of upstream's test extension: handlers of these names, and variables that anybody may set."""
    made: Any = type(example_module().example())()
    found = [{"name": name, "required": False, "schema": {"openAPIV3Schema": schema}} for name, schema in VARIABLES.items()]
    made.add("discover-variables", "DiscoverVariables", lambda _: {"status": "Success", "variables": found})
    made.add("generate-patches", "GeneratePatches", generate_patches)
    made.add("validate-topology", "ValidateTopology", lambda _: {"status": "Success"})
    made.add("generate-upgrade-plan", "GenerateUpgradePlan", lambda _: {"status": "Success", "controlPlaneUpgrades": []})
    return made


def generate_patches(request: Json) -> Json:
    """Copy the variables for KubeadmConfigTemplates into them, as upstream's test extension does."""
    items = []
    for item in request["items"]:
        values = {v["name"]: v["value"] for v in item.get("variables") or ()}
        fields = {name: values[name] for name in COPIED if name in values}
        if item["object"]["kind"] == "KubeadmConfigTemplate" and fields:
            patch = {"spec": {"template": {"spec": fields}}}
            encoded = base64.b64encode(json.dumps(patch).encode()).decode()
            items.append({"uid": item["uid"], "patchType": "JSONMergePatch", "patch": encoded})
    return {"status": "Success", "items": items}


class Filled:
    """Templates with the values of upstream's e2e configuration."""

    def __init__(self, folder: Path, extension: str, machines: int, capsys: pytest.CaptureFixture[str]) -> None:
        network = (SOURCE / "test/e2e/data/cni/kindnet/kindnet.yaml").read_text()
        self._folder, self._capsys = folder, capsys
        self._values = {
            "NAMESPACE": NAMESPACE,
            "KUBERNETES_VERSION": "v1.34.1",
            "CONTROL_PLANE_MACHINE_COUNT": str(machines),
            "WORKER_MACHINE_COUNT": "1",
            "DOCKER_SERVICE_DOMAIN": "cluster.local",
            "DOCKER_SERVICE_CIDRS": "10.128.0.0/12",
            "DOCKER_POD_CIDRS": "192.168.0.0/16",
            "DOCKER_SERVICE_IPV6_CIDRS": "fd00:100:64::/108",
            "DOCKER_POD_IPV6_CIDRS": "fd00:100:96::/48",
            "CNI_RESOURCES": json.dumps({"resources": network}),
            "EXTENSION_CONFIG_NAME": extension,
            "SERVER": "https://example.com",
            "TOKEN": "token",
        }

    def objects(self, path: Path) -> list[Json]:
        file = self._folder / "template.yaml"
        file.write_text(built(path))
        flags = [flag for name, value in self._values.items() for flag in ("--set", f"{name}={value}")]
        assert main(["generate", "cluster", NAME, "--from", str(file), *flags]) == 0
        return [o for o in yaml.safe_load_all(self._capsys.readouterr().out) if o]


def class_of(template: Path, objects: list[Json], filled: Filled) -> list[Json]:
    """The file beside a template that has the class of its Cluster."""
    topology = next(o for o in objects if o["kind"] == "Cluster")["spec"].get("topology") or {}
    name = topology.get("class") or (topology.get("classRef") or {}).get("name")
    folder = next(f for f in (E2E, QUICK_START) if template.is_relative_to(f))
    for path in sorted(folder.glob("clusterclass*.yaml")) if name else ():
        found = filled.objects(path)
        if any(o["kind"] == "ClusterClass" and o["metadata"]["name"] == name for o in found):
            return found
    assert not name
    return []


@pytest.mark.parametrize("path", templates())
def test_it_becomes_available_and_goes(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    post, registry = InProcess(stand_in()), Registry()
    registry.warm_up([post.config])
    # a rollout without surge needs three Machines, as upstream's own test of it has
    filled = Filled(tmp_path, post.config["metadata"]["name"], 3 if "scale-in" in path.name else 1, capsys)
    objects = filled.objects(path)
    needed = class_of(path, objects, filled)
    second = filled.objects(path.parent / "step2") if path.name == "step1" else []

    async def scenario() -> None:
        nobody: Any = None
        client = RuntimeClient(registry, post, nobody, lambda: 0.0)
        async with virtual_plane(features=FEATURES, extensions=client) as plane:
            await apply(plane, [*needed, *objects])
            await plane.until_condition(Cluster, NAME, "Available", "True", within=3600)
            await apply(plane, second)
            await plane.client.delete(Cluster, (await plane.cluster(NAME)).key)
            await plane.until_gone(Cluster, NAME, within=3600)

    run_virtual(scenario())


async def apply(plane: Plane, objects: list[Json]) -> None:
    for obj in objects:
        obj["metadata"].setdefault("namespace", NAMESPACE)
        await plane.client.apply(obj, field_manager="kubectl")
