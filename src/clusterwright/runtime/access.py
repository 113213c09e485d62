"""Authorise callers of this process with the API server, by TokenReview and SubjectAccessReview, as kubelets and kube-rbac-proxy do.

A caller sends the token of a ServiceAccount and needs a role with `nonResourceURLs: [/metrics], verbs: [get]`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.rest import RestClient

REMEMBERED: Final = 60.0
"""How many seconds an answer of the API server is cached."""
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason of a refusal: 401 unauthenticated, 403 forbidden, 503 the API server did not answer."""

    status: int
    message: str


class Gate:
    """Asks the API server about callers, each question once a minute."""

    def __init__(self, client: RestClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[bytes, tuple[float, Refusal | None]] = {}

    async def refusal(self, authorization: str, verb: str, path: str) -> Refusal | None:
        """Return why the caller with this Authorization header is refused; None: it is allowed."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Refusal(401, "a bearer token is needed")
        question = hashlib.sha256("\0".join((token, verb, path)).encode()).digest()
        until, answer = self._known.get(question, (0.0, None))
        now = self._clock.monotonic()
        if now < until:
            return answer
        try:
            answer = await self._ask(token, verb, path)
        except ApiError as error:
            return Refusal(503, f"the API server could not be asked: {error}")
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[question] = (now + REMEMBERED, answer)
        return answer

    async def _ask(self, token: str, verb: str, path: str) -> Refusal | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = await self._review(review)
        if status.get("authenticated") is not True:
            return Refusal(401, "the token is unknown")
        user = status.get("user") or {}
        asked = {name: user[name] for name in ("groups", "extra", "uid") if user.get(name)}
        spec = {"user": user.get("username", ""), **asked, "nonResourceAttributes": {"verb": verb, "path": path}}
        status = await self._review({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
        if status.get("allowed") is not True:
            return Refusal(403, f'user "{spec["user"]}" cannot {verb} path "{path}"')
        return None

    async def _review(self, review: Json) -> dict[str, Any]:
        answer = await self._client.create(review)
        return dict(answer.at("status") or {})
