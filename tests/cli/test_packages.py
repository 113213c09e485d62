"""The comparison of controller packages in docs/architecture.md is true, and explains every difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import packages

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_comparison_is_up_to_date() -> None:
    text = ARCHITECTURE.read_text()

    assert packages.replaced(text) == text


def test_every_package_is_in_it_with_every_file() -> None:
    text = packages.section()

    for package in packages.packages():
        assert f"| `{package}` | " in text
        for module in set(packages.modules(package)) - set(packages.USUAL):
            assert f"| `{package}` | `{module}` | " in text


def test_a_difference_without_a_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(packages._WITHOUT, ("clusterclass", "plan"))

    assert packages.unexplained() == ["clusterclass/plan"]


def test_a_reason_without_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packages._WITHOUT, ("machine", "plan"), "none")

    assert packages.unexplained() == ["machine/plan"]


def test_every_difference_has_its_reason() -> None:
    """A usual file that is missing needs its reason in `tools.packages._WITHOUT`; one that is there needs none."""
    assert packages.unexplained() == []
