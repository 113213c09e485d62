"""What only a kubelet could answer: logs, commands, streams. Pods have no containers here, and who asks is told so."""

from __future__ import annotations

from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import StatusError, failure
from clusterwright.apiserver.verbs import reads

SUBRESOURCES = ("attach", "exec", "log")


def refusal(info: RequestInfo) -> StatusError:
    """What a request for a Pod's containers is answered."""
    text = f"pods/{info.subresource} is not to be had: Pod {info.namespace}/{info.name} is simulated, no container of it runs"
    return failure(405, "MethodNotAllowed", text, {"kind": "pods", "name": info.name})


async def refuse(call: Call) -> Response:
    """Any request for logs, or to run something; a Pod that is not there is told to be absent first."""
    await reads.get(call)
    raise refusal(call.info)
