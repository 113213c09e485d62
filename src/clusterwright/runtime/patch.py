"""The write at the end of a reconcile: one diff against the bytes as read, at most two requests.

    main      spec and metadata; locked only when it replaces a list, which others may have changed meanwhile
    status    the status diff and both condition lists together; locked only when conditions changed

A diff leaves fields alone that this pass did not change, so that unknown fields, and fields that others changed meanwhile, survive. The
change is applied to the newest known state and, after a conflict, to the state that is read again: three-way for conditions (owned types
win, others conflict), finalizers and ownerReferences. No difference, no request.

Order: main, then status; but when a finalizer was taken away, status first, because the object may be gone after that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json, Object, ObjectKey, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.runtime import models
from clusterwright.runtime.client import Client, Original
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.condition_change import CONDITION_PATHS, ConditionChange, ConditionConflict
from clusterwright.runtime.entries import is_newer
from clusterwright.runtime.errors import ApiError, Conflict, NotFound

T = TypeVar("T", bound=Object)

_MAX_TRIES = 5
_MERGED_LISTS = {"finalizers": "", "ownerReferences": "uid"}
"""Lists in metadata that several controllers share, and the field that identifies an item (none: the item itself)."""


@dataclass(slots=True)
class _Latest:
    """The newest known state of the object: as read, as answered, or as read again."""

    json: Json

    @property
    def resource_version(self) -> str:
        return str((self.json.get("metadata") or {}).get("resourceVersion") or "")


class Patcher:
    """Writes the result of a pass. One per controller."""

    def __init__(self, client: Client, clock: Clock, random: Random | None = None) -> None:
        self._client = client
        self._clock = clock
        self._random = random

    async def patch(
        self,
        original: Original[T],
        after: T,
        *,
        owned_conditions: Collection[str] = (),
        owned_v1beta1_conditions: Collection[str] = (),
        observed_generation: bool = False,
    ) -> Unstructured | None:
        """Change the object as read to `after`; return the last answer, or None if nothing was sent or the object is gone.

        `observed_generation`: also set `status.observedGeneration`, which alone causes no request. It becomes the generation of our own
        write of the spec, if the spec is unchanged since; else the one that was read. Both requests are attempted; what failed is raised at
        the end (two failures as an ExceptionGroup). NotFound is success for an object that is being deleted and has no finalizers left.
        """
        before = original.object
        if after == before:
            return None
        latest = _Latest(msgspec.json.decode(original.raw))
        diff = models.merge_patch(latest.json, before, after)
        if not diff:
            return None
        status_diff = diff.pop("status", None) or {}
        for path in CONDITION_PATHS:
            _drop(status_diff, path)

        releases = set(before.metadata.finalizers) - set(after.metadata.finalizers)
        may_be_gone = before.metadata.deletion_timestamp is not None and not after.metadata.finalizers
        work = _Work(self._client, self._clock, self._random, type(before), before.key, before.metadata.uid, original.raw, latest)
        steps = ("status", "main") if releases else ("main", "status")
        errors: list[ApiError | ConditionConflict] = []
        for step in steps:
            try:
                if step == "main":
                    await work.main(diff, before, after)
                    continue
                if observed_generation and not errors:  # what could not be written was not observed
                    after = work.tell_generation(status_diff, before, after, owned_conditions)
                now = self._clock.now()
                await work.status(status_diff, ConditionChange.between(before, after, owned_conditions, owned_v1beta1_conditions, now))
            except NotFound as error:
                if not may_be_gone:
                    errors.append(error)
            except (ApiError, ConditionConflict) as error:
                errors.append(error)
        if len(errors) > 1:
            raise ExceptionGroup(f"failed to patch {before.kind} {before.key}", errors)
        if errors:
            errors[0].add_note(f"failed to patch {before.kind} {before.key}")
            raise errors[0]
        return work.answer


@dataclass(slots=True)
class _Work:
    """One running patch."""

    client: Client
    clock: Clock
    random: Random | None
    kind: type[Object]
    key: ObjectKey
    uid: str
    raw: bytes
    """The object as read."""
    latest: _Latest
    answer: Unstructured | None = None

    async def main(self, diff: Json, before: Object, after: Object) -> None:
        """Patch spec and metadata."""
        if not diff:
            return
        metadata = diff.get("metadata") or {}
        merged = [name for name in _MERGED_LISTS if name in metadata]
        others = {**diff, "metadata": {name: value for name, value in metadata.items() if name not in merged}}
        was, wanted = models.to_json(before).get("metadata", {}), models.to_json(after).get("metadata", {})
        for attempt in range(1, _MAX_TRIES + 1):
            try:
                async with self.client.turn(self.kind, self.key):
                    self._catch_up(others)
                    body = deepcopy(diff)
                    for name in merged:
                        now = (self.latest.json.get("metadata") or {}).get(name) or []
                        body["metadata"][name] = _merge_list(was.get(name) or [], wanted.get(name) or [], now, _MERGED_LISTS[name]) or None
                    await self._send(body, "", locked=bool(merged) or _has_list(others))
                return
            except Conflict:
                # any other list was made from what we read: the pass must be run again on what is there now
                if not merged or _has_list(others) or attempt == _MAX_TRIES:
                    raise
            await self._read_again()

    def tell_generation(self, diff: Json, before: T, after: T, ours: Collection[str]) -> T:
        """Set the observed generation in the status `diff`: the one that was read, or that of our own write of the spec.

        The latter if the spec is unchanged since; then `ours`, the conditions of the pass, get it too. Otherwise the next pass would have
        to write all of it again, for that generation.
        """
        generation, made = before.metadata.generation, int((self.latest.json.get("metadata") or {}).get("generation") or 0)
        if made != generation and self._is_spec(after):
            moved = [replace(c, observed_generation=made) if c.type in ours else c for c in models.conditions_of(after)]
            generation, after = made, models.with_conditions(after, tuple(moved))
        if generation and (self.latest.json.get("status") or {}).get("observedGeneration") != generation:
            diff["observedGeneration"] = generation
        return after

    def _is_spec(self, after: Object) -> bool:
        """Return whether the spec is unchanged since our write."""
        return bool(models.decode(self.kind, msgspec.json.encode(self.latest.json)).spec == getattr(after, "spec", None))

    async def status(self, diff: Json, conditions: ConditionChange | None) -> None:
        """Patch the status, with both condition lists."""
        for attempt in range(1, _MAX_TRIES + 1):
            locked = False
            try:
                async with self.client.turn(self.kind, self.key):
                    self._catch_up({})
                    body: Json = {"status": deepcopy(diff)}
                    locked = conditions is not None and conditions.lay_over(self.latest.json, body["status"])
                    _prune(body["status"])
                    if body["status"]:
                        await self._send(body, "status", locked=locked)
                return
            except Conflict:
                if not locked or attempt == _MAX_TRIES:
                    raise
            await self._read_again()

    async def _send(self, body: Json, subresource: str, *, locked: bool) -> None:
        # the uid keeps us from writing an old object's state over a new one of the same name; for status the API server
        # ignores it, and the lock, or the answer, tells
        metadata = {**(body.get("metadata") or {}), **({"uid": self.uid} if self.uid else {})}
        if locked and self.latest.resource_version:
            metadata["resourceVersion"] = self.latest.resource_version
        if metadata:
            body["metadata"] = metadata
        answer = await self.client.patch(self.kind, self.key, body, subresource=subresource)
        self._check_identity(answer)
        self.answer, self.latest.json = answer, dict(answer.json)

    def _catch_up(self, patch: Json) -> None:
        """Continue from newer writes of this process to the object, which avoids a conflict.

        Not if they changed a list that `patch` replaces: the patch was computed from the older list.
        """
        known = self.client.known(self.kind, self.key)
        if known is None or known is self.raw:
            return
        latest: Json = msgspec.json.decode(known)
        metadata = latest.get("metadata") or {}
        moved = metadata.get("uid") == self.uid and is_newer(str(metadata.get("resourceVersion") or ""), self.latest.resource_version)
        if moved and _lists_stand(patch, self.latest.json, latest):
            self.latest.json = latest

    async def _read_again(self) -> None:
        await self.clock.sleep(0.1 * (1 + (self.random.random() if self.random else 0.5)))
        found = await self.client.live.get(gvk_of(self.kind), self.key)
        self._check_identity(found)
        self.latest.json = dict(found.json)

    def _check_identity(self, found: Unstructured) -> None:
        if self.uid and found.at("metadata", "uid") != self.uid:
            raise NotFound(f"{self.kind.__name__} {self.key} was deleted, and a new object has its name")


def _merge_list(before: Sequence[Any], after: Sequence[Any], latest: Sequence[Any], by: str) -> list[Any]:
    """Return our change from `before` to `after`, applied to `latest`; items keep unknown fields and their order."""

    def identity(item: Any) -> Any:
        return item.get(by) if by and isinstance(item, Mapping) else item

    had = {identity(item): item for item in before}
    want = {identity(item): item for item in after}
    merged: list[Any] = []
    for item in latest:
        name = identity(item)
        if name in had and name not in want:
            continue
        ours = want.pop(name, None)
        if not by or ours is None or ours == had.get(name):
            merged.append(item)
        else:
            stale = had.get(name, {}).keys() - ours.keys()
            merged.append({**{key: value for key, value in item.items() if key not in stale}, **ours})
    # what is left is new to latest; but what we had and left alone was taken away by someone else, and stays away
    merged += [item for name, item in want.items() if name not in had or had[name] != item]
    return merged


def _has_list(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_list(item) for item in value.values())
    return isinstance(value, list)


def _lists_stand(patch: Any, before: Any, now: Any) -> bool:
    """Return whether all lists that the patch replaces are unchanged."""
    if not isinstance(patch, Mapping):
        return not isinstance(patch, list) or before == now
    was, has = (value if isinstance(value, Mapping) else {} for value in (before, now))
    return all(_lists_stand(value, was.get(name), has.get(name)) for name, value in patch.items())


def _drop(tree: Json, path: Sequence[str]) -> None:
    """Remove the value at `path`, and the objects that are empty without it."""
    if not isinstance(tree, dict) or path[0] not in tree:
        return
    if len(path) == 1:
        del tree[path[0]]
        return
    _drop(tree[path[0]], path[1:])
    if tree[path[0]] == {}:
        del tree[path[0]]


def _prune(tree: Json) -> None:
    """Remove empty objects: an empty wrapper does not justify a request."""
    for name, value in list(tree.items()):
        if isinstance(value, dict):
            _prune(value)
            if not value:
                del tree[name]
