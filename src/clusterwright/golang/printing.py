"""Values as Go's `fmt` prints them."""

from __future__ import annotations

import json
from typing import Any


def printed(value: Any) -> str:
    """Return data in the format `%v`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{printed(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(printed(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def in_syntax(value: Any) -> str:
    """Return data in the format `%#v`: as Go syntax."""
    if isinstance(value, dict):
        items = ", ".join(f"{json.dumps(k)}:{in_syntax(v)}" for k, v in sorted(value.items()))
        return f"map[string]interface {{}}{{{items}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(in_syntax, value)) + "}"
    return "interface {}(nil)" if value is None else json.dumps(value)
