"""The data directory of a server: its permissions, and the keys and the port that are kept in it.

The keys are compared with their digests in `keys.sha256`, a file that `sha256sum --check` reads as well: a key with a flipped bit is often
still a key, and would silently make all earlier credentials invalid.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from clusterwright.apiserver.serving.tls import KeyPair, write_private
from clusterwright.apiserver.storage.sqlite import StoreBroken

KEYS: Final = ("ca.crt", "ca.key", "tokens.pem")
SUMS: Final = "keys.sha256"
_LINE: Final = re.compile(r"([0-9a-f]{64})  (" + "|".join(map(re.escape, KEYS)) + r")")
_PORT: Final = re.compile(r"(\d{1,5})(?: ([0-9a-f]{8}))?\n")
_PRIVATE: Final = ("*.key", "*.pem", "*.sqlite*", "workload/*.sqlite*")


def demand_private(folder: Path) -> None:
    """Raise StoreBroken if other users can write the directory, or read the keys and stores in it."""
    folder = folder.resolve()
    if found := next(_exposed(folder), None):
        raise StoreBroken(found)


def _exposed(folder: Path) -> Iterator[str]:
    for place in (folder, folder / "workload"):
        if place.exists() and (status := place.stat()).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield _complaint(place, status, "other users can write in it and replace keys", "go-w")
    for place in folder.parents:
        status = place.stat()
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            yield _complaint(place, status, f"other users can replace {folder} in it", "o-w")
    for pattern in _PRIVATE:
        for place in sorted(folder.glob(pattern)):
            if (status := place.stat()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                yield _complaint(place, status, "other users can read or write it", "go=")


def _complaint(place: Path, status: os.stat_result, what: str, change: str) -> str:
    return f"{place}: {what} (mode {stat.S_IMODE(status.st_mode):04o}); run: chmod {change} {shlex.quote(str(place))}"


def identity(folder: Path, make_authority: Callable[[], KeyPair], make_token_key: Callable[[], bytes]) -> tuple[KeyPair, bytes]:
    """Return the authority and the key that signs tokens, created at the first start; raises StoreBroken if one is damaged or missing."""
    certificate, key, tokens = (folder / name for name in KEYS)
    if problems := key_problems(folder):
        raise StoreBroken("; ".join(problems))
    if not certificate.exists() or not key.exists():
        authority = make_authority()
        write_private(certificate, authority.certificate)
        write_private(key, authority.key)
    if not tokens.exists():
        write_private(tokens, make_token_key())
    found = {name: (folder / name).read_bytes() for name in KEYS}
    _keep(folder / SUMS, "".join(f"{_digest(content)}  {name}\n" for name, content in found.items()))
    return KeyPair(found["ca.crt"], found["ca.key"]), found["tokens.pem"]


def _keep(path: Path, text: str) -> None:
    """Write a file unless its content is the same: a start without changes needs no room on the disk."""
    if not path.exists() or path.read_bytes() != text.encode():
        write_private(path, text.encode())


def key_problems(folder: Path) -> list[str]:
    """Return which keys differ from what was written; none in an old directory without digests."""
    sums = folder / SUMS
    if not sums.exists():
        return []
    found: list[str] = []
    for line in sums.read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            found.append(f"{sums}: is damaged; compare the keys with a backup, then remove it")
        elif not (path := folder / match[2]).exists():
            found.append(f"{path}: is missing; bring it back from a backup, or remove {SUMS}: new keys are made, and old credentials end")
        elif _digest(path.read_bytes()) != match[1]:
            found.append(
                f"{path}: is not as it was written, by {SUMS}; bring it back from a backup, or remove {SUMS} if it was replaced on purpose"
            )
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def kept_port(folder: Path) -> int:
    """Return the last port, or 0; raises StoreBroken if the file is damaged."""
    path = folder / "port"
    if not path.exists():
        return 0
    found = _PORT.fullmatch(path.read_bytes().decode("utf-8", "replace"))
    if found is None or (found[2] is not None and found[2] != f"{zlib.crc32(found[1].encode()):08x}"):
        raise StoreBroken(f"{path}: is damaged; remove it, and another port is chosen")
    return int(found[1])


def keep_port(folder: Path, port: int) -> None:
    """Remember a port, with a checksum."""
    _keep(folder / "port", f"{port} {zlib.crc32(str(port).encode()):08x}\n")
