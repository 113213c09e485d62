"""Requests that need a kubelet: logs, commands, streams. Pods have no containers here, so they are refused."""

from __future__ import annotations

from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import StatusError, failure
from clusterwright.apiserver.verbs import reads

SUBRESOURCES = ("attach", "exec", "log")


def refusal(info: RequestInfo) -> StatusError:
    """Return the error for a request about a Pod's containers."""
    text = f"pods/{info.subresource} is not to be had: Pod {info.namespace}/{info.name} is simulated, no container of it runs"
    return failure(405, "MethodNotAllowed", text, {"kind": "pods", "name": info.name})


async def refuse(call: Call) -> Response:
    """Refuse a request for logs or a command; 404 if the Pod does not exist."""
    await reads.get(call)
    raise refusal(call.info)
