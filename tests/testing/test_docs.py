"""The examples of docs/testing.md are run as they stand there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def examples() -> list[Any]:
    found = []
    for block in BLOCKS:
        names = re.findall(r"^(?:async )?def (test_\w+)", block, re.MULTILINE)
        assert names, "an example that tries nothing"
        found += [pytest.param(block, name, id=name) for name in names]
    return found


@pytest.mark.parametrize(("block", "name"), examples())
def test_example(block: str, name: str, request: pytest.FixtureRequest) -> None:
    line = PAGE.read_text().partition(block)[0].count("\n")
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile("\n" * line + block, str(PAGE), "exec", dont_inherit=True), namespace)
    test = namespace[name]
    test(*(request.getfixturevalue(fixture) for fixture in inspect.signature(test).parameters))


def test_every_public_name_is_on_the_page() -> None:
    from clusterwright import testing

    said = set(re.findall(r"`(\w+)", PAGE.read_text()))
    assert set(testing.__all__) - said - {"NAMESPACE", "VirtualLoop", "plane"} == set()
