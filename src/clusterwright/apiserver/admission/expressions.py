"""CEL over plain data, as match conditions use it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from clusterwright.cel.program import CompileError, Program, compile_expression
from clusterwright.cel.types import DYN
from clusterwright.cel.values import CelError


@lru_cache(maxsize=512)
def _program(expression: str, variables: tuple[str, ...]) -> Program:
    return compile_expression(expression, dict.fromkeys(variables, DYN))


def evaluate(expression: str, variables: Mapping[str, Any]) -> bool:
    """A CEL condition over plain data; raises ValueError when it does not compile, fails, or is no condition."""
    try:
        result = _program(expression, tuple(variables)).evaluate(*variables.values())
    except (CompileError, CelError) as e:
        raise ValueError(str(e)) from None
    if not isinstance(result, bool):
        raise ValueError("the expression is no condition")
    return result
