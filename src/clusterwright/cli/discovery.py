"""Kinds that we have no types for and the API server defines, for example those of other providers."""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.api.meta import GroupVersionKind
from clusterwright.api.scheme import Resource
from clusterwright.api.wire import AGGREGATED_DISCOVERY, Request
from clusterwright.cli import subjects
from clusterwright.cli.similar import similar
from clusterwright.cli.subjects import BadSubject
from clusterwright.runtime.errors import from_response
from clusterwright.runtime.rest import RestClient


async def resource_of(client: RestClient, word: str) -> Resource:
    """Return the resource that a word means, one of ours or one of the API server's; raises BadSubject."""
    found = subjects.resource_of(word) or await _served(client, word)
    if found is None:
        hint = similar(word.lower(), subjects.words())
        raise BadSubject(f"{word!r} is not a known kind, also not to the API server{hint and f'; {hint}'}")
    return found


async def _served(client: RestClient, word: str) -> Resource | None:
    bare, _, group = word.lower().partition(".")
    for path in ("/api", "/apis"):
        request = Request(method="GET", path=path, headers={**client.headers, "accept": f"{AGGREGATED_DISCOVERY},application/json"})
        response = await client.transport.send(request)
        if response.status >= 300:
            raise from_response(response.status, response.body)
        for item in msgspec.json.decode(response.body).get("items") or ():
            name = item["metadata"].get("name", "")
            for version in item["versions"]:
                if group not in {"", name, f"{version['version']}.{name}"}:
                    continue
                for resource in version["resources"]:
                    if bare in _words(resource):
                        gvk = GroupVersionKind(name, version["version"], resource["responseKind"]["kind"])
                        return Resource(gvk, resource["resource"], resource["scope"] == "Namespaced")
    return None


def _words(resource: dict[str, Any]) -> set[str]:
    kind = resource["responseKind"]["kind"].lower()
    return {resource["resource"], resource.get("singularResource") or kind, kind, *resource.get("shortNames", ())}
