"""CEL over plain data, for match conditions and admission policies."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from clusterwright.apiserver import effort
from clusterwright.cel.moments import Duration, Timestamp
from clusterwright.cel.program import CompileError, Program, compile_expression
from clusterwright.cel.types import DYN
from clusterwright.cel.values import CelError, UInt

MESSAGES: Final = ("Object", "JSONPatch")
"""Message types that mutations may construct."""


@lru_cache(maxsize=512)
def _program(expression: str, variables: tuple[str, ...], messages: tuple[str, ...] = ()) -> Program:
    return compile_expression(expression, dict.fromkeys(variables, DYN), messages)


def problem_of(expression: str, variables: tuple[str, ...], *, mutation: bool = False) -> str:
    """Return why an expression does not compile; empty if it does."""
    try:
        _program(expression, variables, MESSAGES if mutation else ())
    except CompileError as e:
        return str(e)
    return ""


def value_of(expression: str, variables: Mapping[str, Any], *, mutation: bool = False) -> Any:
    """Return the value of an expression over plain data, as plain data.

    Raises ValueError if it does not compile or fails, and TooMuch if it must leave the event loop.
    """
    try:
        return _plain(effort.evaluate(_program(expression, tuple(variables), MESSAGES if mutation else ()), *variables.values()))
    except (CompileError, CelError) as e:
        raise ValueError(str(e)) from None


def evaluate(expression: str, variables: Mapping[str, Any]) -> bool:
    """Evaluate a condition over plain data. Raises ValueError if it does not compile, fails, or is not a boolean."""
    result = value_of(expression, variables)
    if not isinstance(result, bool):
        raise ValueError("the expression is not a condition")
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, UInt):
        return int(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, (Duration, Timestamp)) else value
