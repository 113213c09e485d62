"""Floating-point numbers in the formats of Go's strconv."""

from __future__ import annotations

import math


def format_float(value: float, verb: str, precision: int) -> str:
    """Return the number with one of the verbs e E f g G b x X; precision -1 is the shortest text that parses to the same number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if verb in "EGX":
        return format_float(value, verb.lower(), precision).upper()
    if verb == "b":
        mantissa, exponent = _binary(value)
        return f"{'-' * _is_negative(value)}{mantissa}p{exponent:+d}"
    if verb == "x":
        return _hexadecimal(value, precision)
    if precision >= 0:
        return f"{value:.{precision}{verb}}"
    return _shortest(value, verb)


def _is_negative(value: float) -> bool:
    return math.copysign(1, value) < 0


def _shortest(value: float, verb: str) -> str:
    digits, _, written = f"{abs(value)!r}".partition("e")
    whole, _, fraction = digits.partition(".")
    point = len(whole) + int(written or 0)
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    significant = significant.rstrip("0")
    if not significant:
        significant, point = "0", 1
    exponent = point - 1
    if verb == "e" or (verb == "g" and not -4 <= exponent < 6):
        text = significant[0] + ("." + significant[1:] if len(significant) > 1 else "") + f"e{exponent:+03d}"
    elif point <= 0:
        text = "0." + "0" * -point + significant
    else:
        significant = significant.ljust(point, "0")
        text = significant[:point] + ("." + significant[point:] if len(significant) > point else "")
    return "-" * _is_negative(value) + text


def _binary(value: float) -> tuple[int, int]:
    """Return mantissa and exponent as in IEEE 754; the mantissa has 53 bits unless the number is denormal."""
    fraction, exponent = math.frexp(abs(value))
    if value == 0:
        return 0, -1074
    shift = min(53, exponent + 1074)
    return int(math.ldexp(fraction, shift)), exponent - shift


def _hexadecimal(value: float, precision: int) -> str:
    fraction, exponent = math.frexp(abs(value))
    mantissa = int(math.ldexp(fraction, 61))  # one bit, then 15 hexadecimal digits
    exponent = exponent - 1 if mantissa else 0
    if 0 <= precision < 15:
        unit = 1 << (60 - 4 * precision)
        quotient, rest = divmod(mantissa, unit)
        quotient += rest * 2 > unit or (rest * 2 == unit and quotient % 2)
        mantissa = quotient * unit
        if mantissa >> 61:
            mantissa >>= 1
            exponent += 1
    digits = f"{mantissa & ((1 << 60) - 1):015x}"
    digits = digits.rstrip("0") if precision < 0 else digits[:precision].ljust(precision, "0")
    return f"{'-' * _is_negative(value)}0x{mantissa >> 60}{'.' + digits if digits else ''}p{exponent:+03d}"
