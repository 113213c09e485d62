"""`clusterwright fault inject|remove|list`: inject faults into simulated machines, and remove them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from clusterwright.api.core import Cluster, Machine
from clusterwright.api.core.shared import ContractVersionedObjectReference
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli import connect, subjects
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.tabular import table
from clusterwright.inmemory import faults
from clusterwright.runtime.rest import RestClient

_SIMULATED = {
    "DevCluster": faults.CLUSTER_FAULTS,
    "DevMachine": faults.MACHINE_FAULTS,
    "DockerCluster": faults.CLUSTER_FAULTS,
    "DockerMachine": faults.MACHINE_FAULTS,
}

_MOST_NAMES = 4


def run(arguments: argparse.Namespace) -> int:
    """Inject, remove or list faults. Return 1 if the object does not exist or is not simulated."""
    return asyncio.run(_list(arguments) if arguments.action == "list" else _change(arguments))


async def _change(arguments: argparse.Namespace) -> int:
    subject, words = subjects.parse(arguments.words, default="Machine")
    is_injecting = arguments.action == "inject"
    if len(words) > 1 or (is_injecting and not words):
        raise Usage("KIND/NAME and one FAULT are expected" if is_injecting else "KIND/NAME and at most one FAULT are expected")
    connection = connect.resolve(arguments)
    async with connect.connected(connection) as client:
        obj = await _simulated(client, subject, subject.namespace or arguments.namespace or connection.namespace)
        name = f"{obj.kind}/{obj.metadata.name}"
        annotations = _annotations(obj.metadata.annotations, words[0] if words else "", obj.kind, is_injecting=is_injecting)
        if not annotations:
            print(f"{name}: nothing to change")
            return 0
        await client.patch(obj.gvk, obj.key, {"metadata": {"annotations": annotations}})
    left = annotations.get(faults.FAULT) or ""
    what = words[0] if words else "all faults"
    print(f"{name}: {what} {'injected' if is_injecting else 'removed'}" + (f"; now: {left}" if left else ""))
    return 0


def _annotations(present: Mapping[str, str], fault: str, kind: str, *, is_injecting: bool) -> dict[str, str | None]:
    """Return the changes of the annotations; raises Usage for an unknown fault."""
    known = _SIMULATED[kind]
    if fault.startswith("slow"):
        factor = fault.partition("=")[2]
        try:
            faults.slowness({faults.SLOW: factor} if is_injecting else {})
        except faults.UnknownFault as error:
            raise Usage(str(error)) from None
        wanted: dict[str, str | None] = {faults.SLOW: factor if is_injecting else None}
    else:
        if fault and fault not in known:
            raise Usage(
                f"{fault!r} is not a fault of a {kind}; known: {', '.join(sorted(known))}" + (", slow=FACTOR" if "Machine" in kind else "")
            )
        now = [name.strip() for name in present.get(faults.FAULT, "").split(",") if name.strip()]
        then = [*(n for n in now if n != fault), fault] if is_injecting else [n for n in now if fault and n != fault]
        wanted = {faults.FAULT: ",".join(then) or None}
        if not fault:
            wanted[faults.SLOW] = None
    return {name: value for name, value in wanted.items() if present.get(name) != value}


async def _simulated(client: RestClient, subject: subjects.Subject, namespace: str) -> Unstructured:
    """Return the simulated object: the one named, or that of a Machine, a Node or a Cluster. Raises NotFound, Failed."""
    if subject.kind in _SIMULATED:
        return await _get(client, subject.kind, ObjectKey(namespace, subject.name))
    if subject.kind == "Node":
        machines = await client.list(Machine, namespace=namespace)
        owner = next((m for m in machines if m.status.node_ref and m.status.node_ref.name == subject.name), None)
        if owner is None:
            raise Failed(f"nodes {subject.name!r} not found: no Machine in namespace {namespace} has it")
        reference = owner.spec.infrastructure_ref
    elif subject.kind == "Machine":
        machine = await client.find(Machine, ObjectKey(namespace, subject.name))
        if machine is None and await client.find(Cluster, ObjectKey(namespace, subject.name)) is not None:
            owned = await client.list(Machine, namespace=namespace, labels={CLUSTER_NAME_LABEL: subject.name})
            names = ", ".join(f"machine/{m.metadata.name}" for m in owned[:_MOST_NAMES]) or "it has none yet"
            raise Failed(f"{subject.name} is a Cluster: name one of its Machines ({names}), or cluster/{subject.name} for its endpoint")
        machine = machine or await client.get(Machine, ObjectKey(namespace, subject.name))
        reference = machine.spec.infrastructure_ref
    elif subject.kind == "Cluster":
        reference = (await client.get(Cluster, ObjectKey(namespace, subject.name))).spec.infrastructure_ref
    else:
        raise Usage(
            f"{subject.kind} cannot be broken: machine/NAME, node/NAME, cluster/NAME, devmachine/NAME or devcluster/NAME is expected"
        )
    return await _referenced(client, reference, f"{subject.kind}/{subject.name}", namespace)


async def _referenced(client: RestClient, reference: ContractVersionedObjectReference | None, name: str, namespace: str) -> Unstructured:
    if reference is None or reference.kind not in _SIMULATED:
        what = f"its infrastructure is a {reference.kind}" if reference is not None and reference.kind else "it has no infrastructure yet"
        raise Failed(f"{name} is not simulated: {what}")
    return await _get(client, reference.kind, ObjectKey(namespace, reference.name))


async def _get(client: RestClient, kind: str, key: ObjectKey) -> Unstructured:
    found: Unstructured = await client.get(_gvk(kind), key)
    return found


def _gvk(kind: str) -> GroupVersionKind:
    return GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", kind)


async def _list(arguments: argparse.Namespace) -> int:
    connection = connect.resolve(arguments)
    cluster = subjects.parse_cluster(arguments.words) if arguments.words else None
    namespace = (cluster.namespace if cluster else "") or arguments.namespace or connection.namespace
    rows = [["OBJECT", "CLUSTER", "FAULTS"]]
    async with connect.connected(connection) as client:
        for kind in _SIMULATED:
            for obj in await client.list(_gvk(kind), namespace=namespace):
                of = obj.metadata.labels.get(CLUSTER_NAME_LABEL) or _owner(obj.json)
                broken = _told(obj.metadata.annotations)
                if broken and (cluster is None or of == cluster.name):
                    rows.append([f"{kind}/{obj.metadata.name}", of, broken])
    print(table(rows) if len(rows) > 1 else "nothing is broken")
    print("\nfaults:")
    print(*(f"  {name:<24}{text}" for name, text in faults.DESCRIPTIONS.items()), sep="\n")
    return 0


def _told(annotations: Mapping[str, str]) -> str:
    slow = annotations.get(faults.SLOW)
    return ", ".join(filter(None, (annotations.get(faults.FAULT, ""), f"slow={slow}" if slow else "")))


def _owner(obj: Json) -> str:
    return next((str(r["name"]) for r in obj["metadata"].get("ownerReferences") or () if r["kind"] == "Cluster"), "")
