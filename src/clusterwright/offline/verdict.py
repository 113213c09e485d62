"""The verdict on an object: its state, the cause, the person who must act and the step. All commands and pages show this type. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from clusterwright.api.meta import Condition, Json, Unstructured
from clusterwright.api.wellknown import TOPOLOGY_DEPLOYMENT_NAME_LABEL
from clusterwright.conditions import InvalidConditions, conditions_of, get
from clusterwright.offline.advice import Advice, advise
from clusterwright.offline.cause_ids import PROGRESS, UNSEEN, cause_id
from clusterwright.offline.causes import Investigation
from clusterwright.offline.complaints import Complaint, Tier, condition_path, has_delivered, since
from clusterwright.offline.detectors.passes import WAITS
from clusterwright.offline.nodes import Node
from clusterwright.offline.unreconciled import ago, is_own_write, spec_changed
from clusterwright.topology.pinning import pins


class State(StrEnum):
    """The state of an object."""

    FINE = "fine"
    PROGRESSING = "progressing"
    WAITING = "waiting"
    BROKEN = "broken"
    UNSEEN = "could not see"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an object. `object`: the cause, or the object in progress; empty if all is well."""

    subject: str
    state: State
    what: str
    object: str = ""
    field: str = ""
    """The field at fault: of the cause, or of the object that names it."""
    since: str = ""
    who: str = ""
    next: str = ""
    command: str = ""
    evidence: tuple[str, ...] = ()
    """The objects from the subject to the cause, each with its complaint."""
    now: datetime | None = None
    cause: str = ""
    """The stable identifier of the cause (`cause_ids`); empty if all is well."""

    @property
    def brief(self) -> str:
        """Return state, object and fault in one line that does not change with time alone."""
        about = f"{self.object} " if self.object else ""
        first, _, rest = self.what.partition("\n")
        if first.endswith(":"):  # what comes is the news
            first = f"{first} {rest.partition(chr(10))[0].lstrip(' *')}"
        return f"{self.state.capitalize()}: {about}{first}"

    @property
    def short(self) -> str:
        """Return state and object alone, for a column."""
        if not self.object or self.object == self.subject:
            return self.state.capitalize()
        kind, _, rest = self.object.partition("/")
        return f"{self.state.capitalize()}: {kind}/{rest.rpartition('/')[2]}"

    @property
    def headline(self) -> str:
        """Return the whole verdict in one line."""
        span = _span(self.since, self.now)
        lasting = f", for {ago(span)}" if span is not None and self.state is not State.FINE else ""
        return f"{self.brief}{lasting}"

    def to_json(self) -> Json:
        """Return the verdict as plain data."""
        return {
            "state": str(self.state),
            "cause": self.cause or None,
            "headline": self.headline,
            "object": self.object or None,
            "field": self.field or None,
            "what": self.what,
            "since": self.since or None,
            "who": self.who or None,
            "next": self.next or None,
            "command": self.command or None,
            "evidence": list(self.evidence),
        }


GRACE: Final = timedelta(seconds=30)
"""The time for which something may look wrong while it is being created, changed or removed."""
PATIENCE: Final = timedelta(minutes=5)
"""The time for which a wait counts as progress."""
_BAD: Final = frozenset({Tier.MISSING, Tier.ERROR, Tier.UNRECONCILED, Tier.UNHEALTHY})
_UNDER_WAY: Final[Mapping[str, str]] = {
    "RollingOut": "is rolling out",
    "ScalingUp": "is scaling up",
    "ScalingDown": "is scaling down",
    "Remediating": "is replacing what is unhealthy",
    "Updating": "is being updated",
    "Deleting": "is being deleted",
}
_SETS: Final = ("MachinePool", "MachineDeployment", "MachineSet")


def judge(investigation: Investigation, causes: Sequence[Node], now: datetime | None) -> Verdict:
    """Return the verdict on the investigation's subject from its `causes`, the strongest evidence first."""
    judged = [(node, state_of(investigation, node, now)) for node in causes]
    for wanted in (State.BROKEN, State.WAITING):
        for node, state in judged:
            if state is wanted and (wanted is State.BROKEN or not _unseen(investigation)):
                return _of_cause(investigation, node, state, now)
    if unseen := _unseen(investigation):
        what = "; ".join(f"could not read {kind}s: {why}" for kind, why in unseen.items())
        who = "whoever grants rights: " + ", ".join(f"list {kind}s" for kind in unseen)
        advice = "ask for the right to read them, or ask somebody who has it"
        return Verdict(
            investigation.subject, State.UNSEEN, what, who=who, next=advice, command="kubectl auth can-i --list", now=now, cause=UNSEEN
        )
    if judged and investigation.is_being_set_up and not (investigation.cluster and investigation.cluster.deleting):
        return _of_cause(investigation, judged[0][0], State.PROGRESSING, now)  # what all the others wait for
    for node, complaint in _under_way(investigation):
        what, advice = _progress(node, complaint), "nothing: it goes on by itself"
        who = f"nobody: the controller of {node.kind} is at it"
        evidence = (f"{node.id}: {what}",)
        return Verdict(
            investigation.subject,
            State.PROGRESSING,
            what,
            node.id,
            complaint.path,
            complaint.since,
            who,
            advice,
            "",
            evidence,
            now,
            PROGRESS,
        )
    if judged:
        return _of_cause(investigation, judged[0][0], State.PROGRESSING, now)
    return _lacking(investigation, now) or Verdict(investigation.subject, State.FINE, _well(investigation), now=now)


def state_of(investigation: Investigation, node: Node, now: datetime | None) -> State:
    """Return the state that follows when an object is the cause of trouble."""
    worst = node.worst or Complaint(Tier.UNKNOWN, "")
    span = _span(worst.since or _made(node), now)
    if worst.tier is Tier.MISSING:  # it has been missing for as long as the object that names it exists
        named = [_span(_made(investigation.nodes[r]), now) for r in node.referrers if r in investigation.nodes]
        span = max((s for s in (span, *named) if s is not None), default=None)
    if worst.cause == WAITS:
        return State.PROGRESSING
    if worst.tier in {Tier.PAUSED, Tier.DELETING, Tier.HELD}:
        return State.WAITING
    if worst.tier in _BAD:
        is_early = span is not None and span < GRACE and _is_moving(investigation, node, now)
        return State.PROGRESSING if is_early else State.BROKEN
    return State.PROGRESSING if span is None or span < PATIENCE else State.WAITING


def _is_moving(investigation: Investigation, node: Node, now: datetime | None) -> bool:
    """Return whether the object, or a whole that it is part of, is being created, changed or removed."""
    cluster = investigation.cluster
    if cluster is None or cluster.deleting or investigation.is_being_set_up:
        return True
    is_told = node.worst is not None and node.worst.path == condition_path(node.worst.about)  # by itself, not found out by us
    near = [investigation.nodes[n] for n in investigation.path_to(node.id) if n in investigation.nodes and n != cluster.id]
    near += [investigation.nodes[r] for r in node.referrers if r in investigation.nodes and r != cluster.id]
    for one in (*near, *(o for n in near for o in investigation.owners(n))):
        age = _span(_made(one), now)
        is_new = age is not None and age < PATIENCE and not _is_settled(one, node.worst)
        if one.deleting or is_new or any(c.about in _UNDER_WAY for c in one.complaints):
            return True
        if is_told and any(_is_coming_or_going(machine, now) for machine in investigation.machines_of(one)):
            return True
    return False


def _is_coming_or_going(machine: Node, now: datetime | None) -> bool:
    """Return whether a Machine is new or going away, so that summaries may not include its last change."""
    if machine.object is None:
        return False
    available = _said(machine.object, "Available")
    span = _span(since(available), now)
    is_fresh = available is not None and available.status == "True" and span is not None and span < GRACE
    return machine.deleting or is_fresh or _is_still_to_come(machine.object)


def _is_settled(node: Node, complaint: Complaint | None) -> bool:
    """Return whether an object has done its work once. After that, its Node and the Pods on it may take their time."""
    if node.object is None or (node.kind == "Machine" and complaint is not None and complaint.about.startswith("Node")):
        return False
    is_up = node.object.at("status", "phase") == "Running" and not _is_still_to_come(node.object)
    return has_delivered(node.object) or is_up


def _is_still_to_come(machine: Unstructured) -> bool:
    """Return whether a Machine has never been available: its Available has been False since before its infrastructure was ready."""
    available, infrastructure = _said(machine, "Available"), _said(machine, "InfrastructureReady")
    return (
        available is not None
        and available.status != "True"
        and infrastructure is not None
        and infrastructure.status == "True"
        and since(available) <= since(infrastructure)
    )


def _said(obj: Unstructured, type_: str) -> Condition | None:
    try:
        return get(conditions_of(obj), type_)
    except InvalidConditions:
        return None


def _of_cause(investigation: Investigation, node: Node, state: State, now: datetime | None) -> Verdict:
    worst = node.worst or Complaint(Tier.UNKNOWN, "")
    advice: Advice = advise(investigation, node, worst)
    evidence = tuple(link(investigation, name) for name in investigation.path_to(node.id))
    name = node.id.partition("#")[0]
    return Verdict(
        investigation.subject,
        state,
        worst.text,
        name,
        worst.path,
        worst.since,
        advice.who,
        advice.next,
        advice.command,
        evidence,
        now,
        cause_id(worst),
    )


def link(investigation: Investigation, name: str) -> str:
    """Return one link of the chain of evidence."""
    worst = investigation.nodes[name].worst
    return f"{name.partition('#')[0]}: {worst.text}" if worst else name


def _unseen(investigation: Investigation) -> dict[str, str]:
    """Return the kinds that objects of the cluster name and that could not be read."""
    return {kind: why for kind, why in investigation.unseen.items() if kind in investigation.named_kinds}


# ----------------------------------------------------------------------------------------------- what is under way


def _under_way(investigation: Investigation) -> Iterator[tuple[Node, Complaint]]:
    """Yield objects in progress: the Cluster alone if it is being deleted, else control planes, workers, the rest, and Machines last."""
    cluster = investigation.cluster
    said = [(node, complaint) for node in investigation.nodes.values() if "#" not in node.id for complaint in node.complaints]
    found = [(n, c) for n, c in said if c.about in _UNDER_WAY and c.tier in {Tier.PROGRESS, Tier.SILENT, Tier.WAITING}]

    def rank(item: tuple[Node, Complaint]) -> tuple[int, int, str]:
        node, complaint = item
        is_cluster = cluster is not None and node.id == cluster.id
        if is_cluster and node.deleting:
            place = 0
        elif node.object is not None and node.object.gvk.group.startswith("controlplane."):
            place = 1
        elif node.kind in _SETS:
            place = 2 + _SETS.index(node.kind)
        else:
            place = 9 if node.kind == "Machine" else 7 if is_cluster else 8
        return place, list(_UNDER_WAY).index(complaint.about), node.id

    yield from sorted(found, key=rank)


def _progress(node: Node, complaint: Complaint) -> str:
    """Return the work of an object in progress, and how far it has come."""
    words = _UNDER_WAY[complaint.about]
    counts = _counts(node.object) if node.object is not None else ""
    if complaint.about == "Deleting":
        return complaint.text
    return f"{words}: {counts}" if counts else words


def _counts(obj: Unstructured) -> str:
    wanted = obj.at("spec", "replicas")
    if not isinstance(wanted, int):
        return ""
    parts = []
    for name, word in (("replicas", "there"), ("upToDateReplicas", "up to date"), ("readyReplicas", "ready")):
        value = obj.at("status", name)
        parts.append(f"{value if isinstance(value, int) else 0} {word}")
    return f"{wanted} wanted, {', '.join(parts)}"


_PARTS: Final = (("controlPlane", "control plane"), ("workers", "worker"))


def _lacking(investigation: Investigation, now: datetime | None) -> Verdict | None:
    """Return the progress of a Cluster without complaints: not yet available, Machines not ready, or changed just now."""
    node = investigation.nodes.get(investigation.subject)
    if node is None or node.object is None or node.kind != "Cluster":
        return None
    cluster, missing = node.object, []
    for part, word in _PARTS:
        wanted, ready = (node.object.at("status", part, name) or 0 for name in ("desiredReplicas", "readyReplicas"))
        if isinstance(wanted, int) and isinstance(ready, int) and ready < wanted:
            missing.append(f"{ready} of {wanted} {word} Machines are ready")
    available = investigation.said(node, "Available")
    what, path, begun = ", ".join(missing), "status", ""
    if not what and available is None and not _was_well(node.object):
        what, begun = "was just made", _made(node)
    elif not what and available is not None and available.status != "True":
        what = "is about to be found available"
    elif not what:
        changed = [n for n in investigation.nodes.values() if _is_unseen(investigation, n, now)]
        path = "spec"
        if changed:
            node, what = changed[0], "was just changed"
        elif (behind := next(_behind(investigation, cluster), None)) is not None:
            node, what = behind, "is about to be upgraded"
        else:
            return None
    who = "nobody: its controllers are at it"
    advice = "nothing: it goes on by itself"
    return Verdict(investigation.subject, State.PROGRESSING, what, node.id, path, begun, who, advice, now=now, cause=PROGRESS)


def _behind(investigation: Investigation, cluster: Unstructured) -> Iterator[Node]:
    """Yield the MachineDeployments whose version, or that of their Machines, is not the wanted one, though nothing reports it yet."""
    pinned = pins(dict(cluster.json), "machineDeployments")
    for node in investigation.nodes.values():
        if node.kind != "MachineDeployment" or node.object is None or node.deleting:
            continue
        version = node.object.at("spec", "template", "spec", "version")
        name = node.object.metadata.labels.get(TOPOLOGY_DEPLOYMENT_NAME_LABEL)
        wanted = pinned.get(name) or cluster.at("spec", "topology", "version") if name is not None else version
        is_manual = node.object.at("spec", "rollout", "strategy", "type") == "OnDelete"
        below = [m.object for m in investigation.machines_of(node) if m.object is not None] if not is_manual else []
        if version != wanted or any(m.at("spec", "version") != version for m in below):
            yield node


def _was_well(cluster: Unstructured) -> bool:
    """Return whether a Cluster of an older release, which knows no Available, says that it is ready."""
    listed = cluster.at("status", "deprecated", "v1beta1", "conditions")
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in listed) if isinstance(listed, list) else False


def _is_unseen(investigation: Investigation, node: Node, now: datetime | None) -> bool:
    """Return whether the spec of an object was changed a short time ago and its status is older."""
    if node.object is None or node.deleting or "#" in node.id or is_own_write(node.object):
        return False
    changed = spec_changed(node.object)
    if changed is None and not investigation.may_have_changed(node):
        return False
    if now is not None and changed is not None and now - changed > PATIENCE:
        return False
    observed, generation = node.object.at("status", "observedGeneration"), node.object.at("metadata", "generation")
    return isinstance(observed, int) and isinstance(generation, int) and 0 < observed < generation


def _well(investigation: Investigation) -> str:
    """Return the text for a subject without trouble, with the numbers of ready Machines if it is a Cluster."""
    node = investigation.nodes.get(investigation.subject)
    if node is None or node.object is None or node.kind != "Cluster":
        return "nothing is wrong"
    leaders, workers = (node.object.at("status", part, "readyReplicas") or 0 for part, _ in _PARTS)
    return f"nothing is wrong; {leaders} control plane and {workers} worker Machines are ready"


def _made(node: Node) -> str:
    made = node.object.metadata.creation_timestamp if node.object is not None else None
    return f"{made:%Y-%m-%dT%H:%M:%SZ}" if made is not None else ""


def _span(moment: str, now: datetime | None) -> timedelta | None:
    """Return the time since then, or None if it is unknown."""
    try:
        return now - datetime.fromisoformat(moment) if now is not None and moment else None
    except (ValueError, TypeError):
        return None
