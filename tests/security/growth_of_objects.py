"""Entry points that work on whole objects: who owns their fields, their conversion, and what machines are given to boot with."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

from apiserver.apiserver_testing import make_server, widget_crds
from clusterwright import conversion as converting
from clusterwright.admission.ippools import IN_CLUSTER_IP_POOL
from clusterwright.admission.rule import Review, judge
from clusterwright.api.core import MachineDrainRule
from clusterwright.api.core.health import MachineDrainRuleDrainConfig, MachineDrainRuleSpec
from clusterwright.api.ippools import ENTRIES
from clusterwright.api.machine_setup import File
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.api.versions import HUB
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.conversion import Versions
from clusterwright.apiserver.discovery import groups
from clusterwright.apiserver.discovery.nonresource import _openapi_index
from clusterwright.apiserver.interfaces import Resource
from clusterwright.apiserver.managedfields import applying, updating
from clusterwright.apiserver.registry import Registry, Served
from clusterwright.apiserver.schema.customresource import compile_crd
from clusterwright.apiserver.schema.structural import Node as Structural
from clusterwright.apiserver.schema.structural import apply_defaults, prune
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.storage.store import Entry as StoredEntry
from clusterwright.apiserver.system.definitions import TABLE
from clusterwright.controllers.machine import drain
from clusterwright.controllers.machine.drain import DrainPod
from clusterwright.kubeadm import cloudinit, ignition
from clusterwright.kubeadm.node import Node, Role
from clusterwright.offline.words import INITIALIZATION
from conversion import generate
from security.growth import Row

_WIDGETS = Versions({"widgets.example.com/v1": compile_crd(widget_crds()[0], "v1")})
_CONFIG_MAPS = Versions({"v1": next(r.handler for r in RESOURCES if r.kind == "ConfigMap")})
_TIME = "2001-01-01T00:00:00Z"


def _config_map(n: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {f"key-{i}": "v" for i in range(n)}}


def _widget(n: int) -> dict[str, Any]:
    spec = {"tags": [f"tag-{i}" for i in range(n)], "parts": [{"name": f"part-{i}", "count": i} for i in range(n)]}
    return {"apiVersion": "widgets.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def _updated(handlers: Versions, obj: dict[str, Any]) -> None:
    """Write an object, and once more with other values."""
    made = copy.deepcopy(obj)
    updating.update(None, made, manager="a", subresource="", time=_TIME, handlers=handlers)
    changed = copy.deepcopy(made)
    for key in changed.get("data", {}):
        changed["data"][key] = "w"
    for part in changed.get("spec", {}).get("parts", ()):
        part["count"] += 1
    updating.update(made, changed, manager="b", subresource="", time=_TIME, handlers=handlers)


def _applied(handlers: Versions, obj: dict[str, Any]) -> None:
    """Apply an object, and once more as somebody else."""
    made = applying.apply(None, obj, manager="a", force=False, subresource="", time=_TIME, handlers=handlers)
    applying.apply(made, obj, manager="b", force=True, subresource="", time=_TIME, handlers=handlers)


def _stretched(value: Any, n: int) -> Any:
    """Make every outermost list of an object n items long, each with a name of its own."""
    if isinstance(value, dict):
        return {key: _stretched(item, n) for key, item in value.items()}
    if not isinstance(value, list) or not value:
        return value
    items = [copy.deepcopy(value[i % len(value)]) for i in range(n)]
    for i, item in enumerate(items):
        if isinstance(item, dict):
            item.update({key: f"{item[key]}-{i}" for key in ("name", "type", "path") if isinstance(item.get(key), str)})
    return items


def _conversion(group: str, kind: str, version: str) -> Row:
    whole = generate.Generator(Random(kind), fill=1.0).object(group, kind, HUB)

    def run(obj: dict[str, Any]) -> None:
        with contextlib.suppress(converting.ConversionFailed):
            old = converting.convert(obj, f"{group}/{version}", lambda g, k: f"{g}/{HUB}")
            converting.convert(old, f"{group}/{HUB}", lambda g, k: f"{g}/{HUB}")

    return Row(lambda n: _stretched(whole, n), run, 240)


def _node(n: int) -> Node:
    files = tuple(File(path=f"/etc/file-{i}", content="text\n" * 3) for i in range(n))
    commands = tuple(f"echo {i}" for i in range(n))
    return Node(role=Role.JOIN_WORKER, documents=("kind: JoinConfiguration\n",), files=files, pre_kubeadm_commands=commands)


_DEFAULTED = Structural(
    {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
        },
    }
)


def _unpruned(n: int) -> dict[str, Any]:
    return {"list": [{"b": i} for i in range(n)], "map": {f"k{i}": {"b": i} for i in range(n)}, **{f"unknown-{i}": i for i in range(n)}}


def _drained(pods: list[DrainPod]) -> None:
    """Judge Pods by rules of several orders and plan their eviction."""
    rules = [
        MachineDrainRule(
            metadata=ObjectMeta(name=f"rule-{i}"), spec=MachineDrainRuleSpec(drain=MachineDrainRuleDrainConfig(behavior="Drain", order=i))
        )
        for i in range(3)
    ]
    drain.plan(drain.judge_all(pods, rules=rules, namespaces={"ns": {}}, unreachable=False, now=datetime(2001, 1, 1, tzinfo=UTC)))


def _served(n: int) -> Served:
    """Return a registry with one kind in each of n groups."""
    registry, handler = Registry({}), compile_crd(widget_crds()[0], "v1")
    registry.add(
        Resource(
            group=f"g{i}.dev",
            version="v1",
            kind="Widget",
            plural="widgets",
            singular="widget",
            namespaced=True,
            handler=handler,
            custom=True,
        )
        for i in range(n)
    )
    return registry.served()


def _definitions(n: int) -> list[dict[str, Any]]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things{i}.many.dev"},
            "spec": {
                "group": "many.dev",
                "scope": "Namespaced",
                "names": {"plural": f"things{i}", "kind": f"Thing{i}"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }
        for i in range(n)
    ]


def _defined(definitions: list[dict[str, Any]]) -> None:
    """Accept and serve one definition after the other, as requests bring them."""
    server = make_server()
    table = server.store.table(TABLE)
    for definition in definitions:
        name, rv = definition["metadata"]["name"], server.store.next_revision()
        server.store.put(table, StoredEntry(name, "", name, name, rv, json.dumps(definition).encode()))
        server.drain()
        assert server.registry.by_kind("many.dev", "v1", definition["spec"]["names"]["kind"]) is not None


def _stored(server: ApiServer, table: str, name: str, namespace: str = "", **metadata: Any) -> None:
    named = {"name": name, "uid": name, **({"namespace": namespace} if namespace else {}), **metadata}
    of, rv = server.store.table(table), server.store.next_revision()
    kind = {"configmaps": "ConfigMap", "namespaces": "Namespace"}[table]
    obj = {"apiVersion": "v1", "kind": kind, "metadata": named, **({"spec": {"finalizers": ["kubernetes"]}} if kind == "Namespace" else {})}
    key = f"{namespace}/{name}" if namespace else name
    server.store.put(of, StoredEntry(key, namespace, name, name, rv, json.dumps(obj).encode()))


def _with_dependents(n: int) -> ApiServer:
    """Return a server with an owner, with n objects that block its deletion, and with as many that have a finalizer, too."""
    server = make_server()
    server.start_controllers()
    _stored(server, "namespaces", "ns")
    _stored(server, "configmaps", "owner", "ns")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "owner", "blockOwnerDeletion": True}
    for i in range(n):
        _stored(server, "configmaps", f"a{i:06}", "ns", ownerReferences=[owner])
        _stored(server, "configmaps", f"b{i:06}", "ns", ownerReferences=[owner], finalizers=["example.com/hold"])
    server.drain()
    return server


def _collected(server: ApiServer) -> None:
    table = server.store.table("configmaps")
    before = len(table.objects)
    _stored(server, "configmaps", "owner", "ns", deletionTimestamp=_TIME, finalizers=["foregroundDeletion"])
    server.drain()
    assert len(table.objects) == before // 2 + 1, "one half is gone, the other and its owner wait for a finalizer"


def _emptied(server: ApiServer) -> None:
    table = server.store.table("configmaps")
    before = len(table.objects)
    _stored(server, "namespaces", "ns", deletionTimestamp=_TIME)
    server.drain()
    assert len(table.objects) == before // 2


def _pool(n: int) -> Review:
    """Return a write of a pool with single addresses of one network, none of which touch."""
    spec = {
        "addresses": [f"10.0.{2 * i // 256}.{2 * i % 256}" for i in range(n)],
        "excludedAddresses": [f"10.1.{2 * i // 256}.{2 * i % 256}" for i in range(n)],
        "prefix": 8,
    }
    return Review(operation="CREATE", new={"metadata": {"name": "p"}, "spec": spec}, facts=frozenset())


def objects() -> Iterator[tuple[str, Row]]:
    """Yield the rows by name; conversions come from the registry of versions."""
    for name, make, handlers in (("ConfigMap", _config_map, _CONFIG_MAPS), ("Widget", _widget, _WIDGETS)):
        yield f"managed fields of a {name} updated", Row(make, partial(_updated, handlers), 2_000)
        yield f"managed fields of a {name} applied", Row(make, partial(_applied, handlers), 2_000)
    for group, kind, version in generate.ALL:
        if version != HUB:
            yield f"conversion of {kind} {version}", _conversion(group, kind, version)
    yield "pruning", Row(_unpruned, lambda obj: prune(obj, _DEFAULTED), 8_000)
    yield "defaulting", Row(_unpruned, lambda obj: apply_defaults(obj, _DEFAULTED), 8_000)
    yield "drain", Row(lambda n: [DrainPod(key=ObjectKey("ns", f"pod-{i}")) for i in range(n)], _drained, 2_000)
    yield "garbage collection", Row(_with_dependents, _collected, 800)
    yield "deletion of a namespace", Row(_with_dependents, _emptied, 800)
    yield "definitions", Row(_definitions, _defined, 800)
    yield "discovery of groups", Row(_served, groups.group_list, 8_000)
    yield "aggregated discovery", Row(_served, partial(groups.aggregated, core=False, version="v2"), 2_000)
    yield "index of OpenAPI documents", Row(_served, partial(_openapi_index, generation=1), 2_000)
    yield "cloud-init", Row(_node, cloudinit.render, 2_000)
    yield "ignition", Row(_node, ignition.render, 1_000)
    yield "admission of an address pool", Row(_pool, partial(judge, IN_CLUSTER_IP_POOL.rules), ENTRIES)
    yield "phrases that are near", Row(lambda n: "control plane " * n, INITIALIZATION.said_in, 4_000)
