"""Declare functions of the library: their names, and the Go types of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusterwright.gotemplate.values import Int, Opaque, kind_of

Function = Callable[..., Any]


class Strings(list[str]):
    """Go's []string."""

    go_type = "[]string"


class Ints(list[Int]):
    """Go's []int."""

    go_type = "[]int"


class Lists(list[list[Any]]):
    """Go's [][]interface {}."""

    go_type = "[][]interface {}"


class StringMap(dict[str, str]):
    """Go's map[string]string, which is not a map of interfaces."""

    go_type = "map[string]string"


def go_type(value: Any) -> str:
    """Return the name of a value's Go type."""
    if isinstance(value, (Strings, Ints, Lists, StringMap, Opaque)):
        return value.go_type
    return kind_of(value).value


def _string(value: Any) -> Any:
    if not isinstance(value, str):
        raise _wrong("string", value)
    return value


def _int(value: Any) -> Any:
    if not isinstance(value, Int):
        raise _wrong("int", value)
    return int(value)


def _float(value: Any) -> Any:
    if not isinstance(value, (float, Int)):
        raise _wrong("float64", value)
    return float(value)


def _bool(value: Any) -> Any:
    if not isinstance(value, bool):
        raise _wrong("bool", value)
    return value


def _dict(value: Any) -> Any:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or isinstance(value, StringMap):
        raise _wrong("map[string]interface {}", value)
    return value


def _any(value: Any) -> Any:
    return value


def _wrong(wanted: str, value: Any) -> TypeError:
    if value is None:
        return TypeError(f"invalid value; expected {wanted}")
    return TypeError(f"wrong type for value; expected {wanted}; got {go_type(value)}")


_CHECKS: Final[Mapping[str, Function]] = {
    "string": _string,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "dict": _dict,
    "any": _any,
}


class Library:
    """The functions of one module, by name."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def define(
        self, names: str, parameters: str, function: Function, *, steps: int = 0, weight: int = 1, deep: bool = False, metered: bool = False
    ) -> None:
        """Define a function under each of the names. Parameters are types; the last may end in `...`.

        A call costs `steps`, and more for the size of its arguments and its result, which counts `weight` times. `deep` functions read
        everything in their arguments. `metered` ones charge by themselves: their first argument is the charge function.
        """
        wanted = parameters.split()
        rest = _CHECKS[wanted.pop().removesuffix("...")] if parameters.endswith("...") else None
        checks = [_CHECKS[w] for w in wanted]

        def checked(*arguments: Any) -> Any:
            meter, given = (arguments[:1], arguments[1:]) if metered else ((), arguments)
            if len(given) < len(checks) or (rest is None and len(given) > len(checks)):
                least = f"at least {len(checks)}" if rest is not None else str(len(checks))
                raise TypeError(f"wrong number of args: want {least} got {len(given)}")
            fixed = [check(a) for check, a in zip(checks, given, strict=False)]
            return function(*meter, *fixed, *(rest(a) for a in given[len(checks) :])) if rest is not None else function(*meter, *fixed)

        checked.__dict__.update(steps=steps, weight=weight, deep=deep, metered=metered, parameters=parameters)
        for name in names.split():
            self.functions[name] = checked
