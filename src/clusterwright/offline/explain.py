"""Why an object is in its state: the verdict, the causes of its trouble, the chain that leads there, and the tables that decided.

Works on a bundle, so that a live cluster and a file are explained by the same code: passes of our controllers give what they would
write, the truth value of every guard and whom it asked; `causes` finds whom the trouble comes from; `verdict` says how bad it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterwright.api.meta import Json, Unstructured
from clusterwright.controllers.kit import registry
from clusterwright.offline import topologies
from clusterwright.offline.advice import advise
from clusterwright.offline.bundle import BadBundle, Bundle
from clusterwright.offline.cause_ids import cause_id
from clusterwright.offline.causes import Investigation
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.evidence import evidence
from clusterwright.offline.nodes import Node
from clusterwright.offline.ownership import related
from clusterwright.offline.passes import Pass, findings_of, run_passes
from clusterwright.offline.reported import Finding, Sight
from clusterwright.offline.timeline import Moment, of_decisions
from clusterwright.offline.verdict import State, Verdict, judge, link
from clusterwright.offline.verdict_times import since_left
from clusterwright.tables import Explanation, explanation_as_json

MOST_CAUSES = 20
MOST_PASSES = 200
"""Of one explanation: each has a world of its own."""
_MANY = ("KubeadmConfig/", "Machine/", "DevMachine/")
"""What a large cluster has most of: looked at last."""
UNOBSERVED = (
    "Nothing is known of the workload cluster: what depends on it was decided as without a connection. Causes come from what was written."
)


@dataclass(slots=True)
class Answer:
    """Everything that an explanation says; `to_json` has the documented form."""

    subject: str
    verdict: Verdict = field(default_factory=lambda: Verdict("", State.UNSEEN, ""))
    causes: list[Json] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    error: str = ""
    requeue: float | None = None
    actions: list[Json] = field(default_factory=list)
    tables: list[Explanation] = field(default_factory=list)
    history: list[Moment] = field(default_factory=list)
    """What the running controllers decided about the subject before, oldest first; empty where they could not be asked."""
    evidence: list[Json] = field(default_factory=list)
    """The evidence behind the verdict, link by link."""
    notes: list[str] = field(default_factory=list)
    """What limits the answer."""

    def to_json(self, condition: str = "") -> Json:
        """Return the answer as plain data; `tables` only those asked for."""
        answer: Json = {"subject": self.subject, "verdict": self.verdict.to_json(), "causes": self.causes, "chain": self.chain}
        answer |= {"status": self.status, "error": self.error or None, "requeueAfterSeconds": self.requeue, "actions": self.actions}
        answer["evidence"] = self.evidence
        answer["notes"] = self.notes
        answer["history"] = [moment.to_json() for moment in self.history]
        answer["rows"] = {t.table: t.decision.row for t in self.tables}
        if condition:
            answer["tables"] = [explanation_as_json(t) for t in self.tables if t.table == condition][-1:]
        return answer


def explain(bundle: Bundle, subject: str) -> Answer:
    """Why the subject (`Kind/namespace/name`) is in its state; raises BadBundle if the bundle does not hold it."""
    kind = subject.partition("/")[0]
    known = {f"{o['kind']}/{_namespaced(o)}" for o in bundle.objects}
    if subject not in known:
        raise BadBundle(f"{subject} is not in the bundle")
    observation = bundle.observation
    unseen = {t.kind: t.error for t in observation.unseen}
    # where the workload cluster was looked at, passes over all objects find what they would find there; elsewhere what was written counts
    is_observed = bool(observation.workload_clusters)
    kin = [k for k in (_kin(bundle, subject) if is_observed and not unseen else ()) if k != subject]
    passes = run_passes(bundle, [subject, *kin[:MOST_PASSES]])
    answer = Answer(subject)
    if len(kin) > MOST_PASSES:
        answer.notes.append(f"Passes were run over {MOST_PASSES} of {len(kin)} objects; of the others counts what is written.")
    if subject in passes:
        _tell(answer, passes[subject])
    if kind == "Cluster":
        _explain_topology(bundle, next(o for o in bundle.objects if f"{o['kind']}/{_namespaced(o)}" == subject), answer)
    findings: dict[str, Finding] = {}
    if not unseen and (is_observed or kind == "Cluster"):
        findings = findings_of(passes, bundle)
    elif answer.tables and not is_observed:
        answer.notes.append(UNOBSERVED)
    answer.notes += [f"Could not read {kind}: {why}" for kind, why in unseen.items()]
    answer.notes += [f"Could not look into the workload cluster from here: {observation.unreachable}"] if observation.unreachable else []
    now = bundle.moment()
    workload = tuple(o for cluster in observation.workload_clusters.values() for o in cluster.objects)
    sight = Sight(
        now,
        frozenset(observation.seen),
        unseen,
        observation.unreachable,
        observation.running,
        workload,
        observation.changed,
        observation.suspicions,
    )
    investigation = Investigation(bundle.objects, subject, findings, sight)
    found = investigation.causes()
    answer.causes = [_cause(investigation, node) for node in found[:MOST_CAUSES]]
    answer.verdict = judge(investigation, found, now)
    if observation.running is not None:
        answer.verdict = since_left(answer.verdict, observation.running.verdicts)
    if observation.running is not None:
        answer.history = list(of_decisions(d for d in observation.running.traces if f"{d.kind}/{d.key}" == subject))
        answer.notes += [f"The controllers may not {right}" for right in observation.running.rights]
    cause = next((n for n in found if n.id.partition("#")[0] == answer.verdict.object), None)
    if cause is not None:
        answer.evidence = [piece.to_json() for piece in evidence(investigation, cause, passes)]
    if found:
        answer.chain = [link(investigation, name) for name in investigation.path_to(found[0].id)]
    return answer


def _namespaced(obj: Json) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']}"


def _explain_topology(bundle: Bundle, cluster: Json, answer: Answer) -> None:
    """What the other controller of a Cluster decides, where the bundle holds all that it looks at; and whom the condition blames."""
    status = cluster.get("status") or {}
    if topologies.can_run(bundle, cluster):
        other = Answer(answer.subject)
        _tell(other, run_passes(bundle, [answer.subject], topologies.CONTROLLER)[answer.subject])
        answer.tables = [*answer.tables, *other.tables]
        answer.actions = [*answer.actions, *other.actions]
        status = other.status or status
    answer.notes += topologies.notes(bundle, cluster, status.get("conditions") or ())


def _kin(bundle: Bundle, subject: str) -> list[str]:
    """Return the objects of the subject's Cluster that controllers of ours reconcile."""
    objects = [o for o in map(Unstructured, bundle.objects) if o.kind not in {"Event", "CustomResourceDefinition"}]
    clusters = [o for o in objects if o.kind == "Cluster" and str(o.key) in bundle.observation.workload_clusters]
    names = set().union(*(related(objects, cluster, subject) for cluster in clusters)) if clusters else set()
    return sorted((n for n in names if n.partition("/")[0] in registry.KINDS), key=lambda n: (n.startswith(_MANY), n))


def _tell(answer: Answer, own: Pass) -> None:
    """What the pass over the subject itself came to."""
    answer.tables = own.tables
    answer.error = own.result["error"] or ""
    answer.requeue = own.result["requeueAfterSeconds"]
    answer.actions = own.result["actions"]
    answer.status = (own.result["object"] or {}).get("status") or {}


def _cause(investigation: Investigation, node: Node) -> Json:
    worst = node.worst or Complaint(Tier.UNKNOWN, "")
    advice = advise(investigation, node, worst)
    step = f"{advice.next}: {advice.command}" if advice.command else advice.next
    return {
        "object": node.id.partition("#")[0],
        "cause": cause_id(worst),
        "what": worst.text,
        "since": worst.since or None,
        "who": advice.who,
        "next": step,
    }
