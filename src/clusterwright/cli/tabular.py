"""Format rows of cells as aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells, aligned; the first row is the head."""
    listed = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in listed) for i in range(len(listed[0]))]
    return "\n".join("   ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in listed)
