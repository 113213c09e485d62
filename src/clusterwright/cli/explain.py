"""`clusterwright explain cluster/NAME [CONDITION]`: why an object is in its state, and who must act."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

import msgspec

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, Object, ObjectKey
from clusterwright.api.scheme import ModelledResource
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli import connect, subjects
from clusterwright.cli.errors import Usage
from clusterwright.cli.files import read_bundle
from clusterwright.cli.layout import Layout, foot
from clusterwright.cli.program import as_called
from clusterwright.cli.record import gather
from clusterwright.cli.similar import similar
from clusterwright.cli.subjects import Subject
from clusterwright.conditions.words import plural
from clusterwright.offline.bundle import BadBundle, Bundle, assemble
from clusterwright.offline.explain import Answer, explain
from clusterwright.offline.orphans import namespace_bundle
from clusterwright.offline.verdict import State, Verdict
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.following import changes, of_cluster
from clusterwright.tables import explanation_as_text

_NET = 30.0
"""Seconds after which the verdict is computed again even if nothing has changed."""
EXIT_CODES: Final[Mapping[State, int]] = {
    State.FINE: 0,
    State.PROGRESSING: 3,
    State.WAITING: 4,
    State.BROKEN: 5,
    State.UNSEEN: 6,
}
"""The exit status of each verdict; 1 and 2 are errors."""
_MOST_OTHERS = 5
_MOST_HISTORY = 20


def run(arguments: argparse.Namespace) -> int:
    """Explain a live object, or one in a bundle. Return 0 also for a cluster in trouble, 1 if there is no answer.

    With --exit-code, the status depends on the verdict.
    """
    try:
        subject, rest = subjects.parse(arguments.words)
        if len(rest) > 1:
            raise subjects.BadSubject(f"unexpected argument {' '.join(rest[1:])!r}: KIND/NAME and at most one CONDITION are expected")
    except subjects.BadSubject as error:
        print(f"clusterwright explain: {error}", file=sys.stderr)
        return 2
    try:
        if arguments.watch and arguments.exit_code:
            raise Usage("--exit-code cannot be combined with --watch: a watch has no last verdict")
        if arguments.watch:
            return asyncio.run(_watch(arguments, subject))
        answer, condition = asyncio.run(explained(arguments, subject, rest[0] if rest else ""))
    except BadBundle as error:
        print(f"clusterwright explain: {error}", file=sys.stderr)
        return 1
    if arguments.output == "json":
        print(msgspec.json.format(msgspec.json.encode(answer.to_json(condition))).decode())
    else:
        kubeconfig = "" if arguments.source else connect.kubeconfig_kubectl_lacks(arguments)
        text = as_text(answer, condition, decisions=arguments.decisions, evidence=arguments.evidence, kubeconfig=kubeconfig)
        headline, _, below = text.partition("\n")
        print(foot(answer.verdict.state, headline, Layout(colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))))
        print(below, end="\n" if below else "")
    return EXIT_CODES[answer.verdict.state] if arguments.exit_code else 0


async def explained(
    arguments: argparse.Namespace, subject: Subject, condition: str = "", *, bundle: Bundle | None = None, keep_secrets: bool = True
) -> tuple[Answer, str]:
    """Return the answer, and the name of a condition's table as it is written; raises BadBundle, ApiError, Failed.

    `bundle`: the bundle of the arguments, if it was read already. `keep_secrets`: let passes read the values of Secrets.
    """
    if bundle is None and arguments.source:
        bundle = read_bundle(arguments.source, subject.name, subject.namespace or arguments.namespace or "")
    elif bundle is None:
        bundle = assemble(await _live(arguments, subject, keep_secrets=keep_secrets))
    answer = explain(bundle, find_subject(bundle, subject, arguments.namespace))
    return answer, _table_name(answer, condition)


async def _watch(arguments: argparse.Namespace, subject: Subject) -> int:
    """Print the verdict whenever it changes, until interrupted or the object is gone."""
    shown: tuple[str, ...] = ()
    async for _ in _occasions(arguments, subject):
        try:
            answer, _ = await explained(arguments, subject)
        except (NotFound, BadBundle) as error:
            if not shown:
                raise
            print(f"{SystemClock().now():%H:%M:%S}  gone: {error}", flush=True)
            return 0
        verdict = answer.verdict
        told = (verdict.state, verdict.object, verdict.brief)  # not what else is said: it counts and tells times
        if told != shown:
            if arguments.output == "json":
                print(msgspec.json.encode(answer.to_json()).decode(), flush=True)
            else:
                print(f"{SystemClock().now():%H:%M:%S}  {verdict.headline}", flush=True)
            shown = told
    return 0


async def _occasions(arguments: argparse.Namespace, subject: Subject) -> AsyncGenerator[None, None]:
    """Yield at once, after every change in the cluster, and regularly: time limits expire, and etcd has no watch."""
    if arguments.source:
        yield
        return
    connection = connect.resolve(arguments)
    namespace = subject.namespace or arguments.namespace or connection.namespace
    async with connect.connected(connection) as client:
        name = subject.name if subject.kind == "Cluster" else _cluster_of(await _found(client, subject, namespace))
        async with aclosing(changes(client, of_cluster(ObjectKey(namespace, name)))) as changed:
            following: asyncio.Task[None] | None = None
            while True:
                following = following or asyncio.ensure_future(anext(changed))
                done, _ = await asyncio.wait({following}, timeout=_NET)
                if done:
                    following = following.result()
                yield


async def _live(arguments: argparse.Namespace, subject: Subject, *, keep_secrets: bool) -> list[Json]:
    """Return the bundle of the Cluster that the subject is or belongs to."""
    arguments.namespace = subject.namespace or arguments.namespace
    if subject.kind == "Cluster":
        return await gather(arguments, subject.name, keep_secrets=keep_secrets)
    connection = connect.resolve(arguments)
    async with connect.connected(connection) as client:
        namespace = arguments.namespace or connection.namespace
        cluster = _cluster_of(await _found(client, subject, namespace))
        if await client.find(Cluster, ObjectKey(namespace, cluster)) is None:
            return await namespace_bundle(client, namespace, SystemClock().now(), keep_secrets=keep_secrets)
    return await gather(arguments, cluster, keep_secrets=keep_secrets)


async def _found(client: Client, subject: Subject, namespace: str) -> Object:
    """Return the object that a user named; raises ApiError, BadBundle."""
    resource = subjects.resource_of(subject.kind)
    if resource is None or not isinstance(resource, ModelledResource):
        hint = similar(subject.kind.lower(), subjects.words())
        raise BadBundle(f"{subject.kind} is not one of our kinds{f'; {hint}' if hint else ': record its cluster and use --from'}")
    return await client.get(resource.model, ObjectKey(namespace, subject.name))


def _cluster_of(obj: Object) -> str:
    """Return the name of the Cluster that an object belongs to."""
    owners = [reference.name for reference in obj.metadata.owner_references if reference.kind == "Cluster"]
    name = obj.metadata.labels.get(CLUSTER_NAME_LABEL) or getattr(getattr(obj, "spec", None), "cluster_name", "") or next(iter(owners), "")
    if not name:
        raise BadBundle(f"{obj.kind} {obj.key} does not belong to a Cluster")
    return str(name)


def find_subject(bundle: Bundle, given: Subject, namespace: str = "") -> str:
    """Return `Kind/namespace/name` of the object that a user named: any case, plural or singular, with or without namespace."""
    kind, name = given.kind, given.name
    namespace = given.namespace or namespace
    hits = []
    for obj in bundle.objects:
        singular = obj["kind"].lower()
        metadata = obj["metadata"]
        if kind.lower() not in {singular, plural(singular)} or metadata["name"] != name:
            continue
        if not namespace or metadata.get("namespace") == namespace:
            hits.append(f"{obj['kind']}/{metadata.get('namespace') or ''}/{name}")
    if not hits:
        raise BadBundle(f"{kind.lower()}/{name} is not in the bundle")
    if len(set(hits)) > 1:
        raise BadBundle(f"{kind.lower()}/{name} is ambiguous: {', '.join(sorted(set(hits)))}")
    return hits[0]


def _table_name(answer: Answer, given: str) -> str:
    if not given:
        return ""
    for table in answer.tables:
        if table.table.lower() == given.lower():
            return table.table
    for written in answer.status.get("conditions") or ():
        if written["type"].lower() == given.lower():
            return str(written["type"])
    known = [t.table for t in answer.tables]
    hint = similar(given, known)
    if not hint:
        hint = f"known ones: {', '.join(known)}" if known else "the pass ended before any condition was decided"
    raise BadBundle(f"{answer.subject} has no condition {given}; {hint}")


def as_text(answer: Answer, condition: str = "", *, decisions: bool = False, evidence: bool = False, kubeconfig: str = "") -> str:
    """Return the answer for a terminal: one screen, or more with the decisions. `kubeconfig`: one that kubectl must be told."""
    lines = [*verdict_lines(answer.verdict, kubeconfig)]
    if condition:
        lines += _condition_lines(answer, condition)
    others = [c for c in answer.causes if c["object"] != answer.verdict.object]
    if others and answer.verdict.state is not State.FINE:
        lines += ["", "Also:", *(f"  {c['object']}: {c['what'].partition(chr(10))[0]}" for c in others[:_MOST_OTHERS])]
        lines += [f"  and {len(others) - _MOST_OTHERS} more (-o json)"] if len(others) > _MOST_OTHERS else []
    if evidence and answer.evidence:
        lines += ["", "Evidence:"]
        told = ("{object}: {sort}: {text}".format_map(piece) for piece in answer.evidence)
        lines += [f"  {_indented(text, 4)}" for text in told]
    if decisions and answer.tables:
        lines += ["", "Decisions of this pass:"]
        width = max(len(t.table) for t in answer.tables)
        for table in {t.table: t for t in answer.tables}.values():
            outcome = table.decision.outcome
            shown = f"{outcome.status:<8}{outcome.reason}" if outcome else "unchanged"
            lines.append(f"  {table.table:<{width}}  {table.decision.row:<24}  {shown}")
    if decisions and answer.history:
        lines += ["", "Decided before, by running controllers:"]
        lines += [f"  {m.at}  {m.about}: {m.text}" for m in answer.history[-_MOST_HISTORY:]]
    if answer.error:
        lines += ["", f"The pass ends in an error: {answer.error}"]
    lines += [line for note in answer.notes for line in ("", f"Note: {note}")]
    return "\n".join(lines)


def _condition_lines(answer: Answer, condition: str) -> list[str]:
    """Return a condition with its table; without it, the condition as written, if its pass could not be run."""
    decided = [t for t in answer.tables if t.table == condition]
    if not decided:
        written = next(c for c in answer.status["conditions"] if c["type"] == condition)
        line = f"{condition}={written.get('status')}  {written.get('reason')}  {written.get('message') or ''}".rstrip()
        return ["", line, "  as it was written: the pass that decides it needs facts that are not known here"]
    outcome = decided[-1].decision.outcome
    lines = ["", explanation_as_text(decided[-1]), ""]
    if outcome is not None:
        lines.append(f"{condition}={outcome.status}  {outcome.reason}  {outcome.message}".rstrip())
    return lines


def verdict_lines(verdict: Verdict, kubeconfig: str = "") -> list[str]:
    """Return a verdict for a terminal: the headline, and the lines below it."""
    lines = [verdict.headline, *(f"    {line}" for line in verdict.what.splitlines()[1:])]
    told = {"field": verdict.field, "since": verdict.since, "who": verdict.who, "next": verdict.next}
    told["command"] = _runnable(verdict.command, kubeconfig)
    lines += [f"  {name:<7}  {value}" for name, value in told.items() if value]
    if len(verdict.evidence) > 1:
        lines += ["", "How it gets there:"]
        lines += [f"  {'  ' * n}{_indented(link, 4 + 2 * n)}" for n, link in enumerate(verdict.evidence)]
    return lines


def _runnable(command: str, kubeconfig: str) -> str:
    """Return a command as it must be typed here: how this program was called, and the kubeconfig that kubectl does not find by itself."""
    if kubeconfig and "--kubeconfig" not in command:
        command = re.sub(r"^kubectl(?= )", lambda _: f"kubectl --kubeconfig {shlex.quote(kubeconfig)}", command)
    return re.sub(r"^clusterwright\b", lambda _: as_called(), command)


def _indented(text: str, by: int = 9) -> str:
    return text.replace("\n", "\n" + " " * by)
