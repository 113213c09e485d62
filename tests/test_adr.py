"""The decision record names a test for every ruling; the names must lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORD = (ROOT / "docs" / "adr" / "0005-seeds-over-upstream.md").read_text()
PINS = re.findall(r'^\| [^|]+ \| (`test_\w+`|"[\w-]+") \|$', RECORD, re.MULTILINE)
SOURCES = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))


def test_every_ruling_has_a_pin() -> None:
    rows = [line for line in RECORD.splitlines() if line.startswith("| ") and not line.startswith("| Ruling")]

    assert len(rows) == len(PINS) > 40


@pytest.mark.parametrize("pin", sorted(set(PINS)))
def test_a_pin_exists(pin: str) -> None:
    assert (f"def {pin.strip('`')}(" if pin.startswith("`") else pin) in SOURCES
