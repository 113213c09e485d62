"""YAML as Go's tools around Kubernetes parse it: YAML 1.1 scalars with their rules, converted to JSON.

`yes`, `on` and `y` are true, `010` is 8, `1_000` is 1000; times of day and dates are texts. Keys become texts.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

from clusterwright.api.yamlreader import MAX_DEPTH, MAX_NODES, Refused, SafeLoader, examine

_TRUE: Final = frozenset(["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"])
_FALSE: Final = frozenset(["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"])
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_SPECIAL: Final = {
    ".inf": math.inf, ".Inf": math.inf, ".INF": math.inf, "+.inf": math.inf, "+.Inf": math.inf, "+.INF": math.inf,
    "-.inf": -math.inf, "-.Inf": -math.inf, "-.INF": -math.inf, ".nan": math.nan, ".NaN": math.nan, ".NAN": math.nan,
}  # fmt: skip
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_PREFIX: Final = "tag:yaml.org,2002:"


_PLAIN: Final = "!plain"


class _Loader(SafeLoader):  # type: ignore[misc]
    """Marks plain scalars, neither quoted nor tagged, and resolves nothing."""


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver(_PLAIN, re.compile(r"(?s:.*)"), None)


class BadYaml(ValueError):
    """The text is not YAML, or has no JSON form."""


def to_json(text: str, *, nodes: int = MAX_NODES) -> Any:
    """Return the first document of a text as JSON, None for an empty one; raises BadYaml, also for more values than `nodes`."""
    if len(text) > MAX_DEPTH:
        _examine(text, nodes)
    loader = _Loader(text)
    try:
        return _Reading(nodes).value(loader.get_node(), 0) if loader.check_node() else None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadYaml(str(error) or "the text is nested too deeply") from None
    finally:
        loader.dispose()


def _examine(text: str, nodes: int) -> None:
    """Refuse texts that would overflow the parser's stack; the parser finds other errors."""
    try:
        examine(text, nodes=nodes, aliases=True)
    except Refused as error:
        raise BadYaml(str(error)) from None
    except yaml.YAMLError:
        return


class _Reading:
    """One document; it counts the values that it creates, including aliases, so that a few bytes cannot become gigabytes."""

    def __init__(self, nodes: int) -> None:
        self._left = nodes

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            raise BadYaml("the document is too large")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        assert isinstance(node, yaml.MappingNode)
        return self._mapping(node, depth)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, item in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == "<<" and key.tag == _PLAIN:
                merged = self._merged(item, depth, merged)
            else:
                out[_key(key)] = self.value(item, depth + 1)
        return merged | out if merged else out

    def _merged(self, node: yaml.Node, depth: int, out: dict[str, Any]) -> dict[str, Any]:
        """Add the entries of a merge key, in place; existing ones stay."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise BadYaml("map merge requires map or sequence of maps as the value")
            for key, value in self.value(part, depth + 1).items():
                out.setdefault(key, value)
        return out


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise BadYaml("a key must be a scalar")
    value = _scalar(node)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(int(value)) if float(value).is_integer() and isinstance(value, int) else repr(value)
    raise BadYaml("unsupported map key")


def _scalar(node: yaml.ScalarNode) -> Any:
    """Return the value of a scalar: by its form if it is plain or its tag asks for that, else its text."""
    looked_at = node.tag == _PLAIN or str(node.tag).removeprefix(_PREFIX) in ("int", "float", "bool", "null")
    return _plain(node.value) if looked_at else node.value


def _plain(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _SPECIAL:
        raise BadYaml(f"json: unsupported value: {text}")
    if not (text[0].isdigit() or text[0] in "+-."):
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        if math.isinf(value):
            return text
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return text


def _integer(digits: str) -> Any:
    sign = -1 if digits[0] == "-" else 1
    number = digits.lstrip("+-")
    if len(number) > 1 and number[0] == "0" and number[1].isdigit():
        value = sign * int(number, 8)
    else:
        value = sign * int(number, 0)
    if -(2**63) <= value < 2**64:
        return value
    return float(digits) if _FLOAT.fullmatch(digits) else digits
