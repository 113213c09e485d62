"""`clusterwright plan`: see what a change will do before it is made."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from clusterwright.api import yamlreader
from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind
from clusterwright.api.wellknown import TOPOLOGY_OWNED_LABEL
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli import connect, subjects
from clusterwright.cli.errors import Failed
from clusterwright.cli.files import read_bundle, read_text
from clusterwright.controllers.kit.features import UnknownFeature, parse_features
from clusterwright.offline.bundle import Bundle
from clusterwright.plan import policy
from clusterwright.plan.captured import Captured, from_bundle
from clusterwright.plan.changes import BadChange, Change, Delete, Edit, checked, parse_set
from clusterwright.plan.engine import plan
from clusterwright.plan.reading import capture, moved
from clusterwright.plan.result import Plan
from clusterwright.plan.samples import rendered, rendering
from clusterwright.plan.words import as_markdown, as_text
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtimesdk.https import HttpsPost
from clusterwright.runtimesdk.registry import Handler


def run(arguments: argparse.Namespace) -> int:
    """Print the plan. Return 0 if there is nothing to do, 2 for changes, 3 for replacements, 1 if it is refused or denied."""
    try:
        rules = policy.parse(arguments.deny)
        if arguments.policy:
            rules += policy.from_document(_document(arguments.policy))
        features = parse_features(arguments.feature_gates or "")
        if arguments.runs < 0:
            raise BadChange("--runs: a number of at least 0 is expected")
        captured, changes, notes = _of_class(arguments) if arguments.folder else (*_captured(arguments), [])
    except (BadChange, policy.BadPolicy, UnknownFeature, subjects.BadSubject) as error:
        raise Failed(str(error)) from None  # not 2: that means changes
    captured = replace(captured, features={**captured.features, **features})
    with silenced():
        made = plan(captured, changes, runs=arguments.runs, call=_call if arguments.call_extensions else None)
    if not arguments.source and not arguments.folder and (gone := asyncio.run(_moved(arguments, captured, changes))):
        raise Failed(f"{', '.join(gone)} changed while the plan was made; make it again")
    made.denied = policy.broken(made, rules)
    made.notes += notes
    if arguments.folder and arguments.output == "text" and not made.refused:
        print(dump_all(rendered(made.objects, TOPOLOGY_OWNED_LABEL)), end="")
        print("\n".join([*made.notes, *(f"{s.object}: {s.why}" for s in made.stuck)]), file=sys.stderr)
    else:
        show(made, arguments.output)
    if arguments.folder:
        return 1 if made.denied or made.refused or made.stuck else 0
    return 1 if made.denied else made.outcome.value[1]


@contextmanager
def silenced() -> Iterator[None]:
    """Log nothing: passes that fail are part of a plan, which has the results."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


async def asked(
    arguments: argparse.Namespace, manifests: str, edit: str, values: Sequence[str], delete: str, bundle: Bundle | None
) -> Plan:
    """Return the plan of a change that a program asks for, on a bundle or a live installation. Raises Failed, ApiError."""
    connection = None if bundle is not None else connect.resolve(arguments)
    namespace = arguments.namespace or (connection.namespace if connection is not None else _first_namespace(bundle))
    given = argparse.Namespace(
        filename=[], kustomize="", edit=[edit] if edit else [], values=[(0, v) for v in values], delete=[delete] if delete else [],
        server_side=False, namespace=arguments.namespace, all=False,
    )  # fmt: skip
    try:
        changes = [*checked(_documents(manifests, "manifests"), "manifests", namespace), *_changes(given, namespace)]
    except (BadChange, subjects.BadSubject) as error:
        raise Failed(str(error)) from None
    captured = from_bundle(bundle) if bundle is not None else await _live(given, connection, changes)
    with silenced():
        return await asyncio.to_thread(plan, captured, changes, runs=1)


def _first_namespace(bundle: Bundle | None) -> str:
    objects = bundle.objects if bundle is not None else ()
    return next((str(o["metadata"].get("namespace") or "") for o in objects if o["kind"] == "Cluster"), "default")


def show(made: Plan, form: str) -> None:
    """Print a plan."""
    match form:
        case "json":
            print(msgspec.json.format(msgspec.json.encode(made.to_json())).decode())
        case "markdown":
            print(as_markdown(made))
        case _:
            print(as_text(made))


def _document(source: str) -> Any:
    try:
        return yamlreader.load(read_text(source))
    except yaml.YAMLError as error:
        raise Failed(f"{source}: {' '.join(str(error).split())}") from None


def _of_class(arguments: argparse.Namespace) -> tuple[Captured, list[Change], list[str]]:
    """Read a folder with classes. Raises BadChange, Failed."""
    folder, namespace = Path(arguments.folder), arguments.namespace or "default"
    if not folder.is_dir():
        raise Failed(f"{folder}: no such folder")
    if arguments.filename or arguments.edit or arguments.delete or arguments.source:
        raise BadChange("--class cannot be combined with -f, --edit, --delete or --from")
    files = sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml", ".json"})
    manifests = [one for path in files for one in checked(_documents(read_text(str(path)), str(path)), str(path), namespace)]
    values = dict(parse_set(text, _value) for _, text in arguments.values or ())
    captured, changes, notes = rendering(manifests, SystemClock().now(), values)
    return captured, list(changes), notes


def _captured(arguments: argparse.Namespace) -> tuple[Captured, list[Change]]:
    """Read the manifests, then the objects that they are about."""
    if arguments.source:
        bundle = read_bundle(arguments.source)
        return from_bundle(bundle), _changes(arguments, arguments.namespace or _first_namespace(bundle))
    connection = connect.resolve(arguments)
    changes = _changes(arguments, arguments.namespace or connection.namespace)
    return asyncio.run(_live(arguments, connection, changes)), changes


async def _live(arguments: argparse.Namespace, connection: Any, changes: Sequence[Change]) -> Captured:
    clock = SystemClock()
    namespaces = [_namespace_of(c) for c in changes if _namespace_of(c)] or [arguments.namespace or connection.namespace]
    if arguments.all:
        namespaces = [""]
    async with connect.connected(connection):  # it explains connections that fail
        transport = HttpTransport(connection, clock, os.environ)
        try:
            return await capture(transport, namespaces, clock.now(), connect.reach, {c.name for c in changes})
        finally:
            await transport.close()


async def _moved(arguments: argparse.Namespace, captured: Captured, changes: Sequence[Change]) -> list[str]:
    connection = connect.resolve(arguments)
    async with connect.connected(connection):
        transport = HttpTransport(connection, SystemClock(), os.environ)
        try:
            return await moved(transport, captured, {c.name for c in changes})
        finally:
            await transport.close()


def _namespace_of(change: Change) -> str:
    match change:
        case Edit() | Delete():
            return change.key.namespace
        case _:
            return str(change.object["metadata"].get("namespace") or "")


def _changes(arguments: argparse.Namespace, namespace: str) -> list[Change]:
    """Return the changes of the command line: manifests first, then edits, then deletions. Raises BadChange."""
    made: list[Change] = []
    for source in arguments.filename:
        made += _manifests(read_text(source), source, namespace, arguments)
    if arguments.kustomize:
        made += _manifests(_kustomized(arguments.kustomize), arguments.kustomize, namespace, arguments)
    values = list(arguments.values or ())
    for index, word in enumerate(arguments.edit):
        own = tuple(parse_set(text, _value) for n, text in values if n == index)
        if not own:
            raise BadChange(f"--edit {word}: at least one --set PATH=VALUE is expected after it")
        made.append(Edit(*_subject(word, namespace), own))
    return made + [Delete(*_subject(word, namespace)) for word in arguments.delete]


def _manifests(text: str, source: str, namespace: str, arguments: argparse.Namespace) -> list[Change]:
    return [replace(one, server_side=arguments.server_side) for one in checked(_documents(text, source), source, namespace)]


def _documents(text: str, source: str) -> list[Any]:
    try:
        return yamlreader.load_all(text)
    except yaml.YAMLError as error:
        raise Failed(f"{source}: {' '.join(str(error).split())}") from None


def _value(text: str) -> Any:
    try:
        return yamlreader.load(text)
    except yaml.YAMLError as error:
        raise BadChange(f"--set ...={text}: {' '.join(str(error).split())}") from None


def _subject(word: str, namespace: str) -> tuple[GroupVersionKind, Any]:
    subject, rest = subjects.parse([word])
    resource = subjects.resource_of(subject.kind)
    if resource is None or rest:
        raise BadChange(f"{word}: KIND/NAME with a kind of Cluster API or Kubernetes is expected; use -f for other kinds")
    return resource.gvk, subjects.key_of(subject, resource, namespace)


def _kustomized(folder: str) -> str:
    if not Path(folder).is_dir():
        raise Failed(f"{folder}: no such folder")
    try:
        done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, check=False, text=True)  # noqa: S603, S607
    except FileNotFoundError:
        raise Failed("-k needs kubectl: it is not on the PATH; pipe the manifests to `plan -f -` instead") from None
    if done.returncode:
        raise Failed(f"kubectl kustomize {folder}: {' '.join(done.stderr.split())}")
    return done.stdout


async def _call(handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
    """Call a runtime extension over the network. The replica's time stands still meanwhile."""

    async def exchange() -> tuple[int, bytes]:
        post = HttpsPost("", "")
        try:
            return await post(handler, url, body)
        finally:
            await post.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, exchange()).result()
