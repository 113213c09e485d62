"""Check a config against Ignition 2.3: errors make it unusable, warnings do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from clusterwright.api.meta import Json

VERSION = "2.3.0"
Severity = Literal["error", "warning", "info"]

_GUID = re.compile(r"(?:|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})")
_LABEL_LENGTHS = {"ext4": 16, "btrfs": 256, "xfs": 12, "vfat": 11, "swap": 15}
_UNIT_SUFFIXES = (
    "service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "snapshot", "slice", "scope",
)  # fmt: skip
_RAID_WITHOUT_SPARES = ("linear", "raid0", "0", "stripe")
_RAID_LEVELS = (*_RAID_WITHOUT_SPARES, "raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6", "6", "raid10", "10")


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or a warning about a config."""

    severity: Severity
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.text}"


def error(text: str) -> Finding:
    """Return a finding that makes the config unusable."""
    return Finding("error", text)


def warning(text: str) -> Finding:
    """Return a finding that matters only in strict mode."""
    return Finding("warning", text)


def validate(config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield every finding of an Ignition config."""
    storage = config.get("storage", {})
    yield from _references(config.get("ignition", {}))
    yield from _each(storage, "files", _file)
    yield from _each(storage, "directories", _directory)
    yield from _each(storage, "links", _node)
    yield from _each(storage, "disks", _disk)
    yield from _each(storage, "filesystems", _filesystem)
    yield from _each(storage, "raid", _raid)
    yield from _each(config.get("systemd", {}), "units", _unit)
    yield from _each(config.get("networkd", {}), "units", _network_unit)
    yield from _each(config.get("passwd", {}), "users", _user)
    yield from _filesystem_names(storage)


def _each(section: Json, key: str, check: Callable[[Json], Iterator[Finding]]) -> Iterator[Finding]:
    for position, item in enumerate(section.get(key, ())):
        for finding in check(item):
            yield Finding(finding.severity, f"{key}[{position}]: {finding.text}")


def _references(ignition: Json) -> Iterator[Finding]:
    config = ignition.get("config", {})
    references = [*config.get("append", ()), *([config["replace"]] if "replace" in config else ())]
    for reference in (*references, *ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())):
        yield from _url(reference.get("source", ""))
        yield from _verification(reference.get("verification", {}))


def _path(path: str) -> Iterator[Finding]:
    if not path.startswith("/"):
        yield error("path not absolute")


def _url(url: str) -> Iterator[Finding]:
    if not url:
        return
    try:
        parts = urlsplit(url)
    except ValueError:
        yield error("unable to parse url")
        return
    if parts.scheme == "data":
        if "," not in url:
            yield error("invalid data url")
    elif parts.scheme == "s3":
        versions = parse_qs(parts.query, keep_blank_values=True).get("versionId")
        if versions is not None and not versions[0]:
            yield error("invalid S3 object VersionId")
    elif parts.scheme not in ("http", "https", "oem", "tftp"):
        yield error("invalid url scheme")


def _verification(verification: Json) -> Iterator[Finding]:
    value = verification.get("hash")
    if value is None:
        return
    function, dash, total = value.partition("-")
    if not dash:
        yield error("malformed hash specifier")
    elif function != "sha512":
        yield error("unrecognized hash function")
    elif len(total) != 128:
        yield error("incorrect size for hash sum")


def _mode(mode: int | None) -> Iterator[Finding]:
    if mode is not None and not 0 <= mode <= 0o7777:
        yield error("illegal file mode")


def _node(node: Json) -> Iterator[Finding]:
    if not node.get("filesystem"):
        yield error("no filesystem specified")
    yield from _path(node.get("path", ""))
    for owner in ("user", "group"):
        if "id" in node.get(owner, {}) and node[owner].get("name"):
            yield error(f"{owner}: cannot specify both id and name")


def _directory(directory: Json) -> Iterator[Finding]:
    yield from _node(directory)
    yield from _mode(directory.get("mode"))


def _file(file: Json) -> Iterator[Finding]:
    yield from _directory(file)
    if file.get("append") and file.get("overwrite"):
        yield error("cannot set both append and overwrite to true")
    contents = file.get("contents", {})
    if contents.get("compression", "") not in ("", "gzip"):
        yield error("invalid compression method")
    yield from _url(contents.get("source", ""))
    yield from _verification(contents.get("verification", {}))


def _disk(disk: Json) -> Iterator[Finding]:
    yield from _path(disk.get("device", ""))
    partitions = disk.get("partitions", [])
    numbers = [p["number"] for p in partitions if p.get("number")]
    if len(set(numbers)) != len(numbers):
        yield error("partition numbers collide")
    for partition in partitions:
        label = partition.get("label")
        if label is not None and len(label.encode()) > 36:
            yield error("partition labels may not exceed 36 characters")
        if label is not None and ":" in label:
            yield warning("partition label will be truncated to text before the colon")
        if any(_GUID.fullmatch(partition.get(key, "")) is None for key in ("guid", "typeGuid")):
            yield error("doesn't match the form of a GUID")


def _filesystem(filesystem: Json) -> Iterator[Finding]:
    mount, path = filesystem.get("mount"), filesystem.get("path")
    if mount is None and path is None:
        yield error("filesystem is missing mount or path")
    if path is not None:
        yield from _path(path)
    if mount is None:
        return
    if path is not None:
        yield error("filesystem has both mount and path defined")
    if "create" in mount:
        if mount.get("wipeFilesystem"):
            yield error("cannot use both create object and wipeFilesystem field")
        if mount.get("options"):
            yield error("cannot use both create object and mount-level options field")
        yield warning("the create object is deprecated in favor of mount-level options")
    yield from _path(mount.get("device", ""))
    form, label = mount.get("format", ""), mount.get("label")
    if form not in _LABEL_LENGTHS:
        yield error("invalid filesystem format")
    elif label is not None and len(label.encode()) > _LABEL_LENGTHS[form]:
        yield error(f"filesystem labels cannot be longer than {_LABEL_LENGTHS[form]} characters when using {form}")


def _raid(raid: Json) -> Iterator[Finding]:
    if raid.get("level") not in _RAID_LEVELS:
        yield error("unrecognized raid level")
    elif raid["level"] in _RAID_WITHOUT_SPARES and raid.get("spares"):
        yield error("spares unsupported for linear and raid0 arrays")
    for device in raid.get("devices", ()):
        yield from _path(device)


def _sections(contents: str) -> tuple[set[str], list[Finding]]:
    """Return the sections of a unit file, and the error that prevents systemd from reading it."""
    sections: set[str] = set()
    found: list[Finding] = []
    continued = False
    for line in contents.splitlines():
        text = line.strip()
        if continued or not text or text[0] in "#;":
            continued = continued and text.endswith("\\")
            continue
        if text[0] == "[":
            if not text.endswith("]"):
                found.append(error("invalid unit content: unable to find end of section"))
            sections.add(text.strip("[]"))
        elif "=" not in text:
            found.append(error("invalid unit content: unable to find = in an option"))
        elif not sections:
            found.append(error("invalid unit content: an option outside of any section"))
        continued = text.endswith("\\")
    return sections, found


def _unit(unit: Json) -> Iterator[Finding]:
    name, contents = unit.get("name", ""), unit.get("contents", "")
    if name.rpartition(".")[2] not in _UNIT_SUFFIXES or "." not in name:
        yield error("invalid systemd unit extension")
    sections, found = _sections(contents)
    yield from found
    if (unit.get("enable") or unit.get("enabled")) and contents and not found and "Install" not in sections:
        yield warning(f'unit "{name}" is enabled, but has no install section so enable does nothing')
    yield from _dropins(unit)


def _network_unit(unit: Json) -> Iterator[Finding]:
    if not unit.get("name", "").endswith((".link", ".netdev", ".network")):
        yield error("invalid networkd unit extension")
    yield from _sections(unit.get("contents", ""))[1]
    yield from _dropins(unit)


def _dropins(unit: Json) -> Iterator[Finding]:
    for dropin in unit.get("dropins", ()):
        if not dropin.get("name", "").endswith(".conf"):
            yield error("invalid drop-in extension")
        yield from _sections(dropin.get("contents", ""))[1]


def _user(user: Json) -> Iterator[Finding]:
    if "create" not in user:
        return
    yield warning("the create object is deprecated in favor of user-level options")
    twice = ("gecos", "groups", "homeDir", "noCreateHome", "noLogInit", "noUserGroup", "primaryGroup", "shell", "system", "uid")
    for key in twice:
        if user.get(key):
            yield error(f"cannot use both the create object and the user-level {key} field")


def _filesystem_names(storage: Json) -> Iterator[Finding]:
    known = {"root"}
    for filesystem in storage.get("filesystems", ()):
        name = filesystem.get("name", "")
        if name in known:
            yield warning(f'filesystem "{name}" shadows an existing filesystem definition')
        known.add(name)
    for key in ("files", "links", "directories"):
        for node in storage.get(key, ()):
            if node.get("filesystem") and node["filesystem"] not in known:
                yield warning(f'{key}: "{node.get("path", "")}" references nonexistent filesystem "{node["filesystem"]}"')
