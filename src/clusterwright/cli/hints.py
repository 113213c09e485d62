"""Suggest the name that a user may have meant when a name was not found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clusterwright.api.wire import Request
from clusterwright.cli import discovery
from clusterwright.cli.similar import similar
from clusterwright.cli.subjects import BadSubject
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.rest import RestClient

_MOST = 500
"""How many names are read to find a similar one."""
_NAMES = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


async def with_hint(client: RestClient, error: NotFound) -> NotFound:
    """Return the error with the namespace in which the object exists, or with similar names; unchanged if neither is found."""
    details = error.status.get("details")
    if not isinstance(details, Mapping) or not details.get("name") or not details.get("kind"):
        return error
    name, plural, group = (str(details.get(key) or "") for key in ("name", "kind", "group"))
    try:
        found = await _names(client, f"{plural}.{group}" if group else plural)
    except (ApiError, BadSubject):
        return error
    elsewhere = sorted(namespace for namespace, known in found if known == name and namespace)
    if elsewhere:
        hint = f"it is in namespace {' and in '.join(elsewhere)}; add -n {elsewhere[0]}"
    else:
        hint = similar(name, (known for _, known in found))
    return NotFound(f"{error.message}; {hint}", error.status) if hint else error


async def _names(client: RestClient, word: str) -> list[tuple[str, str]]:
    """Return namespaces and names of the first objects of a kind in all namespaces. Raises ApiError, BadSubject."""
    resource = await discovery.resource_of(client, word)
    headers = {**client.headers, "accept": _NAMES}
    response = await client.transport.send(Request(method="GET", path=resource.path(""), query=(("limit", str(_MOST)),), headers=headers))
    if response.status >= 300:
        return []
    items: list[Any] = msgspec.json.decode(response.body).get("items") or []
    return [(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items]
