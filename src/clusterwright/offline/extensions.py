"""Runtime extensions as an Observation describes them: handlers give the observed answers, and every call is recorded."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from clusterwright.api.meta import Json
from clusterwright.offline.observation import Canned, Observation, Server
from clusterwright.runtime.client import Reader
from clusterwright.runtimesdk.client import PostFailed, RuntimeClient
from clusterwright.runtimesdk.registry import Handler, Registry


class CannedExtensions:
    """Answers calls of runtime hooks. `calls`: all calls, in order."""

    def __init__(self, answers: Mapping[str, Canned], servers: Mapping[str, Server] | None = None) -> None:
        self._answers = answers
        self._servers = servers or {}
        self.calls: list[Json] = []

    async def __call__(self, handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
        """Return the observed answer of a handler; one that is not named cannot be reached."""
        request: Json = msgspec.json.decode(body)
        self.calls.append({"url": url, "body": request})
        if handler.hook == "Discovery":
            return self._discovered(url.partition("?")[0])
        canned = self._answers.get(handler.short_name)
        if canned is None or canned.error:
            raise PostFailed(canned.error if canned is not None else f"no answer of handler {handler.name} was observed")
        if canned.response is None:
            return canned.code, canned.text.encode()
        return canned.code, msgspec.json.encode(_addressed(dict(canned.response), request))

    def _discovered(self, url: str) -> tuple[int, bytes]:
        server = self._servers.get(url)
        if server is None or server.error:
            raise PostFailed(server.error if server is not None else f"no answer of {url} was observed")
        return server.code, server.text.encode() if server.text is not None else msgspec.json.encode(server.body)


def _addressed(response: Json, request: Json) -> Json:
    """Return a response whose items have the uids of the request's items; the observed ones name them by their holder."""
    if not any(isinstance(item, Mapping) and "holder" in item for item in response.get("items") or ()):
        return response
    items: list[Any] = []
    for item in response["items"]:
        holder = item.get("holder")
        if holder is None:
            items.append(item)
            continue
        uids = [r["uid"] for r in request["items"] if all(r["holderReference"].get(k) == v for k, v in holder.items())]
        plain = {k: v for k, v in item.items() if k != "holder"}
        if isinstance(plain.get("patch"), str):
            plain["patch"] = base64.b64encode(plain["patch"].encode()).decode()
        items += [{**plain, "uid": uid} for uid in uids or ["unknown"]]
    return {**response, "items": items}


def runtime_client(objects: Iterable[Json], observation: Observation, reader: Reader, post: CannedExtensions) -> RuntimeClient:
    """Return the client of a bundle, whose ExtensionConfigs are registered by their status."""
    registry = Registry()
    if observation.runtime_registry.ready:
        registry.start((o for o in objects if o.get("kind") == "ExtensionConfig"), known=lambda _: True)
    return RuntimeClient(registry, post, reader, lambda: 0.0)
