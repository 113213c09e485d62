"""Conversion of objects between the versions of a kind.

A `Converter` belongs to a kind. Most convert at once. A conversion webhook must be awaited, so synchronous code cannot use it: such code
runs under `settled`, which fetches missing conversions and runs it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.interfaces import DecodeError, KindHandler
from clusterwright.apiserver.metadata import validate_annotations, validate_labels
from clusterwright.apiserver.status import StatusError, failure, internal

T = TypeVar("T")


class Run(Protocol):
    """Runs work on the event loop or on another thread."""

    async def __call__(self, work: Callable[..., T], *arguments: object) -> T:
        """Return the result of the work."""


class ConversionFailed(Exception):
    """An object cannot be converted to another version; the text says why."""


class Converter(Protocol):
    """Converts the objects of one kind."""

    @property
    def immediate(self) -> bool:
        """Whether `convert` can be called; if not, only `convert_all`."""

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the object in another version; `obj` may be changed. Raises ConversionFailed."""

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """Return objects in another version, in the same order. Raises ConversionFailed."""


class Relabel:
    """The strategy `None`: versions differ only in their name."""

    immediate = True

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the object with another apiVersion."""
        obj["apiVersion"] = api_version
        return obj

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """Return the objects with another apiVersion."""
        return [self.convert(obj, api_version) for obj in objects]


class InProcess:
    """A conversion that is a function of this process; raises ConversionFailed."""

    immediate = True

    def __init__(self, function: Callable[[Json, str], Json]) -> None:
        self._function = function

    def convert(self, obj: Json, api_version: str) -> Json:
        """Return the object in another version."""
        before = obj.setdefault("metadata", {})  # managedfields converts parts of objects, which may have no metadata
        return restored(self._function(obj, api_version), before)

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """Return the objects in another version."""
        return [self.convert(obj, api_version) for obj in objects]


RELABEL = Relabel()


class Pending(Exception):
    """Synchronous code needs an object in a version that must be awaited."""

    def __init__(self, obj: Json, api_version: str) -> None:
        super().__init__(f"the object must be converted to {api_version} first")
        self.obj, self.api_version = obj, api_version


class Versions(dict[str, KindHandler]):
    """The handlers of all served versions of a kind by apiVersion, and their converter. Built-in kinds are converted by their handlers."""

    def __init__(self, handlers: Mapping[str, KindHandler], converter: Converter | None = RELABEL) -> None:
        super().__init__(handlers)
        self.converter = converter
        self.immediate = converter is None or converter.immediate
        self.under_way: dict[tuple[int, str], asyncio.Event] = {}
        """Conversions in progress: revision and version."""
        self._known: dict[tuple[bytes, str], bytes] = {}

    def convert(self, obj: Json, api_version: str, *, pruned: bool = True) -> Json:
        """Return an object in another version, `pruned` by that version's schema; it may be changed. Raises StatusError or Pending."""
        if obj.get("apiVersion") == api_version:
            return obj
        if self.converter is None:
            handler = self.get(str(obj.get("apiVersion"))) or self[api_version]
            return handler.convert(obj, api_version)
        if self.immediate:
            try:
                converted = self.converter.convert(obj, api_version)
                return self.fitted(converted, api_version) if pruned else converted
            except ConversionFailed as e:
                raise unconvertible(e) from None
        found = self._known.get((msgspec.json.encode(obj), api_version))
        if found is None:
            raise Pending(obj, api_version)
        known: Json = msgspec.json.decode(found)
        return known

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """Return objects in another version, pruned by that version's schema; they may be changed. Raises StatusError."""
        if self.immediate:
            return [self.convert(obj, api_version) for obj in objects]
        assert self.converter is not None
        try:
            others = [o for o in objects if o.get("apiVersion") != api_version]
            made = iter(await self.converter.convert_all(others, api_version) if others else ())
            return [obj if obj.get("apiVersion") == api_version else self.fitted(next(made), api_version) for obj in objects]
        except ConversionFailed as e:
            raise unconvertible(e) from None

    def fitted(self, obj: Json, api_version: str) -> Json:
        """Prune a converted object by the version's schema."""
        handler = self.get(api_version)
        if handler is not None:
            with suppress(DecodeError):
                handler.decode(obj)
        return obj

    async def settled(self, action: Callable[[Versions], T], run: Run) -> T:
        """Return the result of code that may convert: `run` is repeated with the missing conversions until it needs no more."""
        informed = self
        while True:
            try:
                return await run(action, informed)
            except Pending as lack:
                if informed is self:
                    informed = Versions(self, self.converter)
                key = (msgspec.json.encode(lack.obj), lack.api_version)
                (made,) = await self.convert_all([lack.obj], lack.api_version)
                informed._known[key] = msgspec.json.encode(made)
                await asyncio.sleep(0)


async def convert_for_admission(versions: Versions, objects: Sequence[Json], api_version: str) -> list[Json]:
    """Convert objects for an admission webhook or policy. Failures are internal errors."""
    try:
        return await versions.convert_all(objects, api_version)
    except StatusError as e:
        raise internal(str(e)) from None


def unconvertible(error: ConversionFailed) -> StatusError:
    """Return the error (500) for an object that cannot be converted, as kube-apiserver answers it."""
    return failure(500, "", str(error))


def restored(converted: Json, before: Json) -> Json:
    """Return a converted object with its old metadata: a converter may only change labels and annotations."""
    meta = converted.get("metadata")
    if not isinstance(meta, dict):
        raise ConversionFailed("missing metadata in converted object" if meta is None else "invalid metadata in converted object")
    kept = {k: v for k, v in before.items() if k not in {"labels", "annotations"}}
    for field, validate, shown in (
        ("labels", validate_labels, "metadata.labels"),
        ("annotations", validate_annotations, "metadata.annotation"),
    ):
        value = meta.get(field)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ConversionFailed(f"invalid metadata.{field} in converted object")
        for key, text in value.items():
            if not isinstance(text, str):
                raise ConversionFailed(f"metadata.{field}[{key}] must be a string in converted object")
        if value != before.get(field):
            errors = [str(e) for e in validate(value, shown)]
            if errors:
                raise ConversionFailed(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        kept[field] = value
    return {**converted, "metadata": kept}
