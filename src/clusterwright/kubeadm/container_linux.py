"""Convert Container Linux Config, the YAML format for users of Ignition, to Ignition 2.3.

The schema below is applied to YAML nodes, not to loaded values: a text field accepts `on` and `0644` as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import yaml

from clusterwright.api.meta import Json
from clusterwright.kubeadm.ignition_schema import VERSION, Finding, Severity, error, validate, warning

STR, INT, BOOL = "string", "integer", "boolean"
Schema = str | list[Any] | Mapping[str, Any]  # a scalar, a list of one, or a mapping of keys

_OWNER = {"id": INT, "name": STR}
_NODE = {"filesystem": STR, "path": STR, "user": _OWNER, "group": _OWNER, "overwrite": BOOL}
_VERIFICATION = {"hash": {"function": STR, "sum": STR}}
_REFERENCE = {"source": STR, "verification": _VERIFICATION}
_DROPINS = [{"name": STR, "contents": STR}]
_ACCOUNT = {
    "uid": INT, "gecos": STR, "home_dir": STR, "no_create_home": BOOL, "primary_group": STR, "groups": [STR], "no_user_group": BOOL,
    "system": BOOL, "no_log_init": BOOL, "shell": STR,
}  # fmt: skip
_CONTENTS = {"remote": {"url": STR, "compression": STR, "verification": _VERIFICATION}, "inline": STR, "local": STR}
_PARTITION = {"label": STR, "number": INT, "size": STR, "start": STR, "guid": STR, "type_guid": STR}
_MOUNT = {
    "device": STR, "format": STR, "create": {"force": BOOL, "options": [STR]}, "wipe_filesystem": BOOL, "label": STR, "uuid": STR,
    "options": [STR],
}  # fmt: skip
_SCHEMA = {
    "version": INT,
    "ignition": {
        "config": {"append": [_REFERENCE], "replace": _REFERENCE},
        "timeouts": {"http_response_headers": INT, "http_total": INT},
        "security": {"tls": {"certificate_authorities": [_REFERENCE]}},
    },
    "storage": {
        "files": [_NODE | {"mode": INT, "contents": _CONTENTS, "append": BOOL}],
        "directories": [_NODE | {"mode": INT}],
        "links": [_NODE | {"hard": BOOL, "target": STR}],
        "disks": [{"device": STR, "wipe_table": BOOL, "partitions": [_PARTITION]}],
        "filesystems": [{"name": STR, "mount": _MOUNT, "path": STR}],
        "raid": [{"name": STR, "level": STR, "devices": [STR], "spares": INT, "options": [STR]}],
    },
    "systemd": {"units": [{"name": STR, "enable": BOOL, "enabled": BOOL, "mask": BOOL, "contents": STR, "dropins": _DROPINS}]},
    "networkd": {"units": [{"name": STR, "contents": STR, "dropins": _DROPINS}]},
    "passwd": {
        "users": [_ACCOUNT | {"name": STR, "password_hash": STR, "ssh_authorized_keys": [STR], "create": _ACCOUNT}],
        "groups": [{"name": STR, "gid": INT, "password_hash": STR, "system": BOOL}],
    },
}
_UNSUPPORTED = ("etcd", "flannel", "docker", "update", "locksmith")
_TYPE_GUIDS = {
    "raid_containing_root": "be9067b9-ea49-4f15-b4f6-f36f8c9e1818",
    "linux_filesystem_data": "0fc63daf-8483-4772-8e79-3d69d8477de4",
    "swap_partition": "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
    "raid_partition": "a19d880f-05fc-4d3b-a006-743f0f84911e",
}


class ContainerLinuxConfigError(ValueError):
    """The config cannot be used; the text has every reason."""


def data_url(content: bytes) -> str:
    """Return the content as a data URL, in the form that Ignition's own tools write."""
    return "data:," + quote(content, safe="-_.!~*'()")


def empty_config() -> Json:
    """Return an Ignition config that does nothing."""
    return {
        "ignition": {"config": {}, "security": {"tls": {}}, "timeouts": {}, "version": VERSION},
        "networkd": {},
        "passwd": {},
        "storage": {},
        "systemd": {},
    }


def transpile(text: str, *, strict: bool) -> tuple[Json, tuple[Finding, ...]]:
    """Return the Ignition config, and warnings about it. Raises ContainerLinuxConfigError; when strict, for any finding."""
    findings: list[Finding] = []
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError:
        raise ContainerLinuxConfigError("error parsing Container Linux Config: not YAML") from None  # the cause quotes the text
    if root is None:
        findings.append(warning("configuration is empty"))
        read: Any = {}
    else:
        read = _read(root, _SCHEMA, "config", findings)
    _refuse("error parsing Container Linux Config", findings, strict=strict)
    config = _convert(read or {}, findings)
    findings += validate(config)
    _refuse("error converting to Ignition", findings, strict=strict)
    return config, tuple(findings)


def _refuse(stage: str, findings: list[Finding], *, strict: bool) -> None:
    fatal: tuple[Severity, ...] = ("error", "warning", "info") if strict else ("error",)
    if any(f.severity in fatal for f in findings):
        raise ContainerLinuxConfigError(f"{stage}: " + "; ".join(str(f) for f in findings))


# ------------------------------------------------------------------------------------------------ reading


def _read(node: yaml.Node, schema: Any, where: str, findings: list[Finding]) -> Any:
    """Return the node's value if it fits the schema; None is null. Otherwise add a finding."""
    if node.tag == "tag:yaml.org,2002:null":
        return None
    if isinstance(schema, str):
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, schema, where, findings)
    elif isinstance(schema, list):
        if isinstance(node, yaml.SequenceNode):
            empty: Any = {} if isinstance(schema[0], Mapping) else ""
            items = (_read(item, schema[0], f"{where}[{i}]", findings) for i, item in enumerate(node.value))
            return [empty if item is None else item for item in items]
    elif isinstance(node, yaml.MappingNode):
        return _mapping(node, schema, where, findings)
    findings.append(error(f"{where}: wrong type, line {node.start_mark.line + 1}"))
    return None


def _mapping(node: yaml.MappingNode, schema: Mapping[str, Any], where: str, findings: list[Finding]) -> Json:
    out: Json = {}
    for key_node, value in node.value:
        key = str(key_node.value)
        if key in out:
            findings.append(error(f"{where}: key {key!r} is given twice"))
        elif key in schema:
            out[key] = _read(value, schema[key], f"{where}.{key}", findings)
        elif schema is _SCHEMA and key in _UNSUPPORTED:
            findings.append(error(f"section {key!r} is not supported"))
        else:
            findings.append(warning(f"{where}: unrecognized key {key!r}"))
    return {key: value for key, value in out.items() if value is not None}


_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_LONGEST_INTEGER = 80  # characters: 64 bits, written in bits, with underscores here and there
_INTEGER = re.compile(r"[-+]?(?:0o?[0-7]+|0x[0-9a-fA-F]+|0b[01]+|[1-9][0-9_]*|0)")


def _scalar(node: yaml.ScalarNode, schema: str, where: str, findings: list[Finding]) -> Any:
    text = str(node.value)
    if schema == STR:
        return text
    if schema == BOOL and node.style is None and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if schema == INT and node.style is None and len(text) <= _LONGEST_INTEGER and _INTEGER.fullmatch(text):
        return parse_integer(text)
    findings.append(error(f"{where}: not {'a boolean' if schema == BOOL else 'an integer'}, line {node.start_mark.line + 1}"))
    return None


def parse_integer(text: str) -> int:
    """Return a YAML integer; a leading zero means octal."""
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        digits = "0o" + digits[1:]
    return sign * int(digits, 0)


# --------------------------------------------------------------------------------------------- converting


def _convert(read: Json, findings: list[Finding]) -> Json:
    config = empty_config()
    if read.get("version", 0) != 0:
        findings.append(error("version: only version 0 is supported"))
    ignition, storage, passwd = read.get("ignition", {}), read.get("storage", {}), read.get("passwd", {})
    config["ignition"] |= {
        "config": _listed("append", map(_reference, ignition.get("config", {}).get("append", ())))
        | ({"replace": _reference(ignition["config"]["replace"])} if "replace" in ignition.get("config", {}) else {}),
        "security": {
            "tls": _listed(
                "certificateAuthorities",
                map(_reference, ignition.get("security", {}).get("tls", {}).get("certificate_authorities", ())),
            )
        },
        "timeouts": _renamed(ignition.get("timeouts", {}), httpResponseHeaders="http_response_headers", httpTotal="http_total"),
    }
    config["storage"] = (
        _listed("files", (_file(f, findings) for f in storage.get("files", ())))
        | _listed("directories", (_directory(d, findings) for d in storage.get("directories", ())))
        | _listed("links", map(_link, storage.get("links", ())))
        | _listed("disks", (_disk(d, findings) for d in storage.get("disks", ())))
        | _listed("filesystems", map(_filesystem, storage.get("filesystems", ())))
        | _listed("raid", map(_raid, storage.get("raid", ())))
    )
    config["systemd"] = _listed("units", map(_unit, read.get("systemd", {}).get("units", ())))
    config["networkd"] = _listed("units", map(_unit, read.get("networkd", {}).get("units", ())))
    config["passwd"] = _listed("users", map(_user, passwd.get("users", ()))) | _listed("groups", map(_group, passwd.get("groups", ())))
    return config


def _listed(key: str, items: Any) -> Json:
    values = list(items)
    return {key: values} if values else {}


def _renamed(value: Json, /, **names: str) -> Json:
    """Return given members under their new names, unchanged."""
    return {new: value[old] for new, old in names.items() if old in value}


def _filled(value: Json, /, **names: str) -> Json:
    """Return members under their new names, without empty, zero or false ones."""
    return {new: value[old] for new, old in names.items() if value.get(old)}


def _verification(value: Json) -> Json:
    parts = value.get("hash", {})
    function, total = parts.get("function", ""), parts.get("sum", "")
    return {"hash": f"{function}-{total}"} if function and total else {}


def _reference(value: Json) -> Json:
    return {"source": value.get("source", ""), "verification": _verification(value.get("verification", {}))}


def _node(value: Json) -> Json:
    out: Json = {"filesystem": value.get("filesystem") or "root", "path": value.get("path", "")}
    for owner in ("user", "group"):
        if owner in value:
            out[owner] = _renamed(value[owner], id="id") | _filled(value[owner], name="name")
    return out | _renamed(value, overwrite="overwrite")


def _file(value: Json, findings: list[Finding]) -> Json:
    out = _node(value) | _filled(value, append="append")
    contents = value.get("contents", {})
    remote = contents.get("remote", {})
    given = [key for key in ("inline", "local") if contents.get(key)] + (["remote.url"] if remote.get("url") else [])
    if len(given) > 1:
        findings.append(error(f"{out['path']}: only one of the following can be set: local, inline, remote.url"))
    if contents.get("local"):
        findings.append(error(f"{out['path']}: contents.local is not available here"))
    source = data_url(contents["inline"].encode()) if contents.get("inline") else remote.get("url") or "data:,"
    out["contents"] = {"source": source, "verification": _verification(remote.get("verification", {}))}
    out["contents"] |= _filled(remote, compression="compression")
    if "mode" not in value:
        text = f"{out['path']}: mode unspecified for file, defaulting to 0644"
        findings.append(Finding("info", text) if value.get("append") else warning(text))
    return out | {"mode": value.get("mode", 0o644)}


def _directory(value: Json, findings: list[Finding]) -> Json:
    if "mode" not in value:
        findings.append(warning(f"{value.get('path', '')}: mode unspecified for directory, defaulting to 0755"))
    return _node(value) | {"mode": value.get("mode", 0o755)}


def _link(value: Json) -> Json:
    return _node(value) | {"target": value.get("target", "")} | _filled(value, hard="hard")


def _disk(value: Json, findings: list[Finding]) -> Json:
    out = {"device": value.get("device", "")} | _filled(value, wipeTable="wipe_table")
    return out | _listed("partitions", (_partition(p, findings) for p in value.get("partitions", ())))


_BYTES = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(B|KiB|KB|K|MiB|MB|M|GiB|GB|G|TiB|TB|T|PiB|PB|P|EiB|EB|E)")
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def _mebibytes(text: str, findings: list[Finding]) -> int | None:
    """Return a size such as `64GiB` in MiB; all units are powers of 1024."""
    total, position = 0.0, 0
    while match := _BYTES.match(text, position):
        total += float(match[1]) * 1024 ** _POWERS[match[2][0]]
        position = match.end()
    if position != len(text):
        findings.append(error("invalid dimension of a partition"))
        return None
    if total % (1024 * 1024):
        findings.append(error("invalid dimension of a partition (finest granularity is 1MiB)"))
        return None
    return int(total) // (1024 * 1024)


def _partition(value: Json, findings: list[Finding]) -> Json:
    out = _renamed(value, label="label") | _filled(value, number="number", guid="guid")
    for new, old in (("sizeMiB", "size"), ("startMiB", "start")):
        if value.get(old):
            out[new] = _mebibytes(value[old], findings)
    type_guid = value.get("type_guid", "")
    return out | ({"typeGuid": _TYPE_GUIDS.get(type_guid, type_guid)} if type_guid else {})


def _filesystem(value: Json) -> Json:
    out = _filled(value, name="name") | _renamed(value, path="path")
    mount = value.get("mount")
    if mount is None:
        return out
    converted = {"device": mount.get("device", ""), "format": mount.get("format", "")}
    converted |= _renamed(mount, label="label", uuid="uuid") | _filled(mount, options="options", wipeFilesystem="wipe_filesystem")
    if "create" in mount:
        converted["create"] = _filled(mount["create"], force="force", options="options")
    return out | {"mount": converted}


def _raid(value: Json) -> Json:
    head = {"name": value.get("name", ""), "level": value.get("level", ""), "devices": value.get("devices", [])}
    return head | _filled(value, spares="spares", options="options")


def _unit(value: Json) -> Json:
    out = {"name": value.get("name", "")} | _filled(value, enable="enable", mask="mask", contents="contents")
    out |= _renamed(value, enabled="enabled")
    dropins = ({"name": d.get("name", "")} | _filled(d, contents="contents") for d in value.get("dropins", ()))
    return out | _listed("dropins", dropins)


def _account(value: Json) -> Json:
    return _renamed(value, uid="uid") | _filled(  # noqa: S604 - a user's shell
        value,
        gecos="gecos",
        homeDir="home_dir",
        noCreateHome="no_create_home",
        primaryGroup="primary_group",
        groups="groups",
        noUserGroup="no_user_group",
        system="system",
        noLogInit="no_log_init",
        shell="shell",
    )


def _user(value: Json) -> Json:
    out = {"name": value.get("name", "")} | _account(value) | _renamed(value, passwordHash="password_hash")
    out |= _filled(value, sshAuthorizedKeys="ssh_authorized_keys")
    return out | ({"create": _account(value["create"])} if "create" in value else {})


def _group(value: Json) -> Json:
    out = {"name": value.get("name", "")} | _renamed(value, gid="gid")
    return out | _filled(value, passwordHash="password_hash", system="system")


def appended(config: Json, addition: Json) -> Json:
    """Return one config with another appended: lists are concatenated, other values of the addition override.

    `ignition.version` is kept, `ignition.config` is the addition's.
    """
    ignition = {
        "config": addition["ignition"]["config"],
        "security": _appended(config["ignition"]["security"], addition["ignition"]["security"]),
        "timeouts": config["ignition"]["timeouts"] | addition["ignition"]["timeouts"],
        "version": config["ignition"]["version"],
    }
    rest = {key: _appended(config[key], addition[key]) for key in ("networkd", "passwd", "storage", "systemd")}
    return {"ignition": ignition, **rest}


def _appended(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            key: _appended(old[key], new[key]) if key in old and key in new else new.get(key, old.get(key))
            for key in (*old, *(k for k in new if k not in old))
        }
    return [*old, *new] if isinstance(old, list) and isinstance(new, list) else new
