"""Values in the format of Go's fmt: Print, Println and Printf for the kinds in templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.golang.floats import format_float
from clusterwright.golang.quoting import is_printable, quote
from clusterwright.gotemplate.metering import MAX_STEPS, Charge, deep_steps, free
from clusterwright.gotemplate.values import INTEGERS, Kind, TemplateError, bounded, concatenate, kind_of, sorted_entries, to_bytes

_LARGEST_WIDTH = 10**6
_STEPS_PER_VERB = 4
_UINT64 = (1 << 64) - 1
_BASES = {"v": 10, "d": 10, "b": 2, "o": 8, "O": 8, "x": 16, "X": 16}
_FLOATS = {"v": ("g", -1), "f": ("f", 6), "F": ("f", 6), "e": ("e", 6), "E": ("E", 6)} | {verb: (verb, -1) for verb in "bgGxX"}


def sprint(arguments: Sequence[Any]) -> str:
    """Return the arguments, with a space between two that are not strings."""

    def parts() -> Iterator[str]:
        was_string = True
        for argument in arguments:
            is_string = isinstance(argument, str)
            yield " " if not is_string and not was_string else ""
            yield _Verb("v").write(argument)
            was_string = is_string

    return concatenate(bounded(parts()))


def sprintln(arguments: Sequence[Any]) -> str:
    """Return the arguments with a space between any two, and a newline."""
    return concatenate([" ".join(bounded(_Verb("v").write(argument) for argument in arguments)), "\n"])


def sprintf(format: str, arguments: Sequence[Any], charge: Charge = free) -> str:
    """Return the format with its verbs replaced; errors become part of the text, as in Go."""
    return concatenate(bounded(_Format(format, arguments, charge).parts()))


class _Format:
    """One run over a format."""

    def __init__(self, format: str, arguments: Sequence[Any], charge: Charge) -> None:
        self._charge = charge
        self._format = format
        self._arguments = arguments
        self._position = 0
        self._argument = 0
        self._is_reordered = False
        self._is_good_index = True

    def parts(self) -> Iterator[str]:
        """Yield the texts and the verbs between them."""
        while (percent := self._format.find("%", self._position)) >= 0:
            yield self._format[self._position : percent]
            self._position = percent + 1
            self._charge(_STEPS_PER_VERB)
            yield from self._verb()
        yield self._format[self._position :]
        left = self._arguments[self._argument :]
        if left and not self._is_reordered:
            written = (f"{kind_of(value).value}={_Verb('v').write(value)}" if value is not None else "<nil>" for value in left)
            yield f"%!(EXTRA {', '.join(bounded(written))})"

    def _verb(self) -> Iterator[str]:
        """Yield the text for one verb; the position is after its percent sign."""
        flags = _Verb("")
        self._is_good_index = True
        while (character := self._peek()) and character in "#0+- ":
            setattr(flags, _FLAGS[character], True)
            self._position += 1
        after_index = self._index()
        if self._peek() == "*":
            flags.width = self._star()
            if flags.width is None:
                yield "%!(BADWIDTH)"
            elif flags.width < 0:
                flags.width, flags.minus, flags.zero = -flags.width, True, False
            after_index = False
        else:
            flags.width = self._number()
            if after_index and flags.width is not None:
                self._is_good_index = False
        if self._peek() == "." and self._position + 1 < len(self._format):
            self._position += 1
            if after_index:
                self._is_good_index = False
            after_index = self._index()
            if self._peek() == "*":
                flags.precision = self._star()
                if flags.precision is None or flags.precision < 0:
                    flags.precision = None
                    yield "%!(BADPREC)"
                after_index = False
            else:
                flags.precision = self._number() or 0
        if not after_index:
            self._index()
        verb = self._peek()
        self._position += 1
        if not verb:
            yield "%!(NOVERB)"
            return
        if "\ud800" <= verb <= "\udfff":
            verb = "\ufffd"
        if verb == "%":
            yield "%"
        elif not self._is_good_index:
            yield f"%!{verb}(BADINDEX)"
        elif self._argument >= len(self._arguments):
            yield f"%!{verb}(MISSING)"
        else:
            flags.verb = verb
            if verb in "vw":
                flags.sharp_v, flags.sharp, flags.plus = flags.sharp, False, False
            argument = self._arguments[self._argument]
            self._charge(deep_steps([argument], MAX_STEPS) * (_STEPS_PER_VERB if verb in "qxX" else 1))
            yield flags.write(argument)
            self._argument += 1

    def _peek(self) -> str:
        return self._format[self._position : self._position + 1]

    def _number(self) -> int | None:
        """Return the digits at the position; None if there are none, and at the end of the text if there are too many."""
        value: int | None = None
        while (digit := self._peek()) and digit in "0123456789":
            if value is not None and value > _LARGEST_WIDTH:
                self._position = len(self._format)
                return None
            value = (value or 0) * 10 + int(digit)
            self._position += 1
        return value

    def _star(self) -> int | None:
        """Return a width or precision from an argument."""
        self._position += 1
        if self._argument >= len(self._arguments):
            return None
        value = self._arguments[self._argument]
        self._argument += 1
        if kind_of(value) not in INTEGERS or abs(value) > _LARGEST_WIDTH:
            return None
        return int(value)

    def _index(self) -> bool:
        """Parse an explicit argument index like [2]; return whether it was valid."""
        if self._peek() != "[":
            return False
        self._is_reordered = True
        close = self._format.find("]", self._position + 1)
        if close < 0 or len(self._format) - self._position < 3:
            self._is_good_index = False
            self._position += 1
            return False
        digits = self._format[self._position + 1 : close]
        self._position = close + 1
        is_number = digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) < 8
        if is_number and 1 <= int(digits) <= len(self._arguments):
            self._argument = int(digits) - 1
            return True
        self._is_good_index = False
        return is_number


_FLAGS = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}


@dataclass(slots=True)
class _Verb:
    """A verb with its flags, which formats one argument and everything in it."""

    verb: str
    width: int | None = None
    precision: int | None = None
    sharp: bool = False
    sharp_v: bool = False
    zero: bool = False
    plus: bool = False
    minus: bool = False
    space: bool = False

    def write(self, value: Any) -> str:
        """Return a formatted argument: like an element, except for nil and for the verbs that apply to the whole value."""
        kind = kind_of(value)
        if kind is Kind.NIL:
            return self._pad("<nil>") if self.verb in "Tv" else f"%!{self.verb}(<nil>)"
        if self.verb == "T":
            return self._string(kind.value, "s")
        if self.verb == "w" or (self.verb == "p" and kind not in {Kind.SLICE, Kind.MAP}):
            return self._bad(value, self.verb)
        if self.verb == "p":
            raise TemplateError("%p would print an address")
        return self._element(value, self.verb)

    def _element(self, value: Any, verb: str) -> str:
        match kind_of(value):
            case Kind.NIL:
                return "interface {}(nil)" if self.sharp_v else "<nil>"
            case Kind.BOOL:
                return self._pad(str(value).lower()) if verb in "tv" else self._bad(value, verb)
            case Kind.INT | Kind.INT64 | Kind.BYTE as kind:
                if verb in "cqU":
                    return self._code_point(int(value) & _UINT64, verb)
                is_unsigned = kind is Kind.BYTE
                return self._integer(int(value), verb, is_unsigned=is_unsigned) if verb in _BASES else self._bad(value, verb)
            case Kind.FLOAT:
                return self._float(float(value), verb) if verb in _FLOATS else self._bad(value, verb)
            case Kind.COMPLEX:
                return self._complex(value, verb) if verb in _FLOATS else self._bad(value, verb)
            case Kind.STRING:
                return self._string(str(value), verb) if verb in "vsxXq" else self._bad(value, verb)
            case Kind.STRUCT:
                return self._pad(str(value))
            case Kind.SLICE as kind:
                inside = bounded(self._element(element, verb) for element in value)
            case Kind.MAP as kind:
                entries = sorted_entries(value)
                inside = bounded(f"{self._element(key, verb)}:{self._element(element, verb)}" for key, element in entries)
        if self.sharp_v:
            return f"{kind.value}{{{', '.join(inside)}}}"
        return f"{'map' if kind is Kind.MAP else ''}[{' '.join(inside)}]"

    def _bad(self, value: Any, verb: str) -> str:
        return f"%!{verb}({kind_of(value).value}={self._element(value, 'v')})"

    def _pad(self, text: str, *, may_zero: bool = True) -> str:
        missing = (self.width or 0) - len(text)
        if missing <= 0:
            return text
        if self.minus:
            return text + " " * missing
        return ("0" if self.zero and may_zero else " ") * missing + text

    def _integer(self, value: int, verb: str, *, is_unsigned: bool) -> str:
        base, sharp = _BASES[verb], self.sharp
        if verb == "v" and self.sharp_v and is_unsigned:
            base, sharp = 16, True
        digits = format(abs(value), {10: "d", 2: "b", 8: "o", 16: "X" if verb == "X" else "x"}[base])
        if self.precision is not None:
            if self.precision == 0 and value == 0:
                return " " * (self.width or 0)
            digits = digits.rjust(self.precision, "0")
        elif self.zero and not self.minus and self.width is not None:
            digits = digits.rjust(self.width - (value < 0 or self.plus or self.space), "0")
        if sharp and base == 2:
            digits = "0b" + digits
        elif sharp and base == 8 and digits[0] != "0":
            digits = "0" + digits
        elif sharp and base == 16:
            digits = ("0X" if verb == "X" else "0x") + digits
        if verb == "O":
            digits = "0o" + digits
        return self._pad(("-" if value < 0 else "+" if self.plus else " " if self.space else "") + digits, may_zero=False)

    def _code_point(self, value: int, verb: str) -> str:
        is_character = value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF
        character = chr(value) if is_character else "\ufffd"
        if verb == "c":
            return self._pad(character)
        if verb == "q":
            return self._pad(quote(character, "'", only_ascii=self.plus))
        text = "U+" + format(value, "X").rjust(max(4, self.precision or 0), "0")
        if self.sharp and is_character and is_printable(character):
            text += f" '{character}'"
        return self._pad(text, may_zero=False)

    def _string(self, value: str, verb: str) -> str:
        if verb in "xX":
            return self._hexadecimal(to_bytes(value), verb)
        if self.precision is not None:
            value = value[: self.precision]
        if verb == "s" or (verb == "v" and not self.sharp_v):
            return self._pad(value)
        if self.sharp and _can_backquote(value):
            return self._pad(f"`{value}`")
        return self._pad(quote(value, '"', only_ascii=self.plus))

    def _hexadecimal(self, value: bytes, verb: str) -> str:
        value = value if self.precision is None else value[: self.precision]
        prefix = ("0" + verb) if self.sharp else ""
        if self.space:
            text = " ".join(f"{prefix}{byte:02{verb}}" for byte in value)
        else:
            text = "".join([prefix if value else "", *(f"{byte:02{verb}}" for byte in value)])
        return self._pad(text)

    def _complex(self, value: complex, verb: str) -> str:
        real = self._float(value.real, verb)
        plus, self.plus = self.plus, True
        imaginary = self._float(value.imag, verb)
        self.plus = plus
        return f"({real}{imaginary}i)"

    def _float(self, value: float, verb: str) -> str:
        style, precision = _FLOATS[verb]
        if self.precision is not None:
            precision = self.precision
        text = format_float(value, style, precision)
        sign, number = (text[0], text[1:]) if text[0] in "+-" else ("+", text)
        if self.space and sign == "+" and not self.plus:
            sign = " "
        if number in {"Inf", "NaN"}:
            has_sign = number == "Inf" or self.plus or self.space
            return self._pad(sign + number if has_sign else number, may_zero=False)
        if self.sharp and style != "b":
            number = _with_point(number, style, precision)
        if not self.plus and sign == "+":
            return self._pad(number)
        if self.zero and not self.minus and self.width is not None:
            return sign + number.rjust(self.width - 1, "0")
        return self._pad(sign + number)


def _with_point(number: str, style: str, precision: int) -> str:
    """Return the number with a decimal point in any case, and zeros up to its precision."""
    digits = 0
    if style in "gGx":
        digits = 6 if precision == -1 else precision
    end = next((at for at, character in enumerate(number) if character in ("pP" if style in "xX" else "eE")), len(number))
    mantissa, tail = number[:end], number[end:]
    has_seen = False
    for character in mantissa:
        if character != ".":
            has_seen = has_seen or character != "0"
            digits -= has_seen
    if "." not in mantissa:
        digits -= mantissa == "0"
        mantissa += "."
    return mantissa + "0" * max(0, digits) + tail


def _can_backquote(text: str) -> bool:
    return not any(
        (character < " " and character != "\t") or character in "`\x7f\ufeff" or "\ud800" <= character <= "\udfff" for character in text
    )
