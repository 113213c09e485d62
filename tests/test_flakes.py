"""`make flakes` repeats all tests whose outcome could depend on how busy the machine is."""

from __future__ import annotations

import re
from pathlib import Path

from flakes import PLACES, ROOT

OUTSIDE = re.compile(
    r"\bimport subprocess\b|create_subprocess|support\.forks|open_connection|start_server|create_server|ClientSession\(|HttpServer\(|TlsListener\(|serve\.start\("
)
"""Signs of processes and sockets."""


def is_repeated(file: str) -> bool:
    return any(file == place or file.startswith(f"{place}/") for place in PLACES)


def test_tests_with_processes_or_sockets_are_repeated() -> None:
    tests = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)}
    ordinary = {name: path for name, path in tests.items() if not name.startswith("tests/real/")}

    assert sorted(name for name, path in ordinary.items() if OUTSIDE.search(path.read_text()) and not is_repeated(name)) == []


def test_every_place_exists() -> None:
    assert [place for place in PLACES if not (ROOT / place).exists()] == []
