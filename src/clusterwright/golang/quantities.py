"""Quantities of resources (`500m`, `1.5Gi`, `1e3`), parsed and printed like the API machinery."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context, Decimal
from typing import Final

from clusterwright.golang.numbers import parse_int

_PATTERN: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_LONGEST: Final = 1000
"""The most digits of a quantity, and its largest power of ten: with more, kube-apiserver takes too long."""
_EXACT: Final = Context(prec=4 * _LONGEST, rounding=ROUND_UP)
"""A decimal context like Go's inf.Dec: nothing is rounded implicitly."""
_LEAST: Final = -9
"""The smallest counted power of ten: a fraction of it counts as one."""
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BY_POWER: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BY_BITS: Final = {bits: suffix for suffix, bits in _BINARY.items()}
_MOST_BINARY: Final = (1 << 63) - 1
_INT64_DIGITS: Final = 18

WRONG_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A number with its original notation."""

    amount: Decimal
    scale: int | None = field(default=0, compare=False)
    """The power of ten in which Go stores it in 64 bits; None: Go stores it as a long decimal, which is not an integer."""
    suffix: str = field(default="", compare=False)
    text: str = field(default="", compare=False)
    """The original text, if Go keeps it."""

    def added(self, other: Quantity) -> Quantity:
        """Return the sum."""
        scales = (self.scale, other.scale)
        scale = None if None in scales else other.scale if not self.amount else min(s for s in scales if s is not None)
        return Quantity(_EXACT.add(self.amount, other.amount), scale)

    def canonical(self) -> str:
        """Return the stored form (`1000m` is `1`); texts that Go considers canonical are unchanged."""
        if self.text or not self.amount:
            return self.text or "0"
        sign, digits, exponent = self.amount.as_tuple()
        assert isinstance(exponent, int)  # it is a number
        number = "".join(map(str, digits))
        stripped = number.rstrip("0")
        exponent += len(number) - len(stripped)
        minus = "-" * sign
        if self.suffix in _BINARY and exponent >= 0 and self.amount.copy_abs() >= 1024:
            whole, bits = int(stripped) * 10**exponent, 0
            while whole % 1024 == 0:
                whole, bits = whole // 1024, bits + 10
            return f"{minus}{whole}{_BY_BITS.get(bits, '')}"
        zeros = exponent % 3
        exponent -= zeros
        is_power = self.suffix not in _DECIMAL and self.suffix not in _BINARY
        written = f"e{exponent}" if is_power and exponent else _BY_POWER.get(exponent, "")
        return f"{minus}{stripped}{'0' * zeros}{written}"


def parse_quantity(text: str) -> Quantity:
    """Return the quantity; raises ValueError with the API machinery's message."""
    found = _PATTERN.fullmatch(text) if 0 < len(text) <= 2 * _LONGEST else None  # it looks for more than one way through a text
    if found is None:
        raise ValueError(WRONG_FORM)
    sign, whole, fraction, suffix = found.groups("")
    whole, bits = whole.lstrip("0") or "0", _BINARY.get(suffix)
    power = _DECIMAL[suffix] if suffix in _DECIMAL else 0 if bits else _power(suffix)
    if power > _LONGEST or len(whole) + len(fraction) > _LONGEST:
        raise ValueError(WRONG_FORM)
    digits = whole + fraction
    scale = _counted_by(whole, fraction, bits, power)
    if scale is None and not found[2] and not fraction:
        raise ValueError(_WRONG_NUMBER)
    # too little to be counted is the least that can be, however little it is
    amount = Decimal(digits).scaleb(max(power - len(fraction), -2 * _LONGEST), _EXACT)
    amount = _EXACT.multiply(amount, Decimal(1 << (bits or 0)))
    exponent = amount.as_tuple().exponent
    if isinstance(exponent, int) and exponent < _LEAST:
        amount = _EXACT.quantize(amount, Decimal((0, (1,), _LEAST)))
    if bits and amount > _MOST_BINARY:
        amount = Decimal(_MOST_BINARY)
    kept = scale is not None and (int(digits) % 8 != 0 if bits else scale % 3 == 0 and digits[0] != "0" and digits[-3:] != "000")
    return Quantity(amount.copy_negate() if sign == "-" else amount, scale, suffix, text if kept or text == "0" else "")


def _power(suffix: str) -> int:
    try:
        if suffix[0] in "eE":
            return parse_int(suffix[1:], 64)
    except ValueError:
        pass
    raise ValueError(_WRONG_SUFFIX)


def _counted_by(whole: str, fraction: str, bits: int | None, power: int) -> int | None:
    if bits:
        return 0 if not fraction and 14 - len(whole) - bits * 3 // 10 >= 0 else None
    scale = power - len(fraction)
    return scale if len(whole) + len(fraction) <= _INT64_DIGITS and scale >= _LEAST else None
