"""`clusterwright get KIND [NAME]`: print objects as the API server shows them, or a cluster's kubeconfig."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec

from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import Resource
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.api.wire import Request
from clusterwright.cli import connect, discovery, subjects
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.forms import Form, form
from clusterwright.cli.program import as_called
from clusterwright.cli.tabular import table
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, NotFound, from_response
from clusterwright.runtime.rest import RestClient

_FEW = 10
"""The number of Clusters up to which verdicts read all objects even for the short form."""
_MANY = 100
"""The number of Clusters up to which verdicts read all objects of those that do not report Available."""
_ALL = ("clusters", "kubeadmcontrolplanes", "machinedeployments", "machinesets", "machinepools", "machines", "machinehealthchecks")
"""The kinds of `get all`."""
_BREATH = 0.3
"""Seconds between two readings of `--watch`: what changes meanwhile is one line."""
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def run(arguments: argparse.Namespace) -> int:
    """List objects of a kind, show some by name, or print a cluster's kubeconfig."""
    if arguments.words[0] == "kubeconfig":
        if len(arguments.words) != 2:
            raise Usage("get kubeconfig needs exactly one argument, the name of a cluster")
        return asyncio.run(_kubeconfig(arguments))
    kinds, named = _asked(arguments.words)
    shown = form(arguments.output)
    if arguments.watch and shown is not None:
        raise Usage("--watch prints lines of a table: it cannot be combined with -o, except for wide")
    if named and (arguments.selector or arguments.cluster or arguments.all_namespaces):
        raise Usage("object names cannot be combined with --selector, --cluster or --all-namespaces")
    return asyncio.run(_run(arguments, kinds, named, shown))


def _asked(words: Sequence[str]) -> tuple[list[str], list[subjects.Subject]]:
    """Return the words for the kinds, and the objects; no objects: all objects of the kinds. Raises Usage."""
    kind = words[0].partition("/")[0]
    kinds = [one for word in kind.split(",") if word for one in (_ALL if word == "all" else (word,))]
    if len(kinds) > 1 and (len(words) > 1 or "/" in words[0]):
        raise Usage(f"names cannot be combined with several kinds: {kind}")
    if "/" not in words[0]:
        return kinds, [subjects.parse([f"{kind}/{name}"])[0] for name in words[1:]]
    named = [subjects.parse([word if "/" in word else f"{kind}/{word}"])[0] for word in words]
    if any(subject.kind != subjects.kind_of(kind) for subject in named):
        raise Usage("all names must be of one kind")
    return kinds, named


async def _kubeconfig(arguments: argparse.Namespace) -> int:
    connection = connect.resolve(arguments)
    subject = subjects.parse_cluster(arguments.words[1:])
    from clusterwright.api.core import Cluster
    from clusterwright.api.kubernetes import Secret

    cluster = ObjectKey(subject.namespace or arguments.namespace or connection.namespace, subject.name)
    async with connect.connected(connection) as client:
        secret = await client.find(Secret, ObjectKey(cluster.namespace, f"{cluster.name}-kubeconfig"))
        if secret is None:
            await client.get(Cluster, cluster)
            raise Failed(f"Cluster {cluster} has no kubeconfig yet; wait for it: {as_called()} wait {subject.name} -n {cluster.namespace}")
    sys.stdout.write(secret.data.get("value", b"").decode())
    return 0


async def _run(arguments: argparse.Namespace, kinds: Sequence[str], named: Sequence[subjects.Subject], form_: Form | None) -> int:
    connection = connect.resolve(arguments)
    namespace = "" if arguments.all_namespaces else arguments.namespace or connection.namespace
    labels = ",".join(filter(None, (arguments.selector, arguments.cluster and f"{CLUSTER_NAME_LABEL}={arguments.cluster}")))
    async with connect.connected(connection) as client:
        asked = [_Asked(await discovery.resource_of(client, kind), namespace, named, labels) for kind in kinds]
        if form_ is None:
            tables = [await _table(client, one, arguments) for one in asked]
            sys.stdout.write("\n".join(f"{shown}\n" for shown in tables if shown))
            if arguments.watch:
                sys.stdout.flush()
                await asyncio.gather(*(_follow(client, one, arguments) for one in asked))
            return 0
        found = [(one.resource, answer) for one in asked for answer in await one.read(client, "application/json")]
    objects = [_shown(item, resource) for resource, answer in found for item in ([answer] if named else answer["items"])]
    sys.stdout.write(form_(objects, len(named) == 1))
    return 0


async def _follow(client: RestClient, asked: _Asked, arguments: argparse.Namespace) -> None:
    """Print a line for each object that changes, until cancelled."""
    names = {s.name for s in asked.named}
    known: dict[str, str] = {}
    with_namespace = arguments.all_namespaces and asked.resource.namespaced
    first = True
    while True:
        answers = await asked.read(client, _TABLE)
        version = answers[0].get("metadata", {}).get("resourceVersion", "")
        lines = _rows(answers, is_wide=arguments.output == "wide", with_namespace=with_namespace)[1:]
        rows = [row for answer in answers for row in answer["rows"]]
        now = {_place(row): row["object"]["metadata"].get("resourceVersion", "") for row in rows}
        for row, line in zip(rows, lines, strict=True):
            if not first and known.get(_place(row)) != now[_place(row)]:
                print("   ".join(line), flush=True)
        for place in known.keys() - now.keys():
            print(f"{place}   deleted", flush=True)
        known, first = now, False
        await asyncio.sleep(_BREATH)
        await _changed(client, asked, version, names)


def _place(row: Mapping[str, Any]) -> str:
    metadata = row["object"]["metadata"]
    return "/".join(filter(None, (metadata.get("namespace", ""), metadata["name"])))


async def _changed(client: RestClient, asked: _Asked, version: str, names: Collection[str]) -> None:
    """Wait until an object of the kind changes."""
    query = [("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", "300")]
    query += [("labelSelector", asked.labels)] if asked.labels else []
    path = asked.resource.path(asked.namespace)
    response, lines = await client.transport.stream(Request(method="GET", path=path, query=tuple(query), headers=client.headers))
    if response.status >= 300 and response.status != 410:  # 410: what was read is too old, and is read again
        raise from_response(response.status, response.body)
    async with aclosing(lines) as chunks:  # type: ignore[type-var]  # an async generator
        async for chunk in chunks:
            if chunk.strip() and (not names or any(f'"{name}"'.encode() in chunk for name in names)):
                return


async def _table(client: RestClient, asked: _Asked, arguments: argparse.Namespace) -> str:
    """Return the objects as a table; empty if there are none, with a note on standard error."""
    resource, is_wide = asked.resource, arguments.output == "wide"
    is_judged = resource.kind == "Cluster"
    answers = await asked.read(client, _TABLE, with_objects=is_judged)
    verdicts = await _verdicts(client, answers, is_wide=is_wide) if is_judged else None
    lines = _rows(answers, is_wide=is_wide, with_namespace=arguments.all_namespaces and resource.namespaced, verdicts=verdicts)
    if len(lines) > 1:
        return table(lines)
    where = f" in namespace {asked.namespace}" if asked.namespace and resource.namespaced else ""
    print(f"No {resource.plural} found{where}.{await _why_none(client, asked)}", file=sys.stderr)
    return ""


async def _why_none(client: RestClient, asked: _Asked) -> str:
    """Return what may be wrong with a question that found nothing; empty if nothing is known."""
    if asked.resource.kind == "Node":
        return f" Nodes are in the API servers of their clusters: {as_called()} get kubeconfig CLUSTER"
    if asked.namespace and asked.resource.namespaced:
        try:
            await _read(client, f"/api/v1/namespaces/{asked.namespace}", (), "application/json")
        except NotFound:
            return f" Namespace {asked.namespace} does not exist; -A lists all namespaces."
        except ApiError:
            return ""
    return ""


class _Asked(NamedTuple):
    """The request for one kind: which objects, in which namespace."""

    resource: Resource
    namespace: str
    named: Sequence[subjects.Subject]
    labels: str

    async def read(self, client: RestClient, accept: str, *, with_objects: bool = False) -> list[Any]:
        """Return one answer for each named object, or one for the whole collection. Raises ApiError."""
        places = [self.resource.path(s.namespace or self.namespace, s.name) for s in self.named] or [self.resource.path(self.namespace)]
        query = (*((("labelSelector", self.labels),) if self.labels else ()), *((("includeObject", "Object"),) if with_objects else ()))
        return [await _read(client, place, query, accept) for place in places]


async def _read(client: RestClient, path: str, query: tuple[tuple[str, str], ...], accept: str) -> Any:
    response = await client.transport.send(Request(method="GET", path=path, query=query, headers={**client.headers, "accept": accept}))
    if response.status >= 300:
        raise from_response(response.status, response.body)
    return msgspec.json.decode(response.body)


def _shown(item: Mapping[str, Any], resource: Resource) -> Mapping[str, Any]:
    """Return an object as kubectl shows it: items of lists have their kind, and managedFields are left out."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {"apiVersion": resource.gvk.api_version, "kind": resource.kind, **item, "metadata": metadata}


async def _verdicts(client: RestClient, answers: Sequence[Mapping[str, Any]], *, is_wide: bool) -> dict[ObjectKey, str]:
    """Return the verdict of each Cluster: state and object at fault; in the wide form the whole headline.

    If there are few Clusters, or for the wide form, all objects are read. For more Clusters, objects are read only for those that do not
    report that they are well. For very many, only their own status is read.
    """
    from clusterwright.offline import glance  # only now: other kinds have no verdict
    from clusterwright.offline.verdict import State

    clusters = [row["object"] for answer in answers for row in answer["rows"]]
    now = SystemClock().now()
    found = {ObjectKey(c["metadata"].get("namespace", ""), c["metadata"]["name"]): c for c in clusters}
    judged, looked_at = {}, set(found)
    if not is_wide and len(found) > _FEW:
        judged = {key: glance.own_verdict(cluster, now) for key, cluster in found.items()}
        looked_at = {key for key, verdict in judged.items() if verdict.state is not State.FINE} if len(found) <= _MANY else set()
    for namespace in sorted({key.namespace for key in looked_at}):
        fleet = await glance.read(client, namespace, now)
        judged |= {key: fleet.verdict(key) for key in fleet.clusters if key in looked_at}
    return {key: verdict.headline if is_wide else verdict.short for key, verdict in judged.items()}


def _rows(
    answers: Sequence[Mapping[str, Any]], *, is_wide: bool, with_namespace: bool, verdicts: Mapping[ObjectKey, str] | None = None
) -> list[list[str]]:
    """Return the head and rows of Tables of one kind, and verdicts if any; columns with a priority above 0 need the wide form."""
    columns = answers[0]["columnDefinitions"]
    shown = [index for index, column in enumerate(columns) if is_wide or not column.get("priority")]
    said = ["VERDICT"] if verdicts is not None else []
    rows = [[*(["NAMESPACE"] if with_namespace else []), *(columns[i]["name"].upper() for i in shown), *said]]
    for answer in answers:
        for row in answer["rows"]:
            metadata = row["object"]["metadata"]
            place = [metadata.get("namespace", "")] if with_namespace else []
            said = [verdicts.get(ObjectKey(metadata.get("namespace", ""), metadata["name"]), "")] if verdicts is not None else []
            rows.append([*place, *(_cell(row["cells"][i]) for i in shown), *said])
    return rows


def _cell(value: Any) -> str:
    return "<none>" if value is None or value == "" else str(value)
