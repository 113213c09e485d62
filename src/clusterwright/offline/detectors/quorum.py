"""Find control planes whose etcd has lost its quorum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterwright.api.contract import crd_name
from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, Unstructured
from clusterwright.conditions import get
from clusterwright.offline.complaints import Complaint, Tier, condition_path, has_delivered, since
from clusterwright.offline.known import Found, Known
from clusterwright.offline.words import HALT, OTHER_PROCESS


def quorum(known: Known) -> Iterator[Found]:
    """Yield the control plane with etcd members on its Machines, if too few of them are up."""
    if known.cluster is None or known.cluster.metadata.deletion_timestamp is not None:
        return
    for name in known.control_plane():
        obj = known.objects.get(name)
        if obj is None or obj.kind == "Machine" or obj.metadata.deletion_timestamp is not None:
            continue
        below = [(n, m) for n, m in known.of_kind("Machine") if known.is_direct_owner(obj, m)]
        complaint = lost_quorum([Seat(m, known.conditions(n), _behind(known, m)) for n, m in below], reachable=known.is_reachable)
        if complaint is not None:
            facts = {"name": obj.key.name, "namespace": obj.key.namespace, "group": crd_name("cluster.x-k8s.io", "Machine")}
            yield Found(object=name, complaint=replace(complaint, facts=facts), is_all=True)


def _behind(known: Known, machine: Unstructured) -> Complaint | None:
    """Return the complaint of a once provisioned infrastructure machine that explains why the Machine's etcd member does not run."""
    name = known.named(machine, "spec.infrastructureRef")
    found = known.objects.get(name)
    if found is None or not has_delivered(found):
        return None
    told = [c for c in known.complaints.get(name, ()) if c.tier in {Tier.ERROR, Tier.UNHEALTHY} and is_of_a_halt(c)]
    return min(told, key=lambda c: c.since, default=None)


def is_of_a_halt(complaint: Complaint) -> bool:
    """Return whether a complaint of a machine reports that the machine or its etcd has stopped; other faults do not count."""
    words = f"{complaint.about} {complaint.text}"
    return HALT.said_in(words) and not OTHER_PROCESS.said_in(words)


@dataclass(frozen=True, slots=True)
class Seat:
    """A Machine with an etcd member, its condition about the member, and the fault of the machine behind it, if any."""

    machine: Unstructured
    conditions: Sequence[Condition]
    behind: Complaint | None = None

    @property
    def is_voter(self) -> bool:
        """Return whether the member votes: one that has not joined or is a learner does not."""
        member = get(self.conditions, "EtcdMemberHealthy")
        return bool(self.machine.at("status", "nodeRef")) and not (member is not None and "learner" in member.message)

    @property
    def down_since(self) -> str | None:
        """Return since when the member is down, by etcd's report; empty: down for an unknown time; None: not down."""
        for type_ in ("EtcdMemberHealthy", "EtcdPodHealthy"):
            said = get(self.conditions, type_)
            if said is not None and said.status == "False" and said.reason not in {"Deleting", "Provisioning"}:
                return since(said)
        return None


def lost_quorum(seats: Sequence[Seat], *, reachable: bool) -> Complaint | None:
    """Return a complaint if a managed control plane has lost its etcd quorum.

    Without contact, the state of the machines behind the members counts, too: a stopped machine has no running member. If one more loss
    would end the quorum and etcd had been in trouble, the loss of contact counts as that loss.
    """
    voters = [s for s in seats if s.is_voter]
    spare = len(voters) - (len(voters) // 2 + 1)
    down = {s.machine.metadata.name: s.down_since for s in voters if s.down_since is not None}
    is_edge = 0 < len(down) == spare and not reachable
    if not reachable:
        down |= {s.machine.metadata.name: s.behind.since for s in voters if s.behind is not None and s.down_since is None}
    if not down or not (len(down) > spare or is_edge) or (len(voters) < 3 and reachable):
        return None
    left = sorted(s.machine.metadata.name for s in voters if s.machine.metadata.name not in down)
    doubt = "" if len(down) > spare else ", it seems: nothing answers any more"
    names = f"{', '.join(sorted(down))} {'are' if len(down) > 1 else 'is'} down"
    members = f"of {len(voters)} members {names}, {len(voters) // 2 + 1} are needed" if len(voters) > 1 else f"its only member {names}"
    text = (
        f"etcd has lost its quorum{doubt}: {members}; left: {', '.join(left) or 'none'}. "
        "What runs on the Nodes goes on running; nothing can be changed until a member is back"
    )
    lost = sorted(down.values())[min(spare, len(down) - 1)]  # with this one
    return Complaint(Tier.ERROR, text, lost, path=condition_path("EtcdClusterHealthy"), cause="etcd.quorum")
