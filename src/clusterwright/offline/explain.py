"""Why an object is in its state: the causes of its trouble, the chain that leads there, and the tables that decided.

Works on a bundle, so that a live cluster and a file are explained by the same code: the pass that `decide` runs gives the status
that our controller would write and the truth value of every guard; `causes` finds whom the trouble comes from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from clusterwright.api.meta import Condition, Json, ObjectKey
from clusterwright.conditions import InvalidConditions, conditions_of
from clusterwright.controllers.kit import registry
from clusterwright.offline import topologies
from clusterwright.offline.bundle import BadBundle, Bundle
from clusterwright.offline.causes import Investigation
from clusterwright.offline.complaints import OWN_FINALIZER, Complaint, Tier
from clusterwright.offline.contracts import complete
from clusterwright.offline.decide import run_pass, run_to_completion
from clusterwright.offline.standins import with_stand_ins
from clusterwright.offline.testimony import Node
from clusterwright.offline.world import World
from clusterwright.runtime.keys import sample_keys
from clusterwright.tables import Explanation, Table, explanation_as_json, observing

MOST_CAUSES = 20
UNOBSERVED = (
    "Nothing is known of the workload cluster: what depends on it was decided as without a connection. Causes come from what was written."
)


@dataclass(slots=True)
class Answer:
    """Everything that an explanation says; `to_json` has the documented form."""

    subject: str
    causes: list[Json] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    error: str = ""
    requeue: float | None = None
    actions: list[Json] = field(default_factory=list)
    tables: list[Explanation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What limits the answer."""

    def to_json(self, condition: str = "") -> Json:
        """The answer as plain data; `tables` only those asked for."""
        answer: Json = {"subject": self.subject, "causes": self.causes, "chain": self.chain, "status": self.status}
        answer |= {"error": self.error or None, "requeueAfterSeconds": self.requeue, "actions": self.actions}
        answer["notes"] = self.notes
        answer["rows"] = {t.table: t.decision.row for t in self.tables}
        if condition:
            answer["tables"] = [explanation_as_json(t) for t in self.tables if t.table == condition][-1:]
        return answer


def explain(bundle: Bundle, subject: str) -> Answer:
    """Why the subject (`Kind/namespace/name`) is in its state; raises BadBundle if the bundle does not hold it."""
    kind, _, rest = subject.partition("/")
    namespace, _, name = rest.rpartition("/")
    known = {f"{o['kind']}/{_namespaced(o)}" for o in bundle.objects}
    if subject not in known:
        raise BadBundle(f"{subject} is not in the bundle")
    answer = Answer(subject)
    conditions: tuple[Condition, ...] | None = None
    if registry.find(kind) is not None:
        conditions = _run(bundle, kind, ObjectKey(namespace, name), answer)
    if kind == "Cluster":
        _explain_topology(bundle, next(o for o in bundle.objects if f"{o['kind']}/{_namespaced(o)}" == subject), answer)
    if kind == "Cluster" or bundle.observation.workload_clusters:
        investigation = Investigation(bundle.objects, subject, conditions, error=answer.error, now=bundle.observation.now)
    else:
        # what such a pass finds depends on the workload cluster, of which this bundle knows nothing: what was written counts
        answer.notes += [UNOBSERVED] if answer.tables else []
        investigation = Investigation(bundle.objects, subject, now=bundle.observation.now)
    found = investigation.causes()
    answer.causes = [_cause(investigation, node, answer) for node in found[:MOST_CAUSES]]
    if found:
        answer.chain = [_link(investigation, link) for link in investigation.path_to(found[0].id)]
    return answer


def _namespaced(obj: Json) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']}"


def _explain_topology(bundle: Bundle, cluster: Json, answer: Answer) -> None:
    """What the other controller of a Cluster decides, where the bundle holds all that it looks at; and whom the condition blames."""
    status = cluster.get("status") or {}
    if topologies.can_run(bundle, cluster):
        metadata = cluster["metadata"]
        other = Answer(answer.subject)
        _run(bundle, "Cluster", ObjectKey(metadata.get("namespace") or "", metadata["name"]), other, topologies.CONTROLLER)
        answer.tables += other.tables
        answer.actions += other.actions
        status = other.status or status
    answer.notes += topologies.notes(cluster, status.get("conditions") or ())


def _run(bundle: Bundle, kind: str, key: ObjectKey, answer: Answer, controller: str = "") -> tuple[Condition, ...] | None:
    """One pass of our controller; what it decided goes into the answer."""
    entry = registry.find(kind, controller)
    assert entry is not None
    definition = registry.definition(entry)
    now = bundle.observation.now or datetime.now(UTC).replace(microsecond=0)
    keys = sample_keys()

    def observe(table: Table[Any], snapshot: Any) -> None:
        answer.tables.append(table.explain(snapshot))

    async def observed() -> Json:
        world = World(await with_stand_ins(complete(bundle), now, keys), now, keys)
        with observing(observe):
            return await run_pass(world, definition.make(world.dependencies()), definition.kind, key)

    result = run_to_completion(observed())
    answer.error = result["error"] or ""
    answer.requeue = result["requeueAfterSeconds"]
    answer.actions = result["actions"]
    after = result["object"]
    if after is None:
        return None
    answer.status = after.get("status") or {}
    try:
        return conditions_of(after)
    except InvalidConditions:
        return None


# ------------------------------------------------------------------------------------------------- words


def _cause(investigation: Investigation, node: Node, answer: Answer) -> Json:
    worst = node.worst or Complaint(Tier.UNKNOWN, "")
    return {
        "object": node.id.partition("#")[0],
        "what": worst.text,
        "since": worst.since or None,
        "who": who_must_act(node, worst),
        "next": _next(node, worst, answer),
    }


def who_must_act(node: Node, complaint: Complaint) -> str:
    """Whose move it is."""
    if complaint.tier is Tier.MISSING:
        return f"the author of {', '.join(dict.fromkeys(node.referrers))}: create {node.kind} {node.name} or correct the reference"
    if complaint.tier is Tier.PAUSED:
        return f"whoever paused {node.kind} {node.name}: take spec.paused or the annotation away when it may go on"
    if complaint.tier is Tier.DELETING:
        finalizers = node.object.metadata.finalizers if node.object else ()
        foreign = [f for f in finalizers if OWN_FINALIZER not in f]
        if foreign:
            return f"whoever set the finalizer {', '.join(foreign)}"
        return f"the controller of {node.kind}, which has not finished its clean-up"
    if complaint.about == "RemoteConnectionProbe":
        return _who_answers(node)
    group = node.object.gvk.group if node.object else ""
    if group.startswith("infrastructure."):
        return f"the infrastructure provider that reconciles {node.kind}"
    if group.startswith("bootstrap."):
        return f"the bootstrap provider that reconciles {node.kind}"
    if group.startswith("controlplane."):
        return f"the control plane provider that reconciles {node.kind}"
    if node.kind in {"Cluster", "MachineDeployment", "MachinePool", "MachineHealthCheck", "ClusterClass", "ResourceQuota"}:
        return f"the owner of {node.kind} {node.name}"
    return f"the controller of {node.kind}"


def _who_answers(cluster: Node) -> str:
    """Nothing here tells more of a connection that is lost; the two ends of it and what lies between are for people to look at."""
    host, port = (cluster.object.at("spec", "controlPlaneEndpoint", part) if cluster.object else None for part in ("host", "port"))
    where = f" at {host}:{port}" if host else ""
    return f"whoever runs the API server of {cluster.name}{where}, or the network between here and there"


def _next(node: Node, complaint: Complaint, answer: Answer) -> str:
    watched = "when it is created" if complaint.tier is Tier.MISSING else f"when {node.kind} {node.name} changes"
    if answer.error:
        return f"{watched}, and again with backoff: {answer.error}"
    if answer.requeue is not None:
        return f"{watched}, at the latest in {answer.requeue:g} s"
    return watched


def _link(investigation: Investigation, name: str) -> str:
    node = investigation.nodes[name]
    worst = node.worst
    return f"{name.partition('#')[0]}: {worst.text}" if worst else name
