"""`clusterwright provider add|list|remove|logs|new`: run other people's providers next to the plane.

The command writes a record into the plane's data directory; the plane installs, starts and supervises. Users who cannot
write that directory cannot make the plane start anything.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

import yaml

from clusterwright.api import yamlreader
from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, ObjectMeta
from clusterwright.api.providers import Provider
from clusterwright.api.scheme import SCHEME
from clusterwright.cli import connect, discovery, tabular
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_text
from clusterwright.cli.program import as_called
from clusterwright.golang import envsubst
from clusterwright.providers import flags, skeleton
from clusterwright.providers.deployment import BadRelease
from clusterwright.providers.records import BadRecord, Place, Record, Removal, place, places
from clusterwright.providers.release import Release, contract_problems, definitions, read
from clusterwright.providers.supervisor import RECORD_ANNOTATION
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.following import follow
from clusterwright.runtime.kubeconfig import Connection
from clusterwright.runtime.rest import RestClient

_HELP_SECONDS: Final = 20.0
_KUSTOMIZE_SECONDS: Final = 120.0
_LARGEST_HELP: Final = 256 * 1024
_SETTLED: Final = frozenset({"Running", "Crashed", "NotStarted", "NotInstalled", "KindsTaken"})
"""States after which `add` waits no longer."""


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand. Return 1 if a provider does not run or is not removed in time."""
    try:
        match arguments.command:
            case "add":
                return asyncio.run(_add(arguments, _record(arguments)))
            case "new":
                return _new(arguments)
            case "list":
                return asyncio.run(_list(arguments))
            case "remove":
                return asyncio.run(_remove(arguments))
            case _:
                return _logs(arguments)
    except (BadRelease, BadRecord) as error:
        raise Failed(str(error)) from None


# ------------------------------------------------------------------------------------------------------------ add


def _record(arguments: argparse.Namespace) -> Record:
    """Return the record of the provider that the arguments describe; raises Usage, Failed, BadRelease."""
    release = _release(arguments)
    binary = shutil.which(arguments.binary)
    if binary is None:
        raise Failed(f"--binary {arguments.binary}: there is no such program, or it is not executable")
    path = str(Path(binary).absolute())
    return Record(
        name=release.name,
        provider=release.provider,
        type=release.type,
        version=release.version,
        namespace=release.namespace,
        objects=release.objects,
        program=release.program,
        binary=(path,),
        extra=tuple(arguments.arg),
        env=dict(_variable(item) for item in arguments.env),
        flags={} if arguments.no_help else _known_flags(path),
        notes=tuple(contract_problems(release.objects)),
    )


def _release(arguments: argparse.Namespace) -> Release:
    source = arguments.source
    text = _built(Path(source)) if source != "-" and Path(source).is_dir() else read_text(source)
    try:
        template = envsubst.parse(text)
    except envsubst.BadTemplate as error:
        raise Failed(f"{source}: {error}") from None
    values = dict(os.environ)
    for item in arguments.set:
        name, is_assigned, value = item.partition("=")
        if not name or not is_assigned:
            raise Usage(f"--set {item}: NAME=VALUE is expected")
        values[name] = value
    missing = sorted(name for name, default in envsubst.variables(template).items() if not default and name not in values)
    if missing:
        raise Failed(f"{source}: no value for {', '.join(missing)}: set it with --set NAME=VALUE or the environment")
    try:
        documents = yamlreader.load_all(envsubst.substitute(template, values), trusted=True)
    except yaml.YAMLError as error:
        raise Failed(f"{source}: {' '.join(str(error).split())}") from None
    try:
        found = read(documents, name=arguments.name, deployment=arguments.deployment, container=arguments.container)
    except BadRelease as error:
        raise Failed(f"{source}: {error}") from None
    for line in found.left_out:
        print(f"left out: {line}", file=sys.stderr)
    return found


def _built(folder: Path) -> str:
    """Return the objects of a kustomization; raises Failed."""
    for program in (("kustomize", "build"), ("kubectl", "kustomize")):
        if shutil.which(program[0]) is None:
            continue
        try:
            built = subprocess.run([*program, str(folder)], capture_output=True, timeout=_KUSTOMIZE_SECONDS, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(program)} {folder}: no result within {_KUSTOMIZE_SECONDS:.0f} s") from None
        if built.returncode:
            raise Failed(f"{' '.join(program)} {folder}: {built.stderr.decode('utf-8', 'replace').strip()[-1000:]}")
        return built.stdout.decode("utf-8", "replace")
    raise Failed(f"{folder} is a folder, and neither kustomize nor kubectl is installed: build it elsewhere, and give the resulting file")


def _variable(item: str) -> tuple[str, str]:
    name, is_assigned, value = item.partition("=")
    if not name or (not is_assigned and name not in os.environ):
        raise Usage(f"--env {item}: NAME=VALUE is expected, or the name of a variable of this shell")
    return name, value if is_assigned else os.environ[name]


def _known_flags(binary: str) -> dict[str, str]:
    """Return the flags that a program's help names. A program without help is not an error."""
    try:
        # it is about to run with the same rights; without the environment it reaches no cluster if it ignores --help
        told = subprocess.run(  # noqa: S603
            [binary, "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_HELP_SECONDS,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{binary} --help: {getattr(error, 'strerror', None) or 'no end'}: its flags are not known", file=sys.stderr)
        return {}
    return flags.known((told.stdout + told.stderr)[:_LARGEST_HELP].decode("utf-8", "replace"))


async def _add(arguments: argparse.Namespace, record: Record) -> int:
    connection = connect.resolve(arguments)
    _check_owner(arguments.data_dir, connection)
    for note in record.notes:
        print(f"contract: {note}", file=sys.stderr)
    async with connect.connected(connection) as client:
        one = place(arguments.data_dir, record.name)
        _check_same(one, record)
        (one.folder / "installed.json").unlink(missing_ok=True)
        digest = one.write(record)
        await _nudge(client, record, digest)
        print(f"provider {record.name} added; its objects are in namespace {record.namespace}", flush=True)
        condition = await _settled(client, record, digest, arguments.timeout)
    shown = f"{condition.get('reason', 'no state')}{': ' if condition.get('message') else ''}{condition.get('message', '')}"
    if condition.get("status") == "True":
        print(f"provider {record.name} runs")
        return 0
    raise Failed(f"provider {record.name} does not run: {shown}\nlogs: {as_called()} provider logs {record.name}")


def _check_same(one: Place, record: Record) -> None:
    """Refuse a record that would replace that of another provider; raises Failed."""
    try:
        before, _ = one.read()
    except (FileNotFoundError, BadRecord):
        return
    accounts = [f"{known.namespace}/{known.program.account}" for known in (before, record)]
    if accounts[0] != accounts[1] and before.removal is None:
        raise Failed(
            f"provider {record.name} exists and uses the ServiceAccount {accounts[0]}; this release uses {accounts[1]}: "
            f"give it another name with --name, or remove the other one first: {as_called()} provider remove {record.name}"
        )


def _check_owner(data_dir: Path, connection: Connection) -> None:
    """Refuse a data directory of another plane; raises Failed."""
    authority = data_dir / "ca.crt"
    if not authority.exists():
        raise Failed(f"{data_dir} is not the data directory of a plane: name it with --data-dir; providers need `up` with a data directory")
    if authority.read_bytes().strip() not in connection.certificate_authority:
        raise Failed(f"{data_dir} is not the data directory of the plane at {connection.server}: name it with --data-dir or --kubeconfig")


async def _nudge(client: RestClient, record: Record, digest: str) -> None:
    """Make the plane look at the record: create or change the Provider."""
    key = ObjectKey(record.namespace, record.name)
    with suppress(AlreadyExists):
        await client.create(Namespace(metadata=ObjectMeta(name=record.namespace)))
    said = {
        "metadata": {"annotations": {RECORD_ANNOTATION: digest}},
        "providerName": record.provider,
        "type": record.type,
        "version": record.version,
    }
    try:
        await client.patch(Provider, key, said)
    except NotFound:
        # others may list what is installed, as clusterctl does
        labels = {
            "clusterctl.cluster.x-k8s.io": "",
            "clusterctl.cluster.x-k8s.io/core": "inventory",
            "cluster.x-k8s.io/provider": record.name,
        }
        metadata = {"name": record.name, "namespace": record.namespace, "labels": labels, "annotations": {RECORD_ANNOTATION: digest}}
        await client.create({"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider", **said, "metadata": metadata})


async def _settled(client: RestClient, record: Record, digest: str, timeout: float) -> Json:
    """Return the condition Running of a provider when it is decided whether it runs, or when the time is over."""
    condition: Json = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            async with aclosing(follow(client, SCHEME.of(Provider), ObjectKey(record.namespace, record.name))) as states:
                async for state in states:
                    status = (state or {}).get("status") or {}
                    if status.get("record") != digest:
                        continue
                    condition = next((c for c in status.get("conditions") or () if c["type"] == "Running"), {})
                    if condition.get("reason") in _SETTLED:
                        return condition
    if not condition:
        raise Failed(f"the plane did not look at the record within {timeout:g} s: does `up` run there with controllers?")
    return condition


# --------------------------------------------------------------------------------------------------- list, remove


async def _list(arguments: argparse.Namespace) -> int:
    connection = connect.resolve(arguments)
    async with connect.connected(connection) as client:
        found = await client.list(Provider)
    recorded = {one.name for one in places(arguments.data_dir)} if arguments.data_dir.exists() else set()
    rows = []
    for provider in sorted(found, key=lambda one: one.key):
        running = next((c for c in provider.status.conditions if c.type == "Running"), None)
        state = running.reason if running is not None else "not run by this plane"
        message = " ".join(running.message.split())[:100] if running is not None else ""
        known = provider.metadata.name in recorded
        rows.append((provider.metadata.name, provider.version or "-", state, str(provider.status.restarts) if known else "-", message))
    if not rows:
        print("no providers", file=sys.stderr)
        return 0
    print(tabular.table([("NAME", "VERSION", "STATE", "RESTARTS", "MESSAGE"), *rows]))
    return 0


async def _remove(arguments: argparse.Namespace) -> int:
    one, record = _known(arguments)
    connection = connect.resolve(arguments)
    _check_owner(arguments.data_dir, connection)
    key = ObjectKey(record.namespace, record.name)
    async with connect.connected(connection) as client:
        if arguments.include_crds and (left := [line async for line in _objects_left(client, record)]):
            raise Failed(f"there are objects of its kinds: {', '.join(left)}; delete them while the provider runs")
        removal = Removal(definitions=arguments.include_crds, namespace=arguments.include_namespace)
        marked = Record(**{name: getattr(record, name) for name in record.__struct_fields__ if name != "removal"}, removal=removal)
        await _nudge(client, marked, one.write(marked))
        try:
            async with asyncio.timeout(arguments.timeout):
                async with aclosing(follow(client, SCHEME.of(Provider), key)) as states:
                    async for state in states:
                        if state is None:
                            print(f"provider {record.name} removed")
                            return 0
        except TimeoutError:
            raise Failed(f"provider {record.name} is not removed after {arguments.timeout:g} s; the plane goes on with it") from None
    raise AssertionError("the watch ended")


async def _objects_left(client: RestClient, record: Record) -> Any:
    """Yield the kinds of a provider that have objects, with their number."""
    for crd in definitions(record.objects):
        spec = crd["spec"]
        version = next((one["name"] for one in spec["versions"] if one.get("storage")), "")
        with suppress(NotFound, ApiError):
            resource = await discovery.resource_of(client, f"{spec['names']['plural']}.{version}.{spec['group']}")
            number = len(await client.list(GroupVersionKind(resource.gvk.group, resource.gvk.version, resource.kind)))
            if number:
                yield f"{number} {spec['names']['plural']}"


def _known(arguments: argparse.Namespace) -> tuple[Place, Record]:
    """Return the record of the provider that the arguments name; raises Failed, BadRecord."""
    one = place(arguments.data_dir, arguments.name)
    try:
        return one, one.read()[0]
    except FileNotFoundError:
        known = ", ".join(other.name for other in places(arguments.data_dir)) or "none"
        raise Failed(f"{arguments.data_dir} has no provider {arguments.name}; it has: {known}") from None


# ------------------------------------------------------------------------------------------------------------ new


def _new(arguments: argparse.Namespace) -> int:
    """Write the skeleton of a provider into a folder that does not exist."""
    from clusterwright.simulation import samples

    def cluster(name: str) -> list[Json]:
        made = samples.cluster(name, has_control_plane_object=True) + samples.control_plane(name, replicas=1)
        return made + samples.workers(name, f"{name}-md-0", replicas=2)

    written = skeleton.files(arguments.name, sys.executable, cluster)
    folder = arguments.folder or Path(arguments.name)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Failed(f"{folder} exists already: choose another one with --folder") from None
    for name, (text, is_executable) in written.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if is_executable else 0o644)
    print(f"provider {arguments.name} written into {folder}; next: see {folder / 'README.md'}")
    return 0


# ----------------------------------------------------------------------------------------------------------- logs


def _logs(arguments: argparse.Namespace) -> int:
    """Print the kept output of a provider; with --follow, go on until interrupted."""
    one, _ = _known(arguments)
    lines = b"".join(_content(path) for path in (one.log.with_name(f"{one.log.name}.1"), one.log)).splitlines(keepends=True)
    if arguments.tail >= 0:
        lines = lines[len(lines) - min(arguments.tail, len(lines)) :]
    with suppress(BrokenPipeError, KeyboardInterrupt):
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
        if arguments.follow:
            for part in _followed(one.log):
                sys.stdout.buffer.write(part)
                sys.stdout.buffer.flush()
    return 0


def _followed(path: Path) -> Iterator[bytes]:
    """Yield what is appended to a file from now on, also when another file takes its place."""
    number, offset = _identity(path)
    while True:
        now, size = _identity(path)
        if now != number:
            number, offset = now, 0
        if size > offset:
            with path.open("rb") as file:
                file.seek(offset)
                part = file.read(1024 * 1024)
            offset += len(part)
            yield part
        else:
            time.sleep(0.2)


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_size


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
