"""Parse how users name an object, in every command: `cluster/c1`, `cluster c1`, `cluster/ns/c1`, `kcp/c1`, or `c1` for a Cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from clusterwright.api.meta import ObjectKey
from clusterwright.api.scheme import CUSTOM, Resource


class Subject(NamedTuple):
    """The object that a user means. `kind` is the Kind if we define it, else the user's word."""

    kind: str
    namespace: str
    name: str


class BadSubject(ValueError):
    """The words do not name an object; the message says what is expected."""


def parse(words: Sequence[str], *, default: str = "Cluster") -> tuple[Subject, list[str]]:
    """Return the object that the first words name, and the words that are left; raises BadSubject.

    A name alone means an object of the kind `default`.
    """
    if not words or not words[0]:
        raise BadSubject("KIND/NAME or KIND NAME is expected")
    first, rest = words[0], list(words[1:])
    if "/" in first:
        kind, _, tail = first.partition("/")
        namespace, _, name = tail.rpartition("/")
        if not kind or not name or "/" in namespace:
            raise BadSubject(f"{first!r} is not KIND/NAME or KIND/NAMESPACE/NAME")
        return Subject(kind_of(kind), namespace, name), rest
    if is_kind(first):
        if rest:
            namespace, _, name = rest[0].rpartition("/")
            return Subject(kind_of(first), namespace, name), rest[1:]
        if kind_of(first) == default:
            raise BadSubject(f"{first} needs a name: KIND/NAME or KIND NAME is expected")
    return Subject(default, "", first), rest


def parse_cluster(words: Sequence[str]) -> Subject:
    """Return the Cluster that the words name, and nothing else; raises BadSubject."""
    subject, rest = parse(words)
    if subject.kind != "Cluster":
        raise BadSubject(f"{' '.join(words)!r} does not name a cluster: cluster/NAME, cluster NAME or NAME is expected")
    if rest:
        raise BadSubject(f"unexpected argument {' '.join(rest)!r}: exactly one cluster is expected")
    return subject


def kind_of(word: str) -> str:
    """Return the Kind that a word means: singular, plural, short name, in any case, with or without its group; else the word."""
    found = resource_of(word)
    return found.gvk.kind if found is not None else word


def is_kind(word: str) -> bool:
    """Return whether the word means one of our kinds."""
    return resource_of(word) is not None


def resource_of(word: str) -> Resource | None:
    """Return the resource that a word means, if we know it; our kinds come first."""
    bare, _, group = word.lower().partition(".")
    found = _ours().get(bare) or _built_in().get(bare)
    return found if found is not None and group in {"", found.group, f"{found.version}.{found.group}"} else None


def words() -> tuple[str, ...]:
    """Return every word for our kinds: singular, plural and short names."""
    return tuple(_ours())


def key_of(subject: Subject, resource: Resource, namespace: str) -> ObjectKey:
    """Return the key of the object; `namespace` is the default for one that names none."""
    return ObjectKey((subject.namespace or namespace) if resource.namespaced else "", subject.name)


@cache
def _ours() -> dict[str, Resource]:
    return {word: r for r in CUSTOM for word in (r.singular, r.plural, *r.short_names)}


@cache
def _built_in() -> dict[str, Resource]:
    from clusterwright.apiserver.builtins.kinds import RESOURCES  # with all their rules: not read for the words that are ours

    known: dict[str, Resource] = {}
    for r in RESOURCES:
        for word in (r.singular, r.plural, *r.short_names):
            known.setdefault(word, Resource(r.gvk, r.plural, r.namespaced))
    return known
