"""What docs/architecture.md names is there: files of its recipes, layers of its table, words of its glossary."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
RECIPES = dict(re.findall(r"^### (an? \w+)\n(.*?)(?=^##|\Z)", PAGE.split("## How to add ...")[1], re.MULTILINE | re.DOTALL))
KINDS = sorted(p.parent.name for p in (ROOT / "src/clusterwright/controllers").glob("*/conditions.py") if (p.parent / "guards.py").exists())


def test_there_are_four_recipes() -> None:
    assert set(RECIPES) == {"a condition", "a controller", "a kind", "a command"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_file_that_a_recipe_names_exists(recipe: str) -> None:
    named = re.findall(r"`((?:src|tests|docs)/[^`]+)`", RECIPES[recipe])
    assert len(named) >= 3
    for path in named:
        places = [path.replace("<kind>", kind) for kind in KINDS] if "<kind>" in path else [path]
        assert any((ROOT / place).exists() for place in places), path


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_name_that_a_recipe_gives_in_a_file_is_in_it(recipe: str) -> None:
    pairs = re.findall(r"`([A-Z]+)` (?:of|in) `(src/[^`]+\.py)`", RECIPES[recipe])
    for name, path in pairs:
        assert re.search(rf"^{name}\b", (ROOT / path).read_text(), re.MULTILINE), (name, path)
    assert pairs or recipe in {"a condition", "a controller"}


def test_the_table_of_layers_is_that_of_the_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    wanted = [{part.strip().removeprefix("clusterwright.") for part in layer.split("|")} for layer in contracts[0]["layers"]]
    table = PAGE.split("## Layers")[1].split("\n\n")
    rows = next(part for part in table if part.startswith("| Layer")).splitlines()[2:]
    assert [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in rows] == wanted


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\| ([a-z][^|]*) \|", PAGE.split("## Glossary")[1].split("## How")[0], re.MULTILINE)
    assert len(words) > 15
    assert words == sorted(words)
