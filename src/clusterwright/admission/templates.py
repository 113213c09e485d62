"""Go templates in rules: whether they can be parsed and rendered, with Go's messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from clusterwright.golang.quoting import quote
from clusterwright.gotemplate import Template, TemplateError, parse
from clusterwright.gotemplate.sprig import FUNCTIONS

_LINE: Final = re.compile(r"line (\d+): ")
_NAMES: Final = "template name generator"
_CONTEXT: Final = 20
_OWN: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({})


class BadTemplate(ValueError):
    """The template is invalid; the text says why."""


@lru_cache(maxsize=1024)
def _parsed(text: str, name: str, sprig: bool) -> Template | str:
    try:
        return parse(text, FUNCTIONS if sprig else _OWN)
    except TemplateError as error:
        return f"template: {name}:{_LINE.sub(lambda line: f'{line[1]}: ', str(error), count=1)}"


def patch_template_problem(text: str, name: str) -> str:
    """Return why a patch template, which may call sprig's functions, cannot be parsed; empty if it can."""
    parsed = _parsed(text, name, True)
    return parsed if isinstance(parsed, str) else ""


def render_name(text: str, data: Mapping[str, Any]) -> str:
    """Return the name from a template with only these data and Go's own functions; raises BadTemplate."""
    parsed = _parsed(text, _NAMES, False)
    if isinstance(parsed, str):
        raise BadTemplate(f"parsing template {quote(text)}: {parsed}")
    try:
        return parsed.render(data)
    except TemplateError as error:
        raise BadTemplate(f"rendering template: template: {_NAMES}:{_context(error)} {error}") from None


def _context(error: TemplateError) -> str:
    """Return where execution stopped, and at which expression."""
    if error.place is None:
        return ""
    line, column = error.place
    shown = error.field if len(error.field) <= _CONTEXT else f"{error.field[:_CONTEXT]}..."
    return f'{line}:{column}: executing "{_NAMES}" at <{shown}>:'
