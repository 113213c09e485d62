"""What must hold of a KubeadmConfigSpec beyond its schema: the rules that no schema can say.

Works on JSON, before any model, because admission does. Used for KubeadmConfig and its template, and with `control_plane` for the
kinds that make control planes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clusterwright.api.meta import Json

GATE = "KubeadmBootstrapFormatIgnition"
_GATE_OFF = f"can be set only if the {GATE} feature gate is enabled"
_NOT_WITH_IGNITION = 'not supported when spec.format is set to: "ignition"'
_FILE = ("path", "owner", "permissions", "encoding", "append", "content", "contentFrom")
_USER = (
    "name", "gecos", "groups", "homeDir", "inactive", "shell", "passwd", "passwdFrom", "primaryGroup", "lockPassword", "sudo",
    "sshAuthorizedKeys",
)  # fmt: skip
_HEALTH_CHECK = "timeouts.controlPlaneComponentHealthCheckSeconds"


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that is broken; `value` is what is shown of it (never for Required and Forbidden)."""

    kind: Literal["Invalid", "Required", "Forbidden"]
    field: str
    text: str
    value: Any = None


def problems(spec: Mapping[str, Any], field: str, *, ignition: bool, control_plane: bool = False) -> Iterator[Problem]:
    """Every broken rule of a spec at `field`; `ignition` says whether the gate is on."""
    yield from _files(spec, field)
    yield from _users(spec, field)
    yield from _ignition(spec, field) if ignition else _gate_off(spec, field)
    yield from _disk_layouts(spec, field)
    user = at(spec, "joinConfiguration", "discovery", "file", "kubeConfig", "user") or {}
    if user.get("authProvider") and user.get("exec"):
        text = "only one of authProvider or exec must be defined"
        # the field's name is spelled like this by everyone who has reported it so far
        yield Problem(
            "Invalid", f"{field}.joinConfiguration.discovery.file.kubeconfig.user", text, _ordered(user, ("authProvider", "exec"))
        )
    if control_plane:
        yield from _health_checks(spec, field)


def at(value: Any, *path: str) -> Any:
    """What is found by following keys; None where there is nothing."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _ordered(value: Mapping[str, Any], keys: Sequence[str]) -> Json:
    return {key: value[key] for key in keys if key in value}


def _source(entry: Mapping[str, Any], key: str, field: str) -> Iterator[Problem]:
    secret = at(entry, key, "secret") or {}
    if not secret.get("name"):
        yield Problem("Required", f"{field}.{key}.secret.name", "secret file source must specify non-empty secret name")
    if not secret.get("key"):
        yield Problem("Required", f"{field}.{key}.secret.key", "secret file source must specify non-empty secret key")


def _files(spec: Mapping[str, Any], field: str) -> Iterator[Problem]:
    known: set[str] = set()
    for n, file in enumerate(spec.get("files") or ()):
        where = f"{field}.files[{n}]"
        shown = _ordered(file, _FILE)
        if file.get("content") and file.get("contentFrom"):
            yield Problem("Invalid", where, "only one of content or contentFrom may be specified for a single file", shown)
        if file.get("contentFrom"):
            yield from _source(file, "contentFrom", where)
        if file.get("path", "") in known:
            yield Problem("Invalid", f"{where}.path", "path property must be unique among all files", shown)
        known.add(file.get("path", ""))


def _users(spec: Mapping[str, Any], field: str) -> Iterator[Problem]:
    for n, user in enumerate(spec.get("users") or ()):
        where = f"{field}.users[{n}]"
        if user.get("passwd") and user.get("passwdFrom"):
            text = "only one of passwd or passwdFrom may be specified for a single user"
            yield Problem("Invalid", where, text, _ordered(user, _USER))
        if user.get("passwdFrom"):
            yield from _source(user, "passwdFrom", where)


def _gate_off(spec: Mapping[str, Any], field: str) -> Iterator[Problem]:
    if spec.get("format") == "ignition":
        yield Problem("Forbidden", f"{field}.format", _GATE_OFF)
    if spec.get("ignition"):
        yield Problem("Forbidden", f"{field}.ignition", _GATE_OFF)


def _ignition(spec: Mapping[str, Any], field: str) -> Iterator[Problem]:
    if spec.get("format") != "ignition":
        if spec.get("ignition"):
            yield Problem("Invalid", f"{field}.format", 'must be set to "ignition" if spec.ignition is set', spec.get("format") or "")
        return
    for n, user in enumerate(spec.get("users") or ()):
        if user.get("inactive"):
            yield Problem("Forbidden", f"{field}.users[{n}].inactive", _NOT_WITH_IGNITION)
    for n, file in enumerate(spec.get("files") or ()):
        if file.get("encoding") in ("gzip", "gzip+base64"):
            yield Problem("Forbidden", f"{field}.files[{n}].encoding", _NOT_WITH_IGNITION)
    if spec.get("bootCommands") is not None:
        yield Problem("Forbidden", f"{field}.bootCommands", _NOT_WITH_IGNITION)
    for n, partition in enumerate(at(spec, "diskSetup", "partitions") or ()):
        table = partition.get("tableType")
        if table and table != "gpt":
            text = 'only partition type "gpt" is supported when spec.format is set to "ignition"'
            yield Problem("Invalid", f"{field}.diskSetup.partitions[{n}].tableType", text, table)
    for n, filesystem in enumerate(at(spec, "diskSetup", "filesystems") or ()):
        for key in ("replaceFS", "partition"):
            if filesystem.get(key):
                yield Problem("Forbidden", f"{field}.diskSetup.filesystems[{n}].{key}", _NOT_WITH_IGNITION)


def _disk_layouts(spec: Mapping[str, Any], field: str) -> Iterator[Problem]:
    for n, partition in enumerate(at(spec, "diskSetup", "partitions") or ()):
        total = sum(part.get("percentage", 0) for part in partition.get("diskLayout") or ())
        if total > 100:
            text = "the sum of all partition percentages must not be greater than 100"
            yield Problem("Invalid", f"{field}.diskSetup.partitions[{n}].diskLayout", text, total)


def _health_checks(spec: Mapping[str, Any], field: str) -> Iterator[Problem]:
    path = _HEALTH_CHECK.split(".")
    init, join = at(spec, "initConfiguration", *path), at(spec, "joinConfiguration", *path)
    if init == join:
        return
    shown = tuple("unset" if value is None else str(value) for value in (init, join))
    text = (
        "controlPlaneComponentHealthCheckSeconds must be set to the same value both in "
        f"initConfiguration.timeouts ({shown[0]}) and in joinConfiguration.timeouts ({shown[1]})"
    )
    yield Problem("Invalid", f"{field}.initConfiguration.{_HEALTH_CHECK}", text, shown[0])
    yield Problem("Invalid", f"{field}.joinConfiguration.{_HEALTH_CHECK}", text, shown[1])


def with_former_defaults(spec: Mapping[str, Any]) -> Json:
    """The spec with what earlier releases filled in; compare two specs only after this."""
    out: Json = {"format": "cloud-config"} | dict(spec)
    for section in ("initConfiguration", "joinConfiguration"):
        settings = dict(out.get(section) or {})
        settings["nodeRegistration"] = {"imagePullPolicy": "IfNotPresent"} | dict(settings.get("nodeRegistration") or {})
        out[section] = settings
    exec_ = at(out, "joinConfiguration", "discovery", "file", "kubeConfig", "user", "exec")
    if exec_:
        join = out["joinConfiguration"]
        path = ("discovery", "file", "kubeConfig", "user")
        node = join
        for step in path:
            node[step] = dict(node[step])
            node = node[step]
        node["exec"] = {"apiVersion": "client.authentication.k8s.io/v1"} | dict(exec_)
    return out
