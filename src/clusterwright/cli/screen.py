"""Show a text that changes."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from typing import Final, TextIO

_COLOUR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
_PLAIN: Final = "\x1b[0m"


def cut(line: str, width: int) -> str:
    """Return the part of a line that fits; colours take no room, and end at the cut."""
    kept, room = [], width
    for part in _COLOUR.split(line):
        if part.startswith("\x1b"):
            kept.append(part)
        elif len(part) > room:
            return "".join([*kept, part[:room], *([_PLAIN] if "\x1b" in line else [])])
        else:
            kept.append(part)
            room -= len(part)
    return line


class Screen:
    """A place for a text that changes: on a terminal the new text replaces the old one."""

    def __init__(self, out: TextIO | None = None, size: Callable[[], tuple[int, int]] = shutil.get_terminal_size) -> None:
        self._out = out or sys.stdout
        self._size = size
        self._lines = 0
        self.is_terminal = self._out.isatty()

    def show(self, text: str) -> None:
        """Replace the text, as far as the terminal has room for it; elsewhere, print it below the old one."""
        if not self.is_terminal:
            self._out.write(("\n" if self._lines else "") + f"{text}\n")
            self._out.flush()
            self._lines = 1
            return
        columns, rows = self._size()
        lines = [cut(line, columns - 1) for line in text.splitlines()]
        if len(lines) > rows - 2:
            lines = [*lines[: rows - 3], f"... {len(lines) - rows + 3} more"]
        back = f"\x1b[{self._lines}F\x1b[J" if self._lines else ""
        self._out.write(back + "".join(f"{line}\n" for line in lines))
        self._out.flush()
        self._lines = len(lines)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self._lines = 0
        self._out.write(f"{line}\n")
        self._out.flush()
