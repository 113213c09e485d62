"""Validation of a value against a structural schema, with kube-apiserver's field errors.

`checks.is_valid` returns a boolean; this module finds the errors, and only for invalid values. Errors of unchanged values in updates are
ignored (ratcheting).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clusterwright.apiserver.schema.checks import (
    FLOAT_MAXIMUM,
    RANGES,
    duplicates,
    frozen,
    go_pattern,
    in_enum,
    is_fraction,
    is_multiple,
    is_whole,
    truncated,
)
from clusterwright.apiserver.schema.structural import Node, copy_json
from clusterwright.apiserver.status import FieldError, duplicate, invalid, not_supported, number, required, too_long, too_many, type_invalid
from clusterwright.cel.formats import format_check
from clusterwright.golang.quoting import quote

ABSENT: Final = object()
"""An old value that does not exist or cannot be correlated."""


# ---------------------------------------------------------------- what is wrong


def find_errors(node: Node, value: Any, path: str = "", *, old: Any = ABSENT, prefix: str = "", ranges: bool = True) -> list[FieldError]:
    """Return all errors of a value. `old` is the value it replaces, if any: errors below unchanged values are dropped.

    `prefix` is the field that messages leave out (kube-apiserver validates `status` on its own, from an empty path). `ranges`: whether
    formats of numbers bound them, which older validators do not know.
    """
    out: list[FieldError] = []
    _Finder(prefix, ranges).check(node, value, path, old, out)
    return out


_BEYOND_INT64: Final = 1 << 63


def _type_of(value: Any) -> str:
    kind = type(value)
    if kind is bool:
        return "boolean"
    if kind is str:
        return "string"
    if kind is int and -_BEYOND_INT64 <= value < _BEYOND_INT64:
        return "integer"
    if kind is int or kind is float:  # a whole number that no int64 holds is read as a float
        return "number"
    return "array" if kind is list else "object"


class _Finder:
    def __init__(self, prefix: str, ranges: bool) -> None:
        self.prefix = prefix
        self.ranges = ranges

    def field(self, path: str) -> str:
        path = path.removeprefix(".")
        if not self.prefix:
            return path
        if not path:
            return self.prefix
        return f"{self.prefix}.{path}"

    def check(self, node: Node, value: Any, path: str, old: Any, out: list[FieldError]) -> int:
        """Append errors to `out`; return how many checks passed (the best of several alternatives is reported)."""
        errors: list[FieldError] = []
        count = self._check(node, value, path, old, errors)
        if errors and old is not ABSENT and value == old:
            return count
        out.extend(errors)
        return count

    def _composite(self, text: str, out: list[FieldError]) -> None:
        out.append(invalid(self.prefix, "", text))

    def _check(self, node: Node, value: Any, path: str, old: Any, out: list[FieldError]) -> int:
        count = 0
        if node.types or node.format:
            self._type(node, value, path, out)
            count += 2
        if value is None:
            if node.enum is not None and None not in node.enum:
                self._enum(node, value, path, out)
            return count + 1
        count += 1 + self._combined(node, value, path, out)
        kind = type(value)
        if kind is str:
            self._string(node, value, path, out)
            count += 1
            if node.format and (not self.ranges or self._is_text_format(node)):
                fits = format_check(node.format)
                if fits is not None:
                    count += 1
                    if not fits(value):
                        out.append(type_invalid(self.field(path), value, f"{path} in body must be of type {node.format}: {quote(value)}"))
        elif kind is int or kind is float:
            self._number(node, value, path, out)
            count += 1
        elif kind is list:
            count += 1 + self._list(node, value, path, old, out)
        elif kind is dict:
            count += 1 + self._object(node, value, path, old, out)
        if node.enum is not None and not in_enum(value, node.enum):
            self._enum(node, value, path, out)
        return count + 2

    @staticmethod
    def _is_text_format(node: Node) -> bool:
        return not node.types or "string" in node.types

    def _known_format(self, node: Node) -> str:
        if not node.format:
            return ""
        if not self.ranges or node.types in ((), ("string",)):
            return node.format if format_check(node.format) is not None else ""
        if node.types == ("integer",):
            return node.format if node.format in ("int32", "int64") else ""
        if node.types == ("number",):
            return node.format if node.format in ("float", "double") else ""
        return ""

    def _type(self, node: Node, value: Any, path: str, out: list[FieldError]) -> None:
        wanted = ",".join(node.types)
        if value is None:
            if node.types and not node.nullable:
                out.append(type_invalid(self.field(path), "null", f'{path} in body must be of type {wanted}: "null"'))
            return
        actual = _type_of(value)
        fits = (
            actual in node.types
            or (actual == "number" and "integer" in node.types and is_whole(value))
            or (actual == "integer" and "number" in node.types)
        )
        known = self._known_format(node)
        textual = actual in ("string", "array")
        if known and not textual and not fits:
            shown = {"integer": "int64", "number": "float64"}.get(actual, "")
            out.append(type_invalid(self.field(path), shown, f"{path} in body must be of type {known}: {quote(shown)}"))
            return
        if known and textual and not {"number", "integer"} & set(node.types):
            return
        if node.types and not fits:
            out.append(type_invalid(self.field(path), actual, f"{path} in body must be of type {wanted}: {quote(actual)}"))

    def _enum(self, node: Node, value: Any, path: str, out: list[FieldError]) -> None:
        from clusterwright.apiserver.status import show

        supported = [e if isinstance(e, str) else show(e) for e in node.enum or ()]
        out.append(not_supported(self.field(path), value, supported))

    def _string(self, node: Node, value: str, path: str, out: list[FieldError]) -> None:
        source = node.source
        most, least = source.get("maxLength"), source.get("minLength")
        if most is not None and len(value) > most:
            out.append(too_long(self.field(path), most))
            return
        if least is not None and len(value) < least:
            out.append(invalid(self.field(path), value, f"{path} in body should be at least {least} chars long"))
            return
        pattern = source.get("pattern")
        compiled = go_pattern(pattern)
        if pattern and compiled is None:
            out.append(invalid(self.field(path), value, f"{path} in body should match '{pattern}', but pattern is invalid"))
        elif compiled is not None and not compiled(value):
            out.append(invalid(self.field(path), value, f"{path} in body should match '{pattern}'"))

    def _number(self, node: Node, value: float, path: str, out: list[FieldError]) -> None:
        source = node.source
        if self.ranges:
            self._range(node, value, path, out)
        whole = type(value) is int
        multiple = source.get("multipleOf")
        if multiple is not None and not is_multiple(value, multiple):
            if whole and int(multiple) < 1:
                text = f"factor MultipleOf declared for {path} must be positive: {int(multiple)}"
                out.append(invalid(self.field(path), int(multiple), text))
            else:
                out.append(
                    invalid(
                        self.field(path),
                        value,
                        f"{path} in body should be a multiple of {number(int(multiple) if whole else float(multiple))}",
                    )
                )
        maximum = source.get("maximum")
        if whole and not is_fraction(node, maximum):
            maximum = truncated(maximum)
        if maximum is not None:
            exclusive = bool(source.get("exclusiveMaximum"))
            if value > maximum or (exclusive and value == maximum):
                words = "less than" if exclusive else "less than or equal to"
                shown = number(maximum if whole else float(maximum))
                out.append(invalid(self.field(path), value, f"{path} in body should be {words} {shown}"))
        minimum = source.get("minimum")
        if whole and not is_fraction(node, minimum):
            minimum = truncated(minimum)
        if minimum is not None:
            exclusive = bool(source.get("exclusiveMinimum"))
            if value < minimum or (exclusive and value == minimum):
                words = "greater than" if exclusive else "greater than or equal to"
                shown = number(minimum if whole else float(minimum))
                out.append(invalid(self.field(path), value, f"{path} in body should be {words} {shown}"))

    def _range(self, node: Node, value: float, path: str, out: list[FieldError]) -> None:
        kind = node.types[0] if len(node.types) == 1 else ""
        known = self._known_format(node)
        fits = True
        if kind == "integer":
            low, high = RANGES.get(known, RANGES["int64"])
            fits = (type(value) is int or value.is_integer()) and low <= value <= high
        elif known == "float":
            fits = abs(value) <= FLOAT_MAXIMUM
        words = f"with format {known}" if known else "(default format)"
        if not fits:
            self._composite(f"Checked value must be of type {kind} {words} in {path}", out)
        for key, name in (("maximum", "Maximum boundary"), ("minimum", "Minimum boundary"), ("multipleOf", "MultipleOf")):
            if is_fraction(node, node.source.get(key)):
                self._composite(f"{name} value must be of type {kind} {words} in {path}", out)

    def _list(self, node: Node, value: list[Any], path: str, old: Any, out: list[FieldError]) -> int:
        count = 0
        if node.items is not None:
            before = old_items(node, old)
            for i, item in enumerate(value):
                count += self.check(node.items, item, f"{path}[{i}]", before(item), out)
        least, most = node.source.get("minItems"), node.source.get("maxItems")
        if least is not None and len(value) < least:
            out.append(invalid(self.field(path), len(value), f"{path} in body should have at least {least} items"))
        if most is not None and len(value) > most:
            out.append(too_many(self.field(path), len(value), most))
        if node.source.get("uniqueItems") and duplicates(value):
            out.append(invalid(self.field(path), "", f"{path} in body shouldn't contain duplicates"))
        return count

    def _object(self, node: Node, value: dict[str, Any], path: str, old: Any, out: list[FieldError]) -> int:
        count = 0
        source = node.source
        least, most = source.get("minProperties"), source.get("maxProperties")
        if least is not None and len(value) < least:
            out.append(invalid(self.field(path), len(value), f"{path} in body should have at least {least} properties"))
        if most is not None and len(value) > most:
            out.append(too_many(self.field(path), len(value), most))
        closed = source.get("additionalProperties") is False
        for key, item in value.items():
            child = node.properties.get(key)
            here = f"{path}.{key}" if path else key
            if child is None:
                if closed:
                    self._composite_property(path, key, out)
                child = node.additional
                if child is None:
                    continue
                here = f"{path}.{key}"
            before = old.get(key, ABSENT) if type(old) is dict and not (path == "" and key in ("apiVersion", "kind")) else ABSENT
            count += self.check(child, item, here, before, out)
        out.extend(required(self.field(f"{path}.{key}")) for key in node.required if key not in value)
        return count

    def _composite_property(self, path: str, key: str, out: list[FieldError]) -> None:
        shown = f"{path}.{key} in body is a forbidden property"
        out.append(invalid(self.field(path), "", shown))

    def _combined(self, node: Node, value: Any, path: str, out: list[FieldError]) -> int:
        count = 0
        if node.any_of:
            count += self._any_of(node, value, path, out)
        if node.one_of:
            count += self._one_of(node, value, path, out)
        if node.all_of:
            passed = 0
            for sub in node.all_of:
                errors: list[FieldError] = []
                count += self._check(sub, value, path, ABSENT, errors)
                passed += not errors
                out.extend(errors)
            if passed != len(node.all_of):
                self._composite(f"{quote(path)} must validate all the schemas (allOf){'' if passed else '. None validated'}", out)
        if node.not_ is not None:
            ignored: list[FieldError] = []
            self._check(node.not_, value, path, ABSENT, ignored)
            if not ignored:
                self._composite(f"{quote(path)} must not validate the schema (not)", out)
        return count

    def _any_of(self, node: Node, value: Any, path: str, out: list[FieldError]) -> int:
        best: tuple[int, list[FieldError]] | None = None
        for sub in node.any_of:
            errors: list[FieldError] = []
            count = self._check(sub, value, path, ABSENT, errors)
            if not errors:
                return count
            if best is None or count > best[0]:
                best = (count, errors)
        self._composite(f"{quote(path)} must validate at least one schema (anyOf)", out)
        assert best is not None
        out.extend(best[1])
        return best[0]

    def _one_of(self, node: Node, value: Any, path: str, out: list[FieldError]) -> int:
        best: tuple[int, list[FieldError]] | None = None
        valid, first = 0, 0
        for sub in node.one_of:
            errors: list[FieldError] = []
            count = self._check(sub, value, path, ABSENT, errors)
            if not errors:
                first = first or count
                valid += 1
                best = None
            elif not valid and (best is None or count > best[0]):
                best = (count, errors)
        if valid == 1:
            return first
        detail = f"Found {valid} valid alternatives" if valid else "Found none valid"
        self._composite(f"{quote(path)} must validate one and only one schema (oneOf). {detail}", out)
        if best is not None:
            out.extend(best[1])
            return best[0]
        return 0


def old_items(node: Node, old: Any) -> Callable[[Any], Any]:
    """Return a function that finds the old item that a list-type map item replaces.

    It returns ABSENT if there is none, and for other lists, whose items have no identity.
    """
    if node.list_type != "map" or type(old) is not list:
        return lambda item: ABSENT
    defaults = node.items.properties if node.items is not None else {}

    def key_of(value: dict[str, Any]) -> Any:
        return frozen([value.get(k, defaults[k].default if k in defaults else None) for k in node.keys])

    known: dict[Any, Any] = {}
    for other in old:
        if type(other) is dict:
            known.setdefault(key_of(other), other)
    return lambda item: known.get(key_of(item), ABSENT) if type(item) is dict else ABSENT


# ---------------------------------------------------------------- sets and map lists


def find_duplicates(node: Node, value: Any, path: str = "") -> list[FieldError]:
    """Find repeated items of sets and repeated keys of map lists, at any depth."""
    out: list[FieldError] = []
    if node.has_unique:
        _find_duplicates(node, value, path, out)
    return out


def _find_duplicates(node: Node, value: Any, path: str, out: list[FieldError]) -> None:
    if type(value) is dict:
        for key, item in value.items():
            child = node.properties.get(key)
            if child is not None and child.has_unique:
                _find_duplicates(child, item, f"{path}.{key}" if path else key, out)
            if node.additional is not None and node.additional.has_unique:
                _find_duplicates(node.additional, item, f"{path}[{key}]", out)
    elif type(value) is list:
        if node.list_type == "set":
            out.extend(duplicate(f"{path}[{i}]", value[i]) for i in duplicates(value))
        elif node.list_type == "map":
            wrong = next((i for i, v in enumerate(value) if v is not None and type(v) is not dict), None)
            if wrong is not None:
                out.append(invalid(f"{path}[{wrong}]", value[wrong], "must be an object for an array of list-type map"))
            else:
                keys = [{k: v[k] for k in node.keys if k in v} if v is not None else {} for v in value]
                out.extend(duplicate(f"{path}[{i}]", copy_json(keys[i])) for i in duplicates(keys))
        if node.items is not None and node.items.has_unique:
            for i, item in enumerate(value):
                _find_duplicates(node.items, item, f"{path}[{i}]", out)
