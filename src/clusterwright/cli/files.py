"""Read files named on the command line: texts, and bundles written by `record` or other tools."""

from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from clusterwright.api.wire import UNREADABLE
from clusterwright.cli.errors import Failed
from clusterwright.offline.bundle import BadBundle, Bundle, assemble, parse
from clusterwright.offline.excerpts import excerpt


def read_bundle(source: str, name: str = "", namespace: str = "") -> Bundle:
    """Return the bundle in a file (`-`: standard input): YAML or JSON, compressed by gzip or not. Raises Failed, OSError.

    `name`, `namespace`: of an object that is to be explained; of a large text then only what matters to it is read.
    """
    raw = _read(source)
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise Failed(f"{source}: the compressed data are damaged: {error}") from None
    try:
        if raw.lstrip()[:1] == b"{":
            with suppress(*UNREADABLE):  # several JSON documents are YAML
                return assemble([msgspec.json.decode(raw)])
        text = _as_text(raw, source)
        return parse(excerpt(text, name, namespace) if name else text)
    except BadBundle as error:
        raise Failed(str(error)) from None


def read_text(source: str) -> str:
    """Return the text in a file, `-` for standard input. Raises Failed for anything that is not UTF-8, OSError."""
    return _as_text(_read(source), source)


def _read(source: str) -> bytes:
    return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


def _as_text(raw: bytes, source: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Failed(f"{source}: the file is not valid UTF-8") from None
