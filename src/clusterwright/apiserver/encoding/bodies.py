"""Decode request bodies from JSON and YAML, find repeated keys, and report errors as kube-apiserver does.

Depth and number of values are bounded, and aliases are refused. The reader of a body limits its length.
"""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from typing import Any, Final

import msgspec
import yaml

from clusterwright.api import yamlreader
from clusterwright.api.meta import Json
from clusterwright.api.wire import UNREADABLE
from clusterwright.apiserver.schema.goscalars import json_type
from clusterwright.apiserver.status import StatusError, bad_request
from clusterwright.golang import jsonerrors

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
DEPTH: Final = 200
"""The deepest nesting of JSON. kube-apiserver allows 10,000; recursion in Python fails long before."""
VALUES: Final = 100_000
"""The most values in a body. The largest CRDs in use have a third of it."""
YAML_VALUES: Final = 50_000
"""The most values in a YAML body; each costs ten times as much as in JSON."""
HEAVY: Final = 2_000
"""The number of values from which the worker decodes: about 20 ms."""
_OF_JSON: Final = frozenset({b"{", b"[", b""})
REPEATS: Final = 100
"""The most repeated or unknown fields that are reported, as in kube-apiserver."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # a string without an end matches, too: no byte is read twice
_STRUCT: Final = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


REPEATED_IN_YAML: Final = "yaml: unmarshal errors:\n  "
"""The prefix of messages about repeated keys of a YAML body; warnings do not have it."""


class Malformed(Exception):
    """The body is not JSON (or YAML); the text is that of Go's decoder, as far as known."""


def _free_number(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


_decode_free = msgspec.json.Decoder(float_hook=_free_number).decode


def decode_json(body: bytes, *, free: bool = False) -> Any:
    """Decode a JSON body. Raises Malformed.

    `free`: the kind has no Go type, like custom resources. Then whole numbers become integers, even with a fraction or an exponent, because
    clients may expect an integer.
    """
    if len(body) > VALUES and weight(body) > VALUES and _has_too_many(body):
        raise Malformed(_TOO_MANY.format(VALUES))
    try:
        value = _decode_free(body) if free else _decode(body)
    except UNREADABLE as e:
        raise Malformed(_explain(body, e)) from None
    if body.count(b"[") + body.count(b"{") > DEPTH and too_deep(value, DEPTH):
        raise Malformed("exceeded max depth")
    return value


_TOO_MANY: Final = "more than {} values"


def weight(body: bytes) -> int:
    """Estimate how many values a text holds; commas and brackets in strings count, too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") + (body.count(b"\n") if body[:1] not in {b"{", b"["} else 0)


def _has_too_many(body: bytes) -> bool:
    """Return whether there are too many values outside of strings. Strings are skipped one by one, so that other threads can run."""
    count = end = 0
    for string in _STRING.finditer(body):
        between = body[end : string.start()]
        count += between.count(b",") + between.count(b"[") + between.count(b"{")
        if count > VALUES:
            return True
        end = string.end()
    return count + weight(body[end:]) > VALUES


def is_heavy(*texts: bytes) -> bool:
    """Return whether decoding these takes so long that the worker should do it."""
    size = 0
    for text in texts:
        size += len(text) * _cost(text)
    return size > 4 * HEAVY and sum(weight(text) * _cost(text) for text in texts) > HEAVY


def _cost(text: bytes) -> int:
    """Return the cost of a value of this text relative to JSON."""
    return 1 if text[:1] in _OF_JSON else 10


def too_deep(value: Any, limit: int) -> bool:
    """Return whether data nests deeper than `limit`."""
    level = [value]
    for _ in range(limit):
        nested: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                nested.extend(v for v in item.values() if isinstance(v, (dict, list)))
            elif isinstance(item, list):
                nested.extend(v for v in item if isinstance(v, (dict, list)))
        if not nested:
            return False
        level = nested
    return True


def _explain(body: bytes, error: Exception) -> str:
    text = str(error)
    if isinstance(error, RecursionError):
        return "exceeded max depth"
    if not body.strip() or "truncated" in text:
        return "unexpected end of JSON input"
    if said := jsonerrors.explain(body):
        return said
    if (at := text.find("json: cannot unmarshal number")) >= 0:  # our own message
        return text[at : text.index(" - at", at)] if " - at" in text else text[at:]
    return "invalid JSON: " + text[:200]


def decode_yaml(body: bytes) -> Any:
    """Decode a YAML body (JSON is YAML). Raises Malformed."""
    return decode_yaml_strictly(body)[0]


def decode_yaml_strictly(body: bytes, *, free: bool = False) -> tuple[Any, list[str]]:
    """Decode a YAML body, `free` as in JSON; return the data and the messages about repeated keys. Raises Malformed."""
    if body.lstrip()[:1] in {b"{", b"["}:
        try:
            value = decode_json(body, free=free)
            if not duplicate_fields(body, value):
                return value, []
        except Malformed:
            pass  # YAML in flow style
    loader = None
    try:
        loader = _Loader(yamlreader.examine(body, depth=DEPTH, nodes=YAML_VALUES))
        value = loader.get_single_data()
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, AttributeError) as e:
        raise Malformed("error converting YAML to JSON: yaml: " + " ".join(str(e).split())[:200]) from None
    finally:
        if loader is not None:
            loader.dispose()
    if too_deep(value, DEPTH):
        raise Malformed("exceeded max depth")
    value = _plain(value)
    return decode_json(_encode(value), free=True) if free else value, loader.repeated


class _Loader(yamlreader.SafeLoader):  # type: ignore[misc]  # libyaml's, or Python's own
    """Reads YAML 1.1 as sigs.k8s.io/yaml does: without timestamps, and notes repeated keys."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []

    def scan_to_next_token(self) -> None:
        """Skip white space as PyYAML does, and tabs within brackets."""
        while True:
            super().scan_to_next_token()
            if not self.flow_level or self.peek() != "\t":
                return
            while self.peek() == "\t":
                self.forward()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and len(self.repeated) < REPEATS:
                    self.repeated.append(f'{REPEATED_IN_YAML}line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:[yY]|[nN])$"), list("yYnN"))  # as Go's decoder does
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789"))
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise Malformed("error converting YAML to JSON: json: unsupported value")
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else _text(str(key))


def _text(text: str) -> str:
    """Join or replace surrogates: YAML escapes can be halves of characters."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def duplicate_fields(body: bytes, decoded: Any) -> list[str]:
    """Return the messages about repeated keys of a JSON body, in order. `decoded`: its data."""
    if len(_encode(decoded)) == len(body):
        return []  # encoded, it has the same length: no key was dropped
    found: list[str] = []
    has_repeated = False

    def pairs(items: list[tuple[str, Any]]) -> Any:
        nonlocal has_repeated
        plain = dict(items)
        if len(plain) == len(items):
            return plain
        has_repeated = True
        return _Repeated(items)

    try:
        tree = json.loads(body, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    if has_repeated:
        _walk(tree, "", found)
    return [f'duplicate field "{path}"' for path in islice(dict.fromkeys(found), REPEATS)]


class _Repeated:
    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


def _walk(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, (dict, _Repeated)):
        seen: set[str] = set()
        for key, item in value.items() if isinstance(value, dict) else value.items:
            here = f"{path}.{key}" if path else key
            if key in seen:
                found.append(here)
            seen.add(key)
            if isinstance(item, (dict, list, _Repeated)):
                _walk(item, here, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, list, _Repeated)):
                _walk(item, f"{path}[{index}]", found)


def in_order(body: bytes, repeated: list[str], unknown: list[str]) -> list[str]:
    """Return the messages about fields of a built-in in the order of the body; the inside of unknown fields is skipped."""
    texts = {path: f'unknown field "{path}"' for path in unknown}
    if not repeated or not unknown:
        return [*repeated, *texts.values()]
    try:
        tree = json.loads(body, object_pairs_hook=_Repeated)
    except (ValueError, RecursionError):
        return [*repeated, *texts.values()]
    met: list[str] = []
    _meet(tree, "", texts, met)
    known, seen = {*repeated, *texts.values()}, set(met)
    return [*dict.fromkeys(m for m in met if m in known), *(t for t in texts.values() if t not in seen)]


def _meet(value: Any, path: str, unknown: dict[str, str], met: list[str]) -> None:
    if isinstance(value, _Repeated):
        seen: set[str] = set()
        for key, item in value.items:
            here = f"{path}.{key}" if path else key
            if key in seen:
                met.append(f'duplicate field "{here}"')
            seen.add(key)
            if here in unknown:
                met.append(unknown[here])
            else:
                _meet(item, here, unknown, met)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _meet(item, f"{path}[{index}]", unknown, met)


def unrecognized(kind: str, problem: str, body: bytes) -> StatusError:
    """Return the error (400) for a body that is not an object of any kind."""
    if not kind:
        return bad_request(problem)
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {problem} ({_excerpt(body)})")


def _excerpt(body: bytes) -> str:
    if not body:
        return "<empty>"
    if body[:1] == b"{":
        text = body[:31].decode("utf-8", "replace")
        return text[:30] + " ..." if len(body) > 30 else text
    return body[:30].hex() + (" ..." if len(body) > 30 else "")


def as_object(value: Any, kind: str, body: bytes) -> Json:
    """Return `value` if it is a JSON object. Raises StatusError (400) with the message of Go's decoder."""
    if isinstance(value, dict):
        return value
    name = json_type(value)
    if name == "null":
        raise unrecognized(kind, "Object 'Kind' is missing in 'null'", body)
    raise unrecognized(
        kind, f"couldn't get version/kind; json parse error: json: cannot unmarshal {name} into Go value of type {_STRUCT}", body
    )
