"""CertificateSigningRequests: the server records who created them; a subresource approves them."""

from __future__ import annotations

from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.identity import user_info
from clusterwright.apiserver.status import generic
from clusterwright.apiserver.storage.streams import Stream
from clusterwright.apiserver.verbs import incoming, options, patching, reads, writes


async def create(call: Call) -> Response:
    """Answer POST: replace user, groups and extra by those of the authenticated user."""
    dry_run = options.write_options(call, "CreateOptions")
    obj, duplicates = await call.off(incoming.read_body, call)
    incoming.check_kind(call, obj)
    incoming.decode(call, obj, duplicates)
    call.resource.handler.default(obj)
    spec = obj.setdefault("spec", {})
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    spec.update(user_info(call.user))
    stored, raw = await writes.create_object(call, obj, dry_run=dry_run)
    return call.answer(201, stored, raw)


async def approve(call: Call) -> Response | Stream:
    """Get, replace or patch the approval: conditions of the status."""
    if call.info.verb == "get":
        return await reads.get(call)
    if call.info.verb == "update":
        return await writes.update(call)
    if call.info.verb == "patch":
        return await patching.patch(call)
    raise generic(405, "", "", "", "")
