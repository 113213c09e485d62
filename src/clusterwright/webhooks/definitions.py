"""Cache the contract labels of CustomResourceDefinitions for conversions, for a short time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusterwright.api.meta import Object, ObjectKey
from clusterwright.conversion import ConversionFailed
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError

FRESH: Final = 30.0
"""How many seconds labels are cached."""


class CustomResourceDefinitionMeta(Object):
    """The metadata of a CustomResourceDefinition."""

    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "CustomResourceDefinition"


class NotKnownYet(Exception):
    """The definition must be read first."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Definitions:
    """Reads definitions on demand. A missing one is read again each time."""

    def __init__(self, reader: Reader, time: Callable[[], float]) -> None:
        self._reader = reader
        self._time = time
        self._known: dict[str, tuple[float, Mapping[str, Any] | None]] = {}

    def known(self, name: str) -> Mapping[str, Any] | None:
        """Return the metadata of a definition, None if there is none; raises NotKnownYet."""
        until, metadata = self._known.get(name, (0.0, None))
        if until < self._time():
            raise NotKnownYet(name)
        if metadata is None:
            del self._known[name]
        return metadata

    async def learn(self, name: str) -> None:
        """Read a definition; raises ConversionFailed if that fails."""
        try:
            found = await self._reader.find(CustomResourceDefinitionMeta, ObjectKey("", name))
        except ApiError as error:
            raise ConversionFailed(f"CustomResourceDefinition {name} cannot be read: {error}") from None
        metadata = None if found is None else {"name": name, "labels": dict(found.metadata.labels)}
        self._known[name] = (self._time() + FRESH, metadata)
