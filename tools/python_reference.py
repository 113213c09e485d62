"""The reference of the public Python API as Markdown, from signatures and docstrings. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final

MODULES: Final = ("clusterwright", "clusterwright.testing", "clusterwright.provider", "clusterwright.tables", "clusterwright.conditions")
_HEAD: Final = (
    "# Python API\n\nRendered from the code by `make docs`; do not edit. These names are public; everything else may change.\n"
    "Whole examples are in [testing](testing.md) and [write a provider](write-a-provider.md).\n"
)


def as_markdown() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(line for name in MODULES for line in _module(import_module(name)))]).rstrip() + "\n"


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## {module.__name__}\n\n{_text(module)}\n"
    for name in sorted(getattr(module, "__all__", ())):
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield f"### {name}\n\nThe module `{value.__name__}`.\n"
        elif inspect.isclass(value) or callable(value):
            yield f"### {name}\n\n    {_signature(name, value)}\n\n{_text(value)}\n"
            if inspect.isclass(value):
                yield from _members(value)
        else:
            yield f"### {name}\n\n`{value!r}`\n"


def _members(kind: type) -> Iterator[str]:
    """Yield the public methods and properties that a class defines itself."""
    rows = []
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value.fget if isinstance(value, property) else value
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        shown = name if isinstance(value, property) else _signature(name, function).replace("(self, ", "(").replace("(self)", "()")
        rows.append(f"| `{_cell(shown)}` | {_cell(_summary(function))} |")
    if rows:
        yield "\n".join(["| Member | |", "|---|---|", *rows]) + "\n"


def _signature(name: str, value: Any) -> str:
    try:
        text = f"{'class ' if inspect.isclass(value) else ''}{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return name
    text = re.sub(r"<([\w.]+ )?object at 0x[0-9a-f]+>|<function (\w+) at 0x[0-9a-f]+>", "...", text)
    return text.replace("'", "")


def _text(value: Any) -> str:
    """Return a docstring; indented parts stay code."""
    return inspect.getdoc(value) or ""


def _summary(value: Any) -> str:
    return " ".join(_text(value).split("\n\n", 1)[0].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
