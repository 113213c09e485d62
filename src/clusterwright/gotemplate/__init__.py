"""Go's text/template, in which Cluster API writes machine names and patches. Pure: values in, text out.

`lexer` makes tokens of the text and `parser` a tree of `nodes`; `evaluator` walks it over JSON-like data with Go's `functions` and
Go's `printing`. What Go refuses is refused, what Go accepts gives the same text, for all that JSON can say. Deliberate differences:

- Nesting, recursion, output and steps are bounded, since templates come from users: see `metering`.
- `call` is always refused: data hold no functions. So is `%p` of a list or map, which would print an address.
- Output is text: bytes that are not UTF-8 become U+FFFD.
- Python's Unicode tables decide which characters are letters, or printable; they may be a version behind or ahead of Go's.

Integers of the data are Go's int64. Go's own JSON decoder makes float64 of every number; callers that mean that pass floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from clusterwright.gotemplate.evaluator import Evaluation
from clusterwright.gotemplate.functions import BUILTINS, SHORT_CIRCUITS
from clusterwright.gotemplate.metering import Budget
from clusterwright.gotemplate.nodes import Body
from clusterwright.gotemplate.parser import parse_trees
from clusterwright.gotemplate.values import TemplateError, without_surrogates

__all__ = ["Budget", "Template", "TemplateError", "parse"]

_NAME = "template"


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: its own body and those of its definitions by name, and the functions that it may call."""

    trees: Mapping[str, Body]
    functions: Mapping[str, Callable[..., Any]]

    def render(self, data: Mapping[str, Any], *, strict: bool = True, budget: Budget | None = None) -> str:
        """Return the text for these data; raises TemplateError if Go would, or if it costs too much.

        An absent key is an error if `strict`, else no value. The steps also come out of the budget, if there is one.
        """
        return Evaluation(self.trees, self.functions, strict=strict, budget=budget).run(_NAME, data)


def parse(text: str, functions: Mapping[str, Callable[..., Any]] = MappingProxyType({})) -> Template:
    """Return the template, whose text may call the functions besides Go's own; raises TemplateError if Go's parser would.

    Functions receive plain values, nil as None, and return one; their ValueError, TypeError, LookupError or ArithmeticError becomes a
    TemplateError of `render`.
    """
    names = {*BUILTINS, *SHORT_CIRCUITS, *functions}
    try:
        trees = parse_trees(without_surrogates(text), _NAME, names)
    except RecursionError:
        raise TemplateError("nested too deeply") from None
    return Template(trees, functions)
