"""Tokens for service accounts, on request."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.auth.tokens import AUDIENCE, Bound
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.metadata import rfc3339
from clusterwright.apiserver.status import bad_request, conflict, failure, generic, invalid, invalid_error, not_found
from clusterwright.apiserver.verbs import incoming, options, writes


class _TokenSpec(msgspec.Struct, rename="camel"):
    audiences: tuple[str, ...] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: Json | None = None


class _TokenRequest(msgspec.Struct):
    spec: _TokenSpec | None = None


def _bound(call: Call, account: str, reference: Json | None) -> Bound | None:
    """Return the object that a token is bound to, after checking that it exists and belongs to the account. Raises StatusError."""
    if not reference:
        return None
    kind, name, uid = str(reference.get("kind") or ""), str(reference.get("name") or ""), str(reference.get("uid") or "")
    tables = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
    if kind not in tables or reference.get("apiVersion") not in (None, "", "v1"):
        raise bad_request(f"cannot bind token to object of type {reference.get('apiVersion') or 'v1'}, Kind={kind}")
    entry = call.server.store.table(tables[kind]).objects.get(name if kind == "Node" else f"{call.info.namespace}/{name}")
    if entry is None:
        raise not_found("", tables[kind], name)
    if uid and uid != entry.uid:
        text = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        text += "The object might have been deleted and then recreated"
        raise conflict("", tables[kind], name, text)
    if kind == "Pod" and (msgspec.json.decode(entry.raw).get("spec") or {}).get("serviceAccountName") != account:
        raise bad_request(f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.')
    return Bound(kind, name, entry.uid)


async def token_request(call: Call) -> Response:
    """Answer POST to serviceaccounts/NAME/token."""
    if call.info.verb != "create":
        raise generic(405, "", "", "", "")
    options.write_options(call, "CreateOptions")
    request = await call.off(incoming.read_shape, call, _TokenRequest)
    if call.server.tokens is None:
        raise failure(404, "NotFound", "the server does not issue tokens", {})
    entry = await writes.current_entry(call, call.info.name)
    spec = request.spec or _TokenSpec()
    seconds = 3600 if spec.expiration_seconds is None else spec.expiration_seconds
    if not 600 <= seconds <= 2**32:
        error = invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        raise invalid_error("authentication.k8s.io", "TokenRequest", "", [error])
    bound = _bound(call, entry.name, spec.bound_object_ref)
    token, end = call.server.tokens.issue(
        entry.namespace, entry.name, entry.uid, audiences=list(spec.audiences or ()), lifetime=timedelta(seconds=seconds), bound=bound
    )
    answer: Json = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": entry.name, "namespace": entry.namespace, "creationTimestamp": call.server.timestamp()},
        "spec": {
            "audiences": list(spec.audiences or (AUDIENCE,)),
            "expirationSeconds": seconds,
            "boundObjectRef": None if bound is None else {**(spec.bound_object_ref or {}), "uid": bound.uid},
        },
        "status": {"token": token, "expirationTimestamp": rfc3339(end)},
    }
    return Response(status=201, headers={"content-type": "application/json"}, body=msgspec.json.encode(answer))
