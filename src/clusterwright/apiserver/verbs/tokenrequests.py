"""Tokens for service accounts, on request."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.auth.tokens import AUDIENCE
from clusterwright.apiserver.calls import Call, read_shape, write_options
from clusterwright.apiserver.metadata import rfc3339
from clusterwright.apiserver.status import failure, generic, invalid, invalid_error
from clusterwright.apiserver.verbs import writes


class _TokenSpec(msgspec.Struct, rename="camel"):
    audiences: tuple[str, ...] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: Json | None = None


class _TokenRequest(msgspec.Struct):
    spec: _TokenSpec | None = None


async def token_request(call: Call) -> Response:
    """POST to serviceaccounts/NAME/token."""
    if call.info.verb != "create":
        raise generic(405, "", "", "", "")
    write_options(call, "CreateOptions")
    request = read_shape(call, _TokenRequest)
    if call.server.tokens is None:
        raise failure(404, "NotFound", "the server does not issue tokens", {})
    entry = await writes.current_entry(call, call.info.name)
    spec = request.spec or _TokenSpec()
    seconds = 3600 if spec.expiration_seconds is None else spec.expiration_seconds
    if not 600 <= seconds <= 2**32:
        error = invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        raise invalid_error("authentication.k8s.io", "TokenRequest", "", [error])
    token, end = call.server.tokens.issue(
        entry.namespace, entry.name, entry.uid, audiences=list(spec.audiences or ()), lifetime=timedelta(seconds=seconds)
    )
    answer: Json = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": entry.name, "namespace": entry.namespace, "creationTimestamp": call.server.timestamp()},
        "spec": {
            "audiences": list(spec.audiences or (AUDIENCE,)),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.bound_object_ref,
        },
        "status": {"token": token, "expirationTimestamp": rfc3339(end)},
    }
    return Response(status=201, headers={"content-type": "application/json"}, body=msgspec.json.encode(answer))
