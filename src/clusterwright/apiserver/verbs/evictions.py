"""Subresources of Pods: eviction, which respects PodDisruptionBudgets, and binding to a node."""

from __future__ import annotations

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.api.selectors import object_selector
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.status import (
    bad_request,
    conflict,
    failure,
    generic,
    invalid_error,
    not_supported,
    required,
    too_many_requests,
)
from clusterwright.apiserver.storage.store import Entry
from clusterwright.apiserver.system import budgets
from clusterwright.apiserver.verbs import deletes, incoming, options, writes


class _Named(msgspec.Struct):
    name: str | None = None
    kind: str | None = None


class _Eviction(msgspec.Struct, rename="camel"):
    metadata: _Named | None = None
    delete_options: Json | None = None


class _Binding(msgspec.Struct):
    target: _Named | None = None


_BUDGETS = "poddisruptionbudgets.policy"


async def evict(call: Call) -> Response:
    """Answer POST to pods/NAME/eviction."""
    if call.info.verb != "create":
        raise generic(405, "", "", "", "")
    dry_run = options.write_options(call, "CreateOptions")
    eviction = await call.off(incoming.read_shape, call, _Eviction)
    if (eviction.metadata or _Named()).name not in {None, "", call.info.name}:
        raise bad_request("name in URL does not match name in Eviction object")
    entry = await writes.current_entry(call, call.info.name)
    wanted = deletes.check_options(eviction.delete_options or {})
    pod = call.load(entry)
    if not _passes_freely(pod):
        _consult_budget(call, entry, pod, dry_run=dry_run)
    if dry_run:
        wanted = {**wanted, "dryRun": ["All"]}
    info = replace(call.info, subresource="")
    outcome = await deletes.delete_entry(replace(call, info=info), entry, wanted)
    if outcome is None:
        raise failure(409, "Conflict", "the pod changed while it was being evicted", {})
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return call.answer(201, body)


def _passes_freely(pod: Json) -> bool:
    """Return whether a Pod can be evicted without checking budgets: it does not run, or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in {"Succeeded", "Failed", "Pending"} or bool(pod["metadata"].get("deletionTimestamp"))


def _consult_budget(call: Call, entry: Entry, pod: Json, *, dry_run: bool) -> None:
    labels = pod["metadata"].get("labels") or {}
    table = call.server.store.table(_BUDGETS)
    matching = []
    for candidate in table.range(entry.namespace):
        budget = msgspec.json.decode(candidate.raw)
        if object_selector((budget.get("spec") or {}).get("selector"))(labels):
            matching.append((candidate, budget))
    if not matching:
        return
    if len(matching) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise failure(500, "InternalError", f"Internal error occurred: {text}", {"causes": [{"message": text}]})
    candidate, budget = matching[0]
    if call.server.computes_budgets:
        budgets.refresh(call.server, candidate, budget)
    status = budget.get("status") or {}
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        text = "Cannot evict pod as it would violate the pod's disruption budget."
        cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {candidate.name} is still being processed by the server."}
        raise too_many_requests(text, 10, [cause])
    if status.get("disruptionsAllowed", 0) <= 0:
        text = "Cannot evict pod as it would violate the pod's disruption budget."
        message = (
            f"The disruption budget {candidate.name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
        raise too_many_requests(text, 0, [{"reason": "DisruptionBudget", "message": message}])
    if not dry_run:
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[entry.name] = call.server.timestamp()
        budget["status"] = status
        call.server.put_system(table, table.objects[candidate.key], budget)


async def bind(call: Call) -> Response:
    """Answer POST to pods/NAME/binding, which a scheduler sends."""
    if call.info.verb != "create":
        raise generic(405, "", "", "", "")
    dry_run = options.write_options(call, "CreateOptions")
    target = (await call.off(incoming.read_shape, call, _Binding)).target or _Named()
    if not target.name:
        raise invalid_error("", "Binding", call.info.name, [required("target.name")])
    if target.kind not in {None, "", "Node"}:
        raise invalid_error("", "Binding", call.info.name, [not_supported("target.kind", target.kind, ["Node", "<empty>"])])
    entry = await writes.current_entry(call, call.info.name)
    pod = call.load(entry)
    problem = ""
    if pod["metadata"].get("deletionTimestamp"):
        problem = f"pod {entry.name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        problem = f'pod {entry.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    if problem:
        raise conflict("", "pods/binding", entry.name, problem)
    if not dry_run:
        pod["spec"]["nodeName"] = target.name
        status = pod.setdefault("status", {})
        conditions = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": call.server.timestamp()}
        status["conditions"] = [*conditions, scheduled]
        written = call.server.put_system(call.table, entry, pod)
        await call.server.store.durable(written.rv)
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return call.answer(201, body)


async def bind_named(call: Call) -> Response:
    """Answer POST to bindings: bind the Pod that the body names."""
    body, _ = await call.off(incoming.read_body, call)
    name = (body.get("metadata") or {}).get("name") or ""
    pods = call.server.registry.find("", "v1", "pods")
    assert pods is not None
    info = replace(call.info, resource="pods", subresource="binding", name=name)
    return await bind(replace(call, resource=pods, info=info, _table=None, _versions=None))
