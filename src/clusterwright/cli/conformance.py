"""`clusterwright conformance --ROLE-template FILE`: judge a running provider by the rules of the contract."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shlex
import sys
import time
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import yaml

from clusterwright.api import yamlreader
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.cli import connect
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_text
from clusterwright.conformance import Judgement, Options, Pace, Role, UnknownKind, Write, as_json, as_junit, as_text, judge
from clusterwright.conformance.audit import writes
from clusterwright.runtime.errors import AlreadyExists, NotFound
from clusterwright.runtime.rest import RestClient

_ROLES: Final[tuple[tuple[str, Role], ...]] = (
    ("infrastructure_cluster_template", "InfraCluster"),
    ("infrastructure_machine_template", "InfraMachine"),
    ("infrastructure_machine_pool_template", "InfraMachinePool"),
    ("bootstrap_config_template", "BootstrapConfig"),
    ("control_plane_template", "ControlPlane"),
)
_BROKEN: Final = 3


def run(arguments: argparse.Namespace) -> int:
    """Judge every kind that is given. 3: a rule is broken."""
    given = {role: _read(getattr(arguments, flag)) for flag, role in _ROLES if getattr(arguments, flag)}
    if not given:
        raise Usage("a template is required, for example --infrastructure-machine-template FILE")
    data = read_text(arguments.bootstrap_data) if arguments.bootstrap_data else ""
    log = _AuditLog(arguments.audit_log) if arguments.audit_log else None
    judgements = asyncio.run(_run(arguments, given, data, log))
    if arguments.output == "json":
        print(json.dumps(as_json(judgements), indent=2))
    else:
        print(as_text(judgements) if arguments.output == "text" else as_junit(judgements))
    return 0 if all(judgement.conforms for judgement in judgements) else _BROKEN


async def _run(
    arguments: argparse.Namespace, given: dict[Role, tuple[Json, list[Json]]], data: str, log: _AuditLog | None
) -> list[Judgement]:
    connection = connect.resolve(arguments)
    namespace = arguments.namespace or connection.namespace
    pace = Pace(settle=arguments.settle, steady=arguments.settle * 5, within=arguments.timeout)
    turns = asyncio.Lock()

    async def judged(role: Role, template: Json) -> Judgement:
        options = Options(
            namespace=namespace,
            prefix=f"conformance-{secrets.token_hex(2)}",
            secret=secrets.token_hex(16),
            pace=pace,
            failure_domain=arguments.failure_domain,
            data=data,
            restart=(lambda: _restart(arguments.restart_command)) if arguments.restart_command else None,
            writes=log.writes if log is not None else None,
            cluster_template=given["InfraCluster"][0] if "InfraCluster" in given else None,
            definitions_only=arguments.definitions_only,
        )
        # the runs have objects of their own, but a restart ends the provider for all of them
        async with turns if arguments.restart_command else nullcontext():
            print(f"judging {template['kind']} ...", file=sys.stderr)
            return await judge(client, role, template, options)

    async with connect.connected(connection) as client:
        made: list[Json] = []
        try:
            for _, others in given.values():
                made += await _create(client, namespace, others)
            return await _all(judged(role, template) for role, (template, _) in given.items())
        except (UnknownKind, TimeoutError) as error:
            raise Failed(str(error)) from None
        finally:
            for obj in reversed(made):
                meta = obj["metadata"]
                with suppress(NotFound):
                    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
                    await client.delete(kind, ObjectKey(meta.get("namespace", ""), meta["name"]))


async def _all(judging: Iterable[Coroutine[Any, Any, Judgement]]) -> list[Judgement]:
    """Run side by side. After an error, end the others, which remove their objects first; raises that error."""
    tasks = [asyncio.create_task(one) for one in judging]
    try:
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read(source: str) -> tuple[Json, list[Json]]:
    """Return the first object of a file, which is judged, and the others, which it needs. Raises Failed, OSError."""
    try:
        documents = [document for document in yamlreader.load_all(read_text(source), trusted=True) if document]
    except yaml.YAMLError as error:
        raise Failed(f"{source}: {' '.join(str(error).split())}") from None
    for document in documents:
        if not isinstance(document, dict) or not {"apiVersion", "kind", "metadata"} <= document.keys():
            raise Failed(f"{source}: every document must be an object with apiVersion, kind and metadata")
    if not documents:
        raise Failed(f"{source}: a template is expected, the file is empty")
    template, *others = documents
    if not isinstance(template.get("spec"), dict):
        raise Failed(f"{source}: {template['kind']} has no spec")
    return template, others


async def _create(client: RestClient, namespace: str, objects: Sequence[Json]) -> list[Json]:
    """Create the objects of a file that do not exist; return them."""
    made = []
    for obj in objects:
        with suppress(AlreadyExists):
            made.append(dict((await client.create({**obj, "metadata": {"namespace": namespace, **obj["metadata"]}})).json))
    return made


async def _restart(command: str) -> None:
    """Run the command that restarts the provider. Raises Failed."""
    process = await asyncio.create_subprocess_exec(*shlex.split(command), stdin=asyncio.subprocess.DEVNULL, stdout=sys.stderr)
    if await process.wait():
        raise Failed(f"--restart-command: {command!r} ended with status {process.returncode}")


class _AuditLog:
    """The audit log of the plane, from now on."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, path.stat().st_size

    def writes(self) -> list[Write]:
        """Return the writes since the start."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            return list(writes(file, time.time() - asyncio.get_running_loop().time()))
