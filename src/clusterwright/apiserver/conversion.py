"""Objects of one version of a kind as objects of another: how a server finds the way, and what it demands of the result.

A `Converter` belongs to a kind. Most convert at once; one that must ask somebody (a conversion webhook) cannot be used by code
that does not wait: that code runs under `settled`, which fetches what it lacks and runs it again.
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
    """Runs a piece of work where there is room for it."""

    async def __call__(self, work: Callable[..., T], *arguments: object) -> T:
        """Its result."""


class ConversionFailed(Exception):
    """An object cannot be shown in another version; the text says why."""


class Converter(Protocol):
    """Converts the objects of one kind."""

    @property
    def immediate(self) -> bool:
        """Whether `convert` can be called; if not, only `convert_all`."""

    def convert(self, obj: Json, api_version: str) -> Json:
        """The object in another version. `obj` belongs to the converter, which may change it. Raises ConversionFailed."""

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """Some objects in another version, in their order. Raises ConversionFailed."""


class Relabel:
    """Strategy `None`: versions differ in nothing but their name."""

    immediate = True

    def convert(self, obj: Json, api_version: str) -> Json:
        """The object with another apiVersion."""
        obj["apiVersion"] = api_version
        return obj

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """The objects with another apiVersion."""
        return [self.convert(obj, api_version) for obj in objects]


class InProcess:
    """A conversion that is a function of this process; raises ConversionFailed."""

    immediate = True

    def __init__(self, function: Callable[[Json, str], Json]) -> None:
        self._function = function

    def convert(self, obj: Json, api_version: str) -> Json:
        """The object in another version."""
        before = obj.setdefault("metadata", {})  # a part of an object, of which owners are compared, may have none
        return restored(self._function(obj, api_version), before)

    async def convert_all(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """The objects in another version."""
        return [self.convert(obj, api_version) for obj in objects]


RELABEL = Relabel()


class Pending(Exception):
    """Code that does not wait wants an object in a version that has to be waited for."""

    def __init__(self, obj: Json, api_version: str) -> None:
        super().__init__(f"the object must be converted to {api_version} first")
        self.obj, self.api_version = obj, api_version


class Versions(dict[str, KindHandler]):
    """All served versions of a kind, apiVersion to handler, and the way between them. Built-ins (no converter) know their own."""

    def __init__(self, handlers: Mapping[str, KindHandler], converter: Converter | None = RELABEL) -> None:
        super().__init__(handlers)
        self.converter = converter
        self.immediate = converter is None or converter.immediate
        self.under_way: dict[tuple[int, str], asyncio.Event] = {}
        """What is being converted for somebody: revision and version."""
        self._known: dict[tuple[bytes, str], bytes] = {}

    def convert(self, obj: Json, api_version: str, *, pruned: bool = True) -> Json:
        """An object that is ours in another version, `pruned` by that version's schema. Raises StatusError or Pending."""
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
        """Objects that are ours in another version, pruned by that version's schema. Raises StatusError."""
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
        """What a converter made, without what the version's schema does not know."""
        handler = self.get(api_version)
        if handler is not None:
            with suppress(DecodeError):
                handler.decode(obj)
        return obj

    async def settled(self, action: Callable[[Versions], T], run: Run) -> T:
        """Return the result of code that may convert: `run` does it again with what it lacked until it lacks nothing."""
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
    """As `Versions.convert_all`, for a webhook that knows another version: what cannot be converted is an internal error then."""
    try:
        return await versions.convert_all(objects, api_version)
    except StatusError as e:
        raise internal(str(e)) from None


def unconvertible(error: ConversionFailed) -> StatusError:
    """500, as kube-apiserver answers when an object cannot be shown."""
    return failure(500, "", str(error))


def restored(converted: Json, before: Json) -> Json:
    """What a converter made, with the metadata of before: all but labels and annotations are not its to change."""
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
