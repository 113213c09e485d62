"""`clusterwright explain cluster/NAME [CONDITION]`: why an object is in its state, and who must act."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.api.meta import Json, Object, ObjectKey
from clusterwright.api.scheme import CUSTOM
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.cli import connect
from clusterwright.cli.record import gather
from clusterwright.conditions.words import plural
from clusterwright.offline.bundle import BadBundle, Bundle, assemble, parse
from clusterwright.offline.explain import Answer, explain
from clusterwright.runtime.errors import ApiError
from clusterwright.tables import explanation_as_text


def run(argv: Sequence[str]) -> int:
    """Explain a live object, or one in a bundle; 0 also where there is trouble, 1 where the question cannot be answered."""
    parser = argparse.ArgumentParser(
        prog="clusterwright explain",
        description="Say why an object is in its state: causes first, then the chain that leads there, then the decisions.",
    )
    parser.add_argument("subject", metavar="KIND/NAME", help="e.g. cluster/c1, or Cluster/namespace/c1")
    parser.add_argument(
        "condition", nargs="?", default="", metavar="CONDITION", help="print the table of this condition with every guard's value"
    )
    parser.add_argument("--from", dest="source", metavar="FILE", help="a bundle instead of a live cluster; - for standard input")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    connect.add_arguments(parser)
    try:
        arguments = parser.parse_args(list(argv))
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    try:
        bundle = _read(arguments.source) if arguments.source else assemble(asyncio.run(_live(arguments)))
        subject = find_subject(bundle, arguments.subject, arguments.namespace)
        answer = explain(bundle, subject)
        condition = _table_name(answer, arguments.condition)
    except (BadBundle, InvalidKubeconfig, ApiError, OSError) as error:
        print(f"clusterwright explain: {error}", file=sys.stderr)
        return 1
    if arguments.output == "json":
        print(msgspec.json.format(msgspec.json.encode(answer.to_json(condition))).decode())
    else:
        print(as_text(answer, condition))
    return 0


def _read(source: str) -> Bundle:
    raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    if raw.lstrip()[:1] == b"{":
        try:
            return assemble([msgspec.json.decode(raw)])
        except msgspec.DecodeError:
            pass  # several JSON documents are YAML
    return parse(raw.decode())


async def _live(arguments: argparse.Namespace) -> list[Json]:
    """The bundle of the Cluster that the subject is, or belongs to."""
    kind, _, rest = arguments.subject.partition("/")
    namespace, _, name = rest.rpartition("/")
    arguments.namespace = namespace or arguments.namespace
    if kind.lower() in {"cluster", "clusters", "cl"}:
        return await gather(arguments, name, keep_secrets=True)
    model = next((r.model for r in CUSTOM if kind.lower() in {r.singular, r.plural, *r.short_names}), None)
    if model is None:
        raise BadBundle(f"{kind} is no kind of ours: record its cluster and use --from")
    connection = connect.resolve(arguments)
    async with connect.connected(connection) as client:
        found = await client.get(model, ObjectKey(arguments.namespace or connection.namespace, name))
    return await gather(arguments, _cluster_of(found), keep_secrets=True)


def _cluster_of(obj: Object) -> str:
    """The name of the Cluster that an object belongs to."""
    owners = [reference.name for reference in obj.metadata.owner_references if reference.kind == "Cluster"]
    name = obj.metadata.labels.get(CLUSTER_NAME_LABEL) or getattr(getattr(obj, "spec", None), "cluster_name", "") or next(iter(owners), "")
    if not name:
        raise BadBundle(f"{obj.kind} {obj.key} belongs to no Cluster")
    return str(name)


def find_subject(bundle: Bundle, given: str, namespace: str = "") -> str:
    """`Kind/namespace/name` of the object that a user named: any case, plural or singular, with or without namespace."""
    kind, _, rest = given.partition("/")
    given_namespace, _, name = rest.rpartition("/")
    namespace = given_namespace or namespace
    hits = []
    for obj in bundle.objects:
        singular = obj["kind"].lower()
        metadata = obj["metadata"]
        if kind.lower() not in {singular, plural(singular)} or metadata["name"] != name:
            continue
        if not namespace or metadata.get("namespace") == namespace:
            hits.append(f"{obj['kind']}/{metadata.get('namespace') or ''}/{name}")
    if not hits:
        raise BadBundle(f"{given} is not in the bundle")
    if len(set(hits)) > 1:
        raise BadBundle(f"{given} is ambiguous: {', '.join(sorted(set(hits)))}")
    return hits[0]


def _table_name(answer: Answer, given: str) -> str:
    if not given:
        return ""
    for table in answer.tables:
        if table.table.lower() == given.lower():
            return table.table
    known = ", ".join(t.table for t in answer.tables) or "none: no pass came that far"
    raise BadBundle(f"no table {given} decided in this pass; those that did: {known}")


def as_text(answer: Answer, condition: str = "") -> str:
    """The answer for a terminal."""
    lines = [answer.subject]
    if condition:
        table = [t for t in answer.tables if t.table == condition][-1]
        outcome = table.decision.outcome
        lines += ["", explanation_as_text(table), ""]
        if outcome is not None:
            lines.append(f"{condition}={outcome.status}  {outcome.reason}  {outcome.message}".rstrip())
    if not answer.causes:
        lines += ["", "Nothing is wrong."]
    for n, cause in enumerate(answer.causes):
        lines += ["", f"{'Cause' if n == 0 else 'Also'}: {cause['object']}", f"  what   {_indented(cause['what'])}"]
        lines += [f"  since  {cause['since']}"] if cause["since"] else []
        lines += [f"  who    {cause['who']}", f"  next   {cause['next']}"]
    if len(answer.chain) > 1:
        lines += ["", "How it gets there:"]
        lines += [f"  {'  ' * n}{_indented(link, 4 + 2 * n)}" for n, link in enumerate(answer.chain)]
    if answer.tables and not condition:
        lines += ["", "Decisions of this pass:"]
        width = max(len(t.table) for t in answer.tables)
        for table in {t.table: t for t in answer.tables}.values():
            outcome = table.decision.outcome
            shown = f"{outcome.status:<8}{outcome.reason}" if outcome else "unchanged"
            lines.append(f"  {table.table:<{width}}  {table.decision.row:<24}  {shown}")
    if answer.error:
        lines += ["", f"The pass ends in an error: {answer.error}"]
    lines += [line for note in answer.notes for line in ("", f"Note: {note}")]
    return "\n".join(lines)


def _indented(text: str, by: int = 9) -> str:
    return text.replace("\n", "\n" + " " * by)
