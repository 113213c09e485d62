"""Our conversion inside the embedded API server, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright import conversion
from clusterwright.api.meta import Json
from clusterwright.apiserver.conversion import ConversionFailed, Converter, InProcess
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.system.definitions import TABLE


def converters(server: Core, group: str, kind: str) -> Converter | None:
    """Return the converter of one of our kinds; None for others."""
    if not conversion.convertible(group, kind):
        return None

    def metadata(name: str) -> Mapping[str, Any] | None:
        entry = server.store.table(TABLE).objects.get(name)
        return None if entry is None else {"name": name, "labels": entry.labels}

    versions = conversion.versions_from_crds(metadata)

    def convert(obj: Json, api_version: str) -> Json:
        try:
            return conversion.convert(obj, api_version, versions)
        except conversion.ConversionFailed as error:
            text = f"conversion webhook for {obj.get('apiVersion')}, Kind={kind} failed: failed to convert object: {error}"
            raise ConversionFailed(text) from None

    return InProcess(convert)
