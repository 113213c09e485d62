"""PolicyRules of RBAC: what a rule allows, and which permissions no held rule covers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod
from typing import Final

import msgspec

from clusterwright.apiserver.requestinfo import RequestInfo

COMPARISONS: Final = 20_000
"""The most steps of one comparison of rules."""
HELD: Final = 200_000
"""The most verbs, groups, resources, names and URLs in all rules of one user that can be compared."""
SHOWN: Final = 1000
"""The most single permissions that a refusal names."""
_TEXT: Final = 100_000
"""The approximate length of the permissions in a refusal, in characters."""


class Rule(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, gc=False):
    """A PolicyRule."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def allows(self, info: RequestInfo, *, any_name: bool = False) -> bool:
        """Return whether this rule alone allows the request; with `any_name`, for an object of any name."""
        if info.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not info.is_resource:
            return any(_url_matches(u, info.path) for u in self.non_resource_urls)
        if info.group not in self.api_groups and "*" not in self.api_groups:
            return False
        if not self._resource_matches(info):
            return False
        return any_name or not self.resource_names or info.name in self.resource_names

    def _resource_matches(self, info: RequestInfo) -> bool:
        if "*" in self.resources:
            return True
        if not info.subresource:
            return info.resource in self.resources
        return f"{info.resource}/{info.subresource}" in self.resources or f"*/{info.subresource}" in self.resources


def _url_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class Uncomparable(Exception):
    """The rules are too many, or too complex, to be compared."""


_Values = list[str | None]
_Dimension = list[tuple[int, _Values]]
"""The values of one list of a rule, by the held rules that cover them (as bits)."""


class Held:
    """The rules of a user, indexed to find which other permissions they cover.

    A rule is a box: verbs x groups x resources x names. Each value is looked up once and gives the held rules that cover it,
    as the bits of a number. Values with the same bits are alike, so the product of the lists is not built.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Index the rules. Raises Uncomparable."""
        held = tuple(dict.fromkeys(rules))
        size = sum(len(values) for rule in held for values in _lists(rule))
        if size * (1 + len(held) // 8192) > HELD:
            raise Uncomparable
        self._left = COMPARISONS
        self._cost = 1 + len(held) // 8192
        self._indexes: tuple[dict[str, int], ...] = ({}, {}, {}, {}, {})
        self._any_name = 0
        for number, rule in enumerate(held):
            bit = 1 << number
            for values, index in zip(_lists(rule), self._indexes, strict=True):
                for value in values:
                    index[value] = index.get(value, 0) | bit
            if not rule.resource_names:
                self._any_name |= bit
        self._prefixes: dict[str, int] = {}
        for url, bits in self._indexes[4].items():
            if url.endswith("*"):
                self._prefixes[url.rstrip("*")] = self._prefixes.get(url.rstrip("*"), 0) | bits
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def missing(self, wanted: Iterable[Rule]) -> tuple[list[Rule], int]:
        """Return single permissions of `wanted` that no held rule covers, at most `SHOWN`, and the number of all of them.

        The answer equals that of comparing every single permission with every held rule. Raises Uncomparable.
        """
        found: list[Rule] = []
        count, room = 0, (SHOWN, _TEXT)
        for rule in dict.fromkeys(wanted):
            verbs = _alike(rule.verbs, self._verb)
            groups, resources = _alike(rule.api_groups, self._group), _alike(rule.resources, self._resource)
            names = _alike(rule.resource_names or (None,), self._name)
            urls = _alike(rule.non_resource_urls, self._url)
            parts: list[Rule] = []
            for box in self._uncovered([verbs, urls, _alike((None,), self._name)]):
                count += prod(len(values) for values in box)
                room = _take(parts, box, _url_part, room)
            for box in self._uncovered([verbs, groups, resources, names]):
                count += prod(len(values) for values in box)
                room = _take(parts, box, _part, room)
            place = {verb: number for number, verb in enumerate(dict.fromkeys(rule.verbs))}
            found.extend(sorted(parts, key=lambda part: place[part.verbs[0]]))
        return found, count

    def _uncovered(self, dimensions: list[_Dimension]) -> Iterator[list[_Values]]:
        """Yield boxes of values that no held rule covers: disjoint, and together all of them."""
        if not all(dimensions):
            return
        always = [-1]  # the rules that cover all of the last dimensions, by how many these are
        for dimension in reversed(dimensions):
            covering = always[-1]
            for bits, _ in dimension:
                covering &= bits
            always.append(covering)

        def walk(chosen: list[_Values], bits: int) -> Iterator[list[_Values]]:
            self._left -= self._cost
            if self._left < 0:
                raise Uncomparable
            rest = dimensions[len(chosen) :]
            if not bits:
                yield [*chosen, *([value for _, alike in dimension for value in alike] for dimension in rest)]
            elif not bits & always[len(rest)]:
                for covering, alike in rest[0]:
                    yield from walk([*chosen, alike], bits & covering)

        yield from walk([], -1)

    def _verb(self, verb: str | None) -> int:
        return self._of(0, verb) | self._of(0, "*")

    def _group(self, group: str | None) -> int:
        return self._of(1, group) | self._of(1, "*")

    def _resource(self, resource: str | None) -> int:
        _, slash, subresource = (resource or "").partition("/")
        found = self._of(2, resource) | self._of(2, "*")
        return found | self._of(2, f"*/{subresource}") if slash else found

    def _name(self, name: str | None) -> int:
        return self._any_name | self._of(3, name)

    def _url(self, url: str | None) -> int:
        found, text = self._of(4, url), url or ""
        for length in self._lengths:
            if length <= len(text):
                found |= self._prefixes.get(text[:length], 0)
        return found

    def _of(self, index: int, value: str | None) -> int:
        return 0 if value is None else self._indexes[index].get(value, 0)


def _lists(rule: Rule) -> tuple[tuple[str, ...], ...]:
    return rule.verbs, rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls


def _alike(values: Iterable[str | None], covering: Callable[[str | None], int]) -> _Dimension:
    found: dict[int, _Values] = {}
    for value in dict.fromkeys(values):
        found.setdefault(covering(value), []).append(value)
    return list(found.items())


def _take(parts: list[Rule], box: list[_Values], make: Callable[..., Rule], room: tuple[int, int]) -> tuple[int, int]:
    """Add single permissions of a box while there is room. Return the remaining room."""
    number, text = room
    for one in product(*box):
        if number <= 0 or text <= 0:
            break
        parts.append(make(*one))
        number, text = number - 1, text - sum(len(value or "") for value in one)
    return number, text


def _part(verb: str | None, group: str | None, resource: str | None, name: str | None) -> Rule:
    names = () if name is None else (name,)
    return Rule(verbs=(verb or "",), api_groups=(group or "",), resources=(resource or "",), resource_names=names)


def _url_part(verb: str | None, url: str | None, _: str | None) -> Rule:
    return Rule(verbs=(verb or "",), non_resource_urls=(url or "",))


def shown(rules: Iterable[Rule]) -> str:
    """Print rules as Go does, one per line; rules that differ only in their verbs are merged."""
    verbs: dict[tuple[tuple[str, ...], ...], dict[str, None]] = {}
    for rule in rules:
        key = (rule.api_groups, rule.resources, rule.non_resource_urls, rule.resource_names)
        verbs.setdefault(key, {}).update(dict.fromkeys(rule.verbs))
    lines = []
    for fields, found in verbs.items():
        parts = [*zip(("APIGroups", "Resources", "NonResourceURLs", "ResourceNames"), fields, strict=True), ("Verbs", tuple(found))]
        lines.append("{" + ", ".join(f"{name}:{quoted(items)}" for name, items in parts if items) + "}")
    return "\n".join(sorted(lines))


def quoted(items: Iterable[str]) -> str:
    """Print a list of texts as Go does."""
    return "[" + " ".join(f'"{i}"' for i in items) + "]"
