"""A hook of mkdocs: a pipe in code within a table is shown without the backslash that Markdown on code forges needs before it."""

from __future__ import annotations

import re
from typing import Any, Final

_CODE: Final = re.compile(r"(`+).+?\1")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Remove the backslash before each pipe in code within the rows of tables."""
    return "\n".join(_row(line) if line.lstrip().startswith("|") else line for line in markdown.split("\n"))


def _row(line: str) -> str:
    return _CODE.sub(lambda code: code[0].replace(r"\|", "|"), line)
