"""Count phrases that are not plain English; fail if there are more of a kind than before. docs/contributing.md has the rules.

The limits are what is left to rewrite. Lower a limit when you have rewritten some; never raise one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PLACES: Final = ("src/**/*.py", "tools/*.py", "bench/*.py", "docs/**/*.md", "README.md")
PATTERNS: Final[dict[str, tuple[str, int]]] = {
    "shall: use must or should": (r"\bshall\b", 0),
    "anew: use again": (r"\banew\b", 0),
    "whom: name the person or thing": (r"\bwhom\b", 15),
    "for ever: use forever": (r"\bfor ever\b", 0),
    "in vain: say what fails": (r"\bin vain\b", 4),
    "mend: use fix or repair": (r"\bmend(?:s|ed|ing)?\b", 1),
    "beside: use next to": (r"\bbeside\b", 12),
    "is no X: negate the verb": (r"(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)[a-z]+", 12),
    "a clause that begins with who: name the subject": (r"(?:\"\"\"|[.;:,] )[Ww]ho(?:ever)? [a-z]+s? ", 33),
    "a docstring that begins with What: use an imperative": (r"\"\"\"What ", 50),
}
EXEMPT: Final = frozenset({"tools/plain_english.py", "docs/contributing.md"})
"""They name the phrases."""


def count(pattern: str) -> tuple[int, list[str]]:
    """Return how often a pattern occurs, and the places."""
    found: list[str] = []
    for place in PLACES:
        for path in sorted(ROOT.glob(place)):
            name = str(path.relative_to(ROOT))
            if name not in EXEMPT:
                lines = enumerate(path.read_text().splitlines(), 1)
                found += [f"{name}:{number}: {line.strip()[:120]}" for number, line in lines if re.search(pattern, line)]
    return len(found), found


def main() -> int:
    """Print what exceeds its limit; return 1 if anything does."""
    failed = False
    for name, (pattern, limit) in PATTERNS.items():
        number, found = count(pattern)
        if number > limit:
            failed = True
            print(f"{name}: {number} places, at most {limit} are allowed", *found, sep="\n  ", file=sys.stderr)
        elif number < limit:
            print(f"{name}: {number} places are left; lower the limit of {limit} in tools/plain_english.py", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
