"""The records of providers in a data directory: what the plane installs and runs. Only the directory's owner can write them.

`providers/NAME/record.json` is written by `clusterwright provider`; everything else in that folder by the plane.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.serving.tls import write_private
from clusterwright.providers.deployment import Program
from clusterwright.providers.release import DNS_LABEL

FOLDER: Final = "providers"
LARGEST: Final = 64 * 1024 * 1024
_RECORD: Final = "record.json"


class BadRecord(Exception):
    """A record must not be used; the text says why and what to do."""


class Removal(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The wish to remove a provider, and what goes with it."""

    definitions: bool = False
    namespace: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A provider as its owner wants it."""

    name: str
    provider: str
    type: str = ""
    version: str = ""
    namespace: str
    objects: tuple[Json, ...] = ()
    program: Program
    binary: tuple[str, ...]
    """The program with its leading arguments, by absolute path."""
    extra: tuple[str, ...] = ()
    """The user's arguments."""
    env: dict[str, str] = {}
    """The user's environment."""
    flags: dict[str, str] = {}
    """The flags that the program knows, by its help, with those defaults that are paths."""
    notes: tuple[str, ...] = ()
    """Gaps in the contract, for people."""
    removal: Removal | None = None

    def __repr__(self) -> str:
        return f"Record({self.name})"  # the environment may hold credentials


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one provider."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the provider."""
        return self.folder.name

    @property
    def is_recorded(self) -> bool:
        """Whether there is a record."""
        return (self.folder / _RECORD).exists()

    @property
    def log(self) -> Path:
        """The newest output of the process; the output before it is in `output.log.1`."""
        return self.folder / "output.log"

    def mark(self) -> tuple[int, int, int]:
        """Return what differs as soon as the record was written again; raises BadRecord, FileNotFoundError."""
        path = self.folder / _RECORD
        for one in (self.folder.parent, self.folder, path):
            status = one.stat()
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise BadRecord(f"{one}: other users can write it, or own it; only the owner of the plane may name programs to run")
        if path.stat().st_size > LARGEST:
            raise BadRecord(f"{path}: is larger than {LARGEST} bytes")
        status = path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def read(self) -> tuple[Record, str]:
        """Return the record and its digest; raises BadRecord, FileNotFoundError."""
        self.mark()
        path = self.folder / _RECORD
        raw = path.read_bytes()
        try:
            record = msgspec.json.decode(raw, type=Record)
        except msgspec.MsgspecError as error:
            raise BadRecord(f"{path}: is damaged ({error}); add the provider again") from None
        if record.name != self.name:
            raise BadRecord(f"{path}: is the record of {record.name}; add the provider again")
        return record, digest(raw)

    def write(self, record: Record) -> str:
        """Write the record, and return its digest. Raises OSError."""
        for one in (self.folder.parent, self.folder):
            one.mkdir(mode=0o700, exist_ok=True)
        raw = msgspec.json.encode(record)
        write_private(self.folder / _RECORD, raw)
        return digest(raw)


def digest(raw: bytes) -> str:
    """Return the digest of a record's bytes."""
    return hashlib.sha256(raw).hexdigest()[:32]


def place(data_dir: Path, name: str) -> Place:
    """Return the folder of a provider; raises BadRecord if the name is not a DNS label, because it becomes a path."""
    if not DNS_LABEL.fullmatch(name):
        raise BadRecord(f"{name!r} is not the name of a provider")
    return Place(data_dir.absolute() / FOLDER / name)


def places(data_dir: Path) -> Iterator[Place]:
    """Yield the folders that have a record."""
    for path in sorted((data_dir.absolute() / FOLDER).glob(f"*/{_RECORD}")):
        if DNS_LABEL.fullmatch(path.parent.name):
            yield Place(path.parent)


def claimed(data_dir: Path) -> frozenset[str]:
    """Return the names of the definitions that recorded providers bring. Records that must not be used are left out."""
    names: set[str] = set()
    for one in places(data_dir):
        try:
            record, _ = one.read()
        except (BadRecord, OSError):
            continue
        names |= {obj["metadata"]["name"] for obj in record.objects if obj.get("kind") == "CustomResourceDefinition"}
    return frozenset(names)
