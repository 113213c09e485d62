"""What a change of an object is: a deed, on which others act, or only other words for what has not happened yet.

An object that comes up says at every step what it waits for, and whoever sums it up says it again, and so does the next one above. Nobody
acts on that. A change of words alone waits until there is nothing else to do, and is then told once; a deed is told soon. Between the two
are sums: how many of the objects below are how far. People read them, nobody acts on them, and they move many times in a second; they wait
a second for more. That holds for hearing (`Watch.settle`) as for saying (`to_be_said`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from clusterwright.api.meta import Object, Unstructured
from clusterwright.runtime.reconcile import WHEN_IDLE, Patience

A_SECOND = 1.0
_TWO_WRITES = 0.02
_STATUS = frozenset({"conditions", "deprecated", "v1beta2", "observedGeneration", "observed_generation", "last_updated"})
_METADATA = frozenset({"resource_version", "generation"})
_FOREIGN_METADATA = ("deletionTimestamp", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class Sums:
    """Which fields of a kind's status, and which types of conditions, only sum up the objects below."""

    fields: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()


NONE = Sums()


def to_be_said(before: Object, after: Object, sums: Sums = NONE) -> float:
    """Return how many seconds the change of an object may wait: 0 if it is a deed.

    Only words are new if no other condition is True than was. That a generation was seen is words, too.
    """
    if _achieved(before, NONE) == _achieved(after, NONE):
        return WHEN_IDLE
    return A_SECOND if _achieved(before, sums) == _achieved(after, sums) else 0.0


def summed_up(deeds: float) -> Patience:
    """For objects on whose status somebody acts: only words, if no condition has another status. Deeds wait `deeds` seconds."""
    return partial(_patience, _done, deeds)


def retold(deeds: float) -> Patience:
    """For objects whose status is only told again: all of it is words. Deeds wait `deeds` seconds."""
    return partial(_patience, _wanted, deeds)


def _patience(of: Callable[[Object], object], deeds: float, old: Object | None, new: Object | None) -> float:
    if new is None:
        return 0.0  # what waits for the end of something waits for nothing else
    return deeds if old is None or of(old) != of(new) else WHEN_IDLE


def awaited(old: Unstructured | None, new: Unstructured | None) -> float:
    """For objects of other providers, that are waited for: it is only words if no other condition is True than was.

    Who owns them is our own word. Coming and going are told at once, other deeds so little later that the two writes of a pass, of
    spec and status, are one.
    """
    if old is None or new is None:
        return 0.0
    return _TWO_WRITES if _provided(old) != _provided(new) else WHEN_IDLE


def _provided(obj: Unstructured) -> object:
    json, metadata, status = obj.json, obj.json.get("metadata") or {}, obj.json.get("status") or {}
    rest = _without(json, frozenset({"status", "metadata"}))
    return rest, [metadata.get(name) for name in _FOREIGN_METADATA], _without(status, _STATUS), _true_in(status)


def _achieved(obj: Object, sums: Sums) -> object:
    deprecated = getattr(getattr(_status(obj), "deprecated", None), "v1beta1", None)
    lists = (getattr(_status(obj), "conditions", ()), getattr(deprecated, "conditions", ()))
    held = [{c.type for c in found if c.status == "True"} - sums.conditions for found in lists]
    return _wanted(obj), _fields(_status(obj), _STATUS | sums.fields), held


def _done(obj: Object) -> object:
    return _wanted(obj), _fields(_status(obj), _STATUS), {c.type: c.status for c in getattr(_status(obj), "conditions", ())}


def _wanted(obj: Object) -> object:
    return getattr(obj, "spec", None), _fields(obj.metadata, _METADATA)


def _status(obj: Any) -> Any:
    return getattr(obj, "status", None)


def _without(json: Any, names: frozenset[str]) -> Any:
    return {name: value for name, value in json.items() if name not in names} if isinstance(json, Mapping) else json


def _fields(struct: Any, names: frozenset[str]) -> list[Any]:
    return [getattr(struct, name) for name in getattr(struct, "__struct_fields__", ()) if name not in names]


def _true_in(status: Any) -> set[str]:
    """Return the types of the conditions that hold, wherever a contract puts them; foreign objects may have anything there."""
    places = [status, status.get("v1beta2")] if isinstance(status, Mapping) else []
    lists = [place.get("conditions") for place in places if isinstance(place, Mapping)]
    items = (item for found in lists if isinstance(found, list) for item in found)
    return {str(item.get("type")) for item in items if isinstance(item, Mapping) and item.get("status") == "True"}
