"""The outputs that the documentation shows, made by running the product: `python tests/documentation/outputs.py` writes them into the pages,
and with `--check` (in `make check`) tells which are not what the product says.

A page has `<!-- output: NAME -->` (or `<!-- file: PATH -->`), a block, and `<!-- end -->`. All clusters live on one plane in virtual time; random parts of names
are replaced by made-up ones, in the order of their appearance.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import yaml

from clusterwright.api.core import Cluster, MachineDeployment
from clusterwright.api.infrastructure import DevCluster, DevMachine, DevMachineTemplate
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wire import Transport
from clusterwright.app import connector
from clusterwright.cli.describe import look
from clusterwright.cli.explain import as_text
from clusterwright.cli.layout import render
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.faults import FAULT
from clusterwright.offline.bundle import assemble
from clusterwright.offline.explain import explain
from clusterwright.offline.record import record
from clusterwright.offline.survey import Surveyor
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import sample_keys
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"(<!-- (output|file): (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SUFFIX = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_MADE_UP = ("7x2kp", "q9vtz", "m4c8d", "w6hbn", "r5jzl", "k8fts", "x4mgv", "z7pdc", "h2wqr", "b9nlk", "t6vxj", "c5gmz")


def rendered(text: str, outputs: Mapping[str, str]) -> str:
    """The page with what the product says now, and with files as they are."""

    def content(kind: str, name: str) -> str:
        return outputs[name] if kind == "output" else (ROOT / name).read_text().rstrip()

    return _BLOCK.sub(lambda m: f"{m[1]}\n{_indented(content(m[2], m[3]))}\n\n{m[4]}", text)


def masked(text: str) -> str:
    """The text without its numbers, nor the room that they take: a second more or less is no difference."""
    spans = re.sub(r"\d+ (h|min) \d+ (min|s)|\d+ (min|s|h)\b|\b\d+[smhd]\b", "#", text)
    return re.sub(r" {2,}", "  ", re.sub(r"\d+", "#", spans))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def outputs() -> dict[str, str]:
    """Every output, by name."""
    return run_virtual(_outputs())


async def _outputs() -> dict[str, str]:
    clock = LoopClock(START)
    async with plane(clock, server=management_server(clock, Random(1), EMBEDDED_FEATURES)) as p:
        told: dict[str, str] = {}
        await p.apply(_cluster("shop", control_planes=3, workers=2))
        await p.until_available("shop", control_plane=3, workers=2, within=300)
        for name in ("template", "vm", "join", "node", "paused", "hook", "endpoint", "provider"):
            await p.apply(_cluster(name))
            await p.until_available(name, workers=1, within=300)
        await p.apply(_cluster("quorum", control_planes=3, workers=0))
        await p.until_available("quorum", control_plane=3, within=300)
        await asyncio.sleep(120)
        told["describe"] = f"$ clusterwright describe shop\n{render(await look(p.client, _key('shop')), p.clock.now())}"
        told["explain-fine"] = await _explained(p, "shop")
        for break_it in (_template, _vm, _join, _node, _paused, _hook, _endpoint, _provider, _quorum):
            await break_it(p)
        await _typo_in_a_patch(p)
        await asyncio.sleep(420)
        told["explain-first-class"] = re.sub(r"(?<=[/ ])first\b", "shop", await _explained(p, "first"))
        for name in ("template", "vm", "join", "node", "paused", "hook", "endpoint", "provider", "quorum"):
            told[f"explain-{name}"] = await _explained(p, name)
        told["explain-table"] = await _explained(p, "node", "WorkerMachinesReady")
        return {name: _named(text) for name, text in told.items()}


def _cluster(name: str, *, control_planes: int = 1, workers: int = 1) -> list[Json]:
    objects = samples.cluster(name, has_control_plane_object=True) + samples.control_plane(name, replicas=control_planes, seconds=5)
    return objects + (samples.workers(name, f"{name}-md-0", replicas=workers, seconds=5) if workers else [])


def _key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


async def _explained(p: Plane, name: str, condition: str = "") -> str:
    """What `clusterwright explain` prints."""
    connect = connector(p.cloud, None)

    async def reach(kubeconfig: bytes) -> Transport:
        return await connect(_key(name), kubeconfig)

    surveyor = Surveyor(p.client, reach, clock=p.clock, random=Random(1), keys=sample_keys())
    documents = await record(p.client, _key(name), p.clock.now(), surveyor, keep_secrets=True)
    command = f"$ clusterwright explain {name}" + (f" {condition}" if condition else "")
    return f"{command}\n{as_text(explain(assemble(documents), f'Cluster/default/{name}'), condition)}"


def _named(text: str) -> str:
    """Random parts of names replaced."""
    known: dict[str, str] = {}
    return _SUFFIX.sub(lambda m: known.setdefault(m[0], _MADE_UP[len(known) % len(_MADE_UP)]), text)


# ------------------------------------------------------------------------------------------------------ what goes wrong


async def _machines(p: Plane, cluster: str, *, workers: bool = True) -> list[DevMachine]:
    found = await p.client.list(DevMachine, namespace="default", labels={"cluster.x-k8s.io/cluster-name": cluster})
    return [m for m in found if m.metadata.name.startswith(f"{cluster}-md-0") == workers]


async def _scale(p: Plane, cluster: str, replicas: int) -> None:
    await p.client.patch(MachineDeployment, _key(f"{cluster}-md-0"), {"spec": {"replicas": replicas}})


async def _template(p: Plane) -> None:
    await p.client.delete(DevMachineTemplate, _key("template-md-0"))
    await _scale(p, "template", 2)


async def _vm(p: Plane) -> None:
    template: Any = await p.client.get(DevMachineTemplate, _key("vm-md-0"))
    name = "vm-md-0-large"
    faulty = {"metadata": {"annotations": {FAULT: "machine-never-boots"}}, "spec": {"backend": {"inMemory": {}}}}
    api_version = template.api_version
    await p.client.create(
        {
            "apiVersion": api_version,
            "kind": "DevMachineTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"template": faulty},
        }
    )
    await p.client.patch(MachineDeployment, _key("vm-md-0"), {"spec": {"template": {"spec": {"infrastructureRef": {"name": name}}}}})


async def _join(p: Plane) -> None:
    name = "join-md-0-new"
    faulty = {"metadata": {"annotations": {FAULT: "bootstrap-fails"}}, "spec": {"backend": {"inMemory": {}}}}
    api_version = "infrastructure.cluster.x-k8s.io/v1beta2"
    await p.client.create(
        {
            "apiVersion": api_version,
            "kind": "DevMachineTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"template": faulty},
        }
    )
    await p.client.patch(MachineDeployment, _key("join-md-0"), {"spec": {"template": {"spec": {"infrastructureRef": {"name": name}}}}})


async def _node(p: Plane) -> None:
    (machine,) = await _machines(p, "node")
    await p.annotate(DevMachine, machine.metadata.name, {FAULT: "kubelet-stops"})


async def _paused(p: Plane) -> None:
    await p.client.patch(Cluster, _key("paused"), {"spec": {"paused": True}})
    await _scale(p, "paused", 3)


async def _hook(p: Plane) -> None:
    machines: Any = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Machine")
    (machine,) = await _machines(p, "hook")
    annotation = {"pre-drain.delete.hook.machine.cluster.x-k8s.io/backup": "backup-operator"}
    await p.client.patch(machines, machine.key, {"metadata": {"annotations": annotation}})
    await _scale(p, "hook", 0)


async def _endpoint(p: Plane) -> None:
    await p.annotate(DevCluster, "endpoint", {FAULT: "api-server-unreachable"})


async def _quorum(p: Plane) -> None:
    for machine in (await _machines(p, "quorum", workers=False))[:2]:
        await p.annotate(DevMachine, machine.metadata.name, {FAULT: "etcd-stops"})


async def _typo_in_a_patch(p: Plane) -> None:
    """The class of the book, with a path in its patch that the template does not have."""
    folder = ROOT / "examples" / "first-class"
    for file in ("templates", "class", "cluster"):
        text = (folder / f"{file}.yaml").read_text().replace("name: shop", "name: first")
        await p.apply(yaml.safe_load_all(text))
    await p.until_available("first", workers=2, within=300)
    broken = yaml.safe_load((folder / "class.yaml").read_text().replace("kubeletExtraArgs/-", "kubeletExtraArg/-"))
    classes = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "ClusterClass")
    await p.client.patch(classes, _key("house"), {"spec": {"patches": broken["spec"]["patches"]}})


async def _provider(p: Plane) -> None:
    """The provider of the example, by an author who forgot a field of the contract."""
    await p.apply(yaml.safe_load_all((ROOT / "examples" / "provider" / "crds.yaml").read_text()))
    group, version = "infrastructure.example.com", "v1alpha1"
    template = {"metadata": {"name": "small", "namespace": "default"}, "spec": {"template": {"spec": {}}}}
    await p.client.create({"apiVersion": f"{group}/{version}", "kind": "RackMachineTemplate", **template})
    reference = {"apiGroup": group, "kind": "RackMachineTemplate", "name": "small"}
    await p.client.patch(MachineDeployment, _key("provider-md-0"), {"spec": {"template": {"spec": {"infrastructureRef": reference}}}})
    racks = GroupVersionKind(group, version, "RackMachine")
    made: list[Unstructured] = []
    while not made:
        await asyncio.sleep(1)
        made = list(await p.client.list(racks, namespace="default"))
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": f"{p.clock.now():%Y-%m-%dT%H:%M:%SZ}",
    }
    await p.client.patch(racks, made[0].key, {"spec": {"providerID": f"rack://{made[0].key.name}"}})
    await p.client.patch(racks, made[0].key, {"status": {"conditions": [ready]}}, subresource="status")


def main() -> str:
    """Bring all pages up to date; with `--check`, only tell which are not."""
    logging.disable(logging.CRITICAL)  # what is broken on purpose is no news
    told, stale = outputs(), []
    for page in PAGES:
        text = page.read_text()
        fresh = rendered(text, told)
        if masked(fresh) == masked(text):
            continue
        if "--check" in sys.argv[1:]:
            stale.append(f"{page.relative_to(ROOT)} is stale: run `make docs`")
        else:
            page.write_text(fresh)
    return "\n".join(stale)


if __name__ == "__main__":
    sys.exit(main() or 0)
