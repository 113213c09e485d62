"""docs/security.md names a test for each promise: they are there. The bill of materials is the lock's, and the audit notices."""

from __future__ import annotations

import json
import re
from pathlib import Path

from security import attacks
from security.further_attacks import FURTHER
from tools import dependencies

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_threat_model_names_exists() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    source = "\n".join(p.read_text() for p in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    plays = set(re.findall(r"`((?:pattern|crd|cel|patch)-[\w*-]+)`", text))
    known = {a.name for a in attacks.ATTACKS + FURTHER}

    assert len(named) > 30
    assert {name for name in named if f"def {name}(" not in source} == set()
    assert {file for file in files if not (ROOT / file).exists()} == set()
    assert {p for p in plays if not any(name.startswith(p.removesuffix("*")) for name in known)} == set()
    assert f"({len(attacks.ATTACKS + FURTHER)} requests)" in text


def test_the_bill_of_materials_is_the_lock() -> None:
    packages = dependencies.locked((ROOT / "requirements" / "base.txt").read_text())
    bill = json.loads((ROOT / "docs" / "sbom.json").read_text())

    assert {c["name"]: c["version"] for c in bill["components"]} == {
        p.name: p.version for p in packages if p.name not in {"setuptools", "wheel"}
    }
    assert all(p.hashes for p in packages)


def test_the_audit_notices_what_is_not_locked_or_has_no_hash() -> None:
    packages = dependencies.locked("aiohttp==0.0.1 \\\n    --hash=sha256:" + "0" * 64 + "\nmsgspec==0.22.0\n")

    problems = dependencies.audit(packages, {"dependencies": ["aiohttp>=3", "cryptography>=44"]})

    assert any("msgspec: locked without hashes" in p for p in problems)
    assert any("cryptography: a dependency" in p for p in problems)
    assert any(p.startswith("aiohttp: ") and "is installed, 0.0.1 is locked" in p for p in problems)
