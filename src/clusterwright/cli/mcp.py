"""`clusterwright mcp`: a server of the Model Context Protocol on standard input and output, for assistants that inspect clusters.

It reads any Cluster API installation with the rights of the caller's kubeconfig, or a bundle. It changes nothing. Answers contain no values
of Secrets, because objects are redacted as by `clusterwright record`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from clusterwright import __version__
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.cli import connect, subjects
from clusterwright.cli.describe import look
from clusterwright.cli.errors import Usage, told
from clusterwright.cli.explain import as_text, explained
from clusterwright.cli.files import read_bundle
from clusterwright.cli.layout import render
from clusterwright.cli.mcpserver import LONGEST, Answer, Server, Tool, ToolFailed
from clusterwright.cli.record import gather
from clusterwright.cli.subjects import Subject
from clusterwright.cli.timeline import as_text as timeline_text
from clusterwright.cli.timeline import moments_of, selected
from clusterwright.offline import glance
from clusterwright.offline.bundle import BadBundle, Bundle, assemble
from clusterwright.offline.reported import Sight
from clusterwright.offline.world import World
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import sample_keys

MOST_MOMENTS: Final = 200
_KEPT: Final = ("subject", "verdict", "causes", "chain", "notes", "rows")
"""Fields of an explanation that answers contain. Others contain whole objects."""
_INSTRUCTIONS: Final = (
    "Explains Kubernetes clusters that Cluster API manages. Begin with `clusters` to see which there are and how they are, then ask "
    "`explain` for one that is not fine: it names the cause, the person to act, and a command that helps. Everything is read-only."
)
_CLUSTER: Final[Json] = {"type": "string", "description": "the name of the Cluster"}
_NAMESPACE: Final[Json] = {"type": "string", "description": "its namespace; default: that of the kubeconfig's context"}


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    if arguments.source == "-":
        raise Usage("--from -: standard input carries the requests; name a file")
    return asyncio.run(_serve(arguments))


async def _serve(arguments: argparse.Namespace) -> int:
    out = sys.stdout.buffer

    def send(line: bytes) -> None:
        out.write(line + b"\n")
        out.flush()

    tools = Tools(arguments)
    server = Server("clusterwright", __version__, _INSTRUCTIONS, tools.listed(), send)
    await server.serve(_lines())
    return 0


async def _lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input; of an overlong line, only enough to detect it."""
    loop = asyncio.get_running_loop()
    source = sys.stdin.buffer
    while True:
        line = await loop.run_in_executor(None, source.readline, LONGEST + 2)
        if not line:
            return
        while not line.endswith(b"\n") and (rest := await loop.run_in_executor(None, source.readline, LONGEST)):
            line = line[: LONGEST + 1] + rest[-1:]
        yield line


class Tools:
    """The tools, answered from a live installation or from a bundle."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._bundle = read_bundle(arguments.source) if arguments.source else None

    def listed(self) -> list[Tool]:
        """Return all tools."""
        condition: Json = {"type": "string", "description": "a condition whose decision table is shown, too"}
        kind: Json = {"type": "string", "description": "e.g. Cluster, Machine, KubeadmControlPlane; default: Cluster"}
        return [
            Tool(
                name="clusters",
                title="List clusters with verdicts",
                description="Every Cluster with a verdict (fine, progressing, waiting, broken, could not see), its cause and its start.",
                properties={"namespace": {"type": "string", "description": "list only this namespace; default: all"}},
                call=self._clusters,
            ),
            Tool(
                name="explain",
                title="Explain an object",
                description="Explain the state of a Cluster or its object: cause, time, responsible person, next step, evidence.",
                properties={"name": {"type": "string", "description": "the object's name"}, "kind": kind, "namespace": _NAMESPACE}
                | {"condition": condition},
                required=("name",),
                call=self._explain,
            ),
            Tool(
                name="describe",
                title="Describe a cluster",
                description="Show a Cluster as a tree of its objects, each with its summary condition.",
                properties={"name": _CLUSTER, "namespace": _NAMESPACE},
                required=("name",),
                call=self._describe,
            ),
            Tool(
                name="timeline",
                title="Show what happened to a cluster",
                description=f"Show the history of a Cluster: conditions, Events and verdicts by time; the newest {MOST_MOMENTS}.",
                properties={
                    "name": _CLUSTER,
                    "namespace": _NAMESPACE,
                    "since": {"type": "string", "description": "only newer moments: a duration such as 30m or 2h, or a time in RFC 3339"},
                    "decisions": {"type": "boolean", "description": "also the rows of decision tables that fired"},
                },
                required=("name",),
                call=self._timeline,
            ),
            Tool(
                name="plan",
                title="Show what a change would do",
                description="Show what a change would do, without making it: objects created, changed, replaced and deleted, Machines that "
                "roll out and why, what would wait or never end, and how long it would take. Give manifests, an edit, or a deletion.",
                properties={
                    "manifests": {"type": "string", "description": "manifests to apply, as YAML"},
                    "edit": {"type": "string", "description": "an object to change, as kind/name or kind/namespace/name"},
                    "set": {"type": "string", "description": "values to set there: one path=value per line, e.g. spec.replicas=3"},
                    "delete": {"type": "string", "description": "an object to delete, as kind/name or kind/namespace/name"},
                    "namespace": _NAMESPACE,
                },
                call=self._plan,
            ),
        ]

    # ------------------------------------------------------------------------------------------------- tools

    async def _clusters(self, given: Mapping[str, Any]) -> Answer:
        namespace = given.get("namespace", "")
        with _failures():
            if (bundle := self._bundle) is not None:
                unseen = {t.kind: t.error for t in bundle.observation.unseen}
                fleet = glance.Fleet(bundle.objects, Sight(bundle.moment(), frozenset(bundle.observation.seen), unseen))
            else:
                async with connect.connected(connect.resolve(self._arguments)) as client:
                    fleet = await glance.read(client, namespace, SystemClock().now())
        found = {key: fleet.verdict(key) for key in fleet.clusters if namespace in ("", key.namespace)}
        data = [{"namespace": key.namespace, "name": key.name, **verdict.to_json()} for key, verdict in found.items()]
        text = "\n".join(f"{key}: {verdict.headline}" for key, verdict in found.items())
        return Answer(text or "no clusters found", {"clusters": data})

    async def _explain(self, given: Mapping[str, Any]) -> Answer:
        with _failures():
            subject = Subject(subjects.kind_of(given.get("kind") or "Cluster"), given.get("namespace", ""), given["name"])
            answer, condition = await explained(
                self._own(given), subject, given.get("condition", ""), bundle=self._bundle, keep_secrets=False
            )
        data = answer.to_json(condition)
        return Answer(as_text(answer, condition), {k: v for k, v in data.items() if k in (*_KEPT, "tables")})

    async def _describe(self, given: Mapping[str, Any]) -> Answer:
        with _failures():
            if (bundle := self._bundle) is not None:
                key = _key(bundle, given)
                tree, now = await look(World(bundle, bundle.moment(), sample_keys()).client, key), bundle.moment()
            else:
                connection = connect.resolve(self._arguments)
                key, now = ObjectKey(self._namespace(given) or connection.namespace, given["name"]), SystemClock().now()
                async with connect.connected(connection) as client:
                    tree = await look(client, key)
        text = render(tree, now)
        return Answer(text, {"cluster": str(key), "tree": text.splitlines()})

    async def _timeline(self, given: Mapping[str, Any]) -> Answer:
        with _failures():
            bundle = self._bundle
            if bundle is None:
                own = self._own(given)
                namespace = self._namespace(given) or connect.resolve(own).namespace
                bundle = assemble(await gather(own, f"{namespace}/{given['name']}"))
            since = given.get("since", "")
            found = selected(moments_of(bundle, given["name"]), bundle.moment(), since=since, decisions=bool(given.get("decisions")))
        newest = found[-MOST_MOMENTS:]
        left_out = len(found) - len(newest)
        text = "\n".join([*([f"{left_out} older moments are left out"] if left_out else []), *timeline_text(newest)])
        return Answer(text or "nothing happened", {"moments": [m.to_json() for m in newest], "leftOut": left_out})

    async def _plan(self, given: Mapping[str, Any]) -> Answer:
        from clusterwright.cli.plan import asked  # only now: it needs the whole system
        from clusterwright.plan.words import as_text as plan_text

        values = [line.strip() for line in given.get("set", "").splitlines() if line.strip()]
        with _failures():
            parts = (given.get("manifests", ""), given.get("edit", ""), values, given.get("delete", ""))
            made = await asked(self._own(given), *parts, self._bundle)
        data = made.to_json()
        return Answer(plan_text(made), {name: value for name, value in data.items() if name != "trace"})

    # ------------------------------------------------------------------------------------------------ sources

    def _namespace(self, given: Mapping[str, Any]) -> str:
        return str(given.get("namespace") or self._arguments.namespace)

    def _own(self, given: Mapping[str, Any]) -> argparse.Namespace:
        """Return a copy of the server's flags with the namespace of the call: commands may change their flags."""
        return argparse.Namespace(**{**vars(self._arguments), "namespace": self._namespace(given)})


def _key(bundle: Bundle, given: Mapping[str, Any]) -> ObjectKey:
    for obj in bundle.objects:
        metadata = obj["metadata"]
        is_named = obj["kind"] == "Cluster" and metadata["name"] == given["name"]
        if is_named and given.get("namespace") in (None, "", metadata.get("namespace")):
            return ObjectKey(metadata.get("namespace") or "", metadata["name"])
    raise BadBundle(f"cluster/{given['name']} is not in the bundle")


class _failures:  # noqa: N801  # used as a word
    """Turn errors that commands report to users into the failure of a tool."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BadBundle):
            raise ToolFailed(str(error)) from None
        if isinstance(error, Exception) and (found := told(error)) is not None:
            raise ToolFailed(found[0]) from None
