"""One pass of the ExtensionConfig controller agrees with every recorded pass; and they reach nearly every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clusterwright.controllers.extensionconfig.conditions import DISCOVERED
from support.vectors import decide, differences
from vectors import replay, v1_14

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def answers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(v, decide(v)) for v in replay.vectors("extensionconfig")]


def test_every_recorded_pass_agrees(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    differing = {v["id"]: found for v, answer in answers if (found := differences(v1_14.updated(v), answer))}
    with_message = {name for name, found in differing.items() if all("with message: " in str(part) for part in found)}

    assert len(answers) >= 121
    assert set(differing) == with_message  # row B7 of v1.14: the extension's own message is part of the condition
    assert len(with_message) == 10


@pytest.mark.parametrize("table", [DISCOVERED], ids=lambda t: t.name)
def test_recorded_passes_reach_every_row(table: Any, answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    fired = {answer["rows"].get(table.name) for _, answer in answers}

    assert {row.name for row in table.rows} - fired == set()
