"""What is written can be read: every pair of colours that is used has the contrast that WCAG asks for, in light and dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("clusterwright.dashboard") / "static" / "style.css").read_text()
PAIRS = [
    *((ink, ground) for ink in ("ink", "quiet", "accent") for ground in ("card", "ground")),
    *((name, f"{name}-ground") for name in ("fine", "broken", "waiting", "moving", "unseen")),
    ("broken", "card"),
    ("ink", "moving-ground"),
]


def colours(theme: str) -> dict[str, tuple[int, ...]]:
    block = re.search(rf'\[data-theme="{theme}"\] \{{(.*?)\}}', STYLE, re.DOTALL)
    assert block is not None
    found = re.findall(r"--([a-z-]+): #([0-9a-f]{3}|[0-9a-f]{6});", block[1])
    return {name: tuple(int(c * (2 if len(h) == 3 else 1), 16) for c in re.findall("." if len(h) == 3 else "..", h)) for name, h in found}


def luminance(colour: tuple[int, ...]) -> float:
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_the_colours_of_the_page_have_enough_contrast(theme: str, ink: str, ground: str) -> None:
    known = colours(theme)
    dark, light = sorted((luminance(known[ink]), luminance(known[ground])))

    assert (light + 0.05) / (dark + 0.05) >= 4.5
