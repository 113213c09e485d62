"""Functions on numbers: every argument is converted to a number; unconvertible ones become 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import reduce
from typing import Any, Final

from clusterwright.gotemplate.metering import Charge
from clusterwright.gotemplate.printing import sprint
from clusterwright.gotemplate.sprig.signatures import Ints, Library
from clusterwright.gotemplate.values import Int

LIBRARY: Final = Library()
_define = LIBRARY.define
_MOST: Final = 100_000
"""The most elements of a sequence; Go has no limit."""
_PER_STEP: Final = 10
"""How many elements of a sequence one step creates."""


def _wrapped(value: int) -> int:
    """Return a number as int64, with silent overflow."""
    return (value + 2**63) % 2**64 - 2**63


def to_int(value: Any) -> int:
    """Return a value as int64."""
    if isinstance(value, float):
        return _wrapped(int(value)) if math.isfinite(value) else -(2**63)
    if isinstance(value, int):
        return _wrapped(int(value))
    if isinstance(value, str):
        return _parsed(value)
    return 0


def _parsed(text: str) -> int:
    """Return a text parsed as Go parses an integer of any base; zeros after a point are ignored."""
    whole, point, fraction = text.partition(".")
    digits = whole if point and set(fraction) <= {"0"} else text
    sign, number = (digits[0], digits[1:]) if digits[:1] in ("+", "-") and len(digits) > 1 else ("", digits)
    try:
        if number[:1] == "0" and len(number) > 1 and number[1].isdigit() and number.isascii():
            value = int(number, 8)
        elif number != number.strip() or not number.isascii():
            return 0
        else:
            value = int(number, 0)
    except ValueError:
        return 0
    value = -value if sign == "-" else value
    return value if -(2**63) <= value < 2**63 else 0


def to_float(value: Any) -> float:
    """Return a value as float64."""
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str) and value == value.strip() and value.isascii():
        try:
            return float(value)
        except ValueError:
            return 0.0
    return 0.0


def _divided(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError("runtime error: integer divide by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - _divided(a, b) * b


def _decimally(operate: Callable[[Decimal, Decimal], Decimal], first: Any, *rest: Any) -> float:
    """Return the result of decimal arithmetic on the printed floats, with 16 digits after the point of a quotient."""
    with localcontext() as context:
        context.prec = 60
        context.rounding = ROUND_HALF_UP
        return float(reduce(operate, (Decimal(repr(to_float(x))) for x in rest), Decimal(repr(to_float(first)))))


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    if b == 0:
        raise ZeroDivisionError("decimal division by 0")
    return (a / b).quantize(Decimal("1e-16"))


def _round(value: Any, places: int, *on: float) -> float:
    limit = on[0] if on else 0.5
    power = math.pow(10, places)
    digit = power * to_float(value)
    rest = math.modf(digit)[0]
    return (math.ceil(digit) if rest >= limit else math.floor(digit)) / power


def _octal(value: Any) -> int:
    text = sprint([value])
    try:
        return int(text, 8) if text == text.strip() and "_" not in text and "o" not in text.lower() else 0
    except ValueError:
        return 0


def _until(charge: Charge, start: int, stop: int, step: int) -> Ints:
    if (stop < start and step >= 0) or (stop >= start and step <= 0):
        return Ints()
    numbers = range(start, stop, step)
    if len(numbers) > _MOST:
        raise ValueError("the sequence becomes too long")
    charge(len(numbers) // _PER_STEP)
    return Ints(Int(n) for n in numbers)


def _sequence(charge: Charge, *parameters: int) -> str:
    numbers = Ints()
    match parameters:
        case (end,):
            step = 1 if end >= 1 else -1
            numbers = _until(charge, 1, end + step, step)
        case (start, end):
            step = 1 if end >= start else -1
            numbers = _until(charge, start, end + step, step)
        case (start, step, end):
            if end >= start:
                numbers = _until(charge, start, end + 1, step)
            elif step <= 0:
                numbers = _until(charge, start, end - 1, step)
    return " ".join(map(str, numbers))


def _atoi(text: str) -> Int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return Int(int(text)) if digits.isascii() and digits.isdigit() and len(digits) < 19 else Int(0)


_define("atoi", "string", _atoi)
_define("int64", "any", to_int)
_define("int", "any", lambda v: Int(to_int(v)))
_define("float64", "any", to_float)
_define("toDecimal", "any", _octal, deep=True)
_define("add1", "any", lambda v: _wrapped(to_int(v) + 1))
_define("add", "any...", lambda *v: _wrapped(sum(map(to_int, v))))
_define("sub", "any any", lambda a, b: _wrapped(to_int(a) - to_int(b)))
_define("div", "any any", lambda a, b: _divided(to_int(a), to_int(b)))
_define("mod", "any any", lambda a, b: _remainder(to_int(a), to_int(b)))
_define("mul", "any any...", lambda a, *v: reduce(lambda x, y: _wrapped(x * to_int(y)), v, to_int(a)))
_define("add1f", "any", lambda a: _decimally(lambda x, y: x + y, a, 1.0))
_define("addf", "any...", lambda *v: _decimally(lambda x, y: x + y, 0.0, *v))
_define("subf", "any any...", lambda a, *v: _decimally(lambda x, y: x - y, a, *v))
_define("mulf", "any any...", lambda a, *v: _decimally(lambda x, y: x * y, a, *v))
_define("divf", "any any...", lambda a, *v: _decimally(_quotient, a, *v))
_define("max biggest", "any any...", lambda a, *v: max(map(to_int, (a, *v))))
_define("min", "any any...", lambda a, *v: min(map(to_int, (a, *v))))
_define("maxf", "any any...", lambda a, *v: max(map(to_float, (a, *v))))
_define("minf", "any any...", lambda a, *v: min(map(to_float, (a, *v))))
_define("ceil", "any", lambda v: float(math.ceil(to_float(v))))
_define("floor", "any", lambda v: float(math.floor(to_float(v))))
_define("round", "any int float...", _round)
_define("until", "int", lambda charge, count: _until(charge, 0, count, -1 if count < 0 else 1), metered=True)
_define("untilStep", "int int int", _until, metered=True)
_define("seq", "int...", _sequence, metered=True)
