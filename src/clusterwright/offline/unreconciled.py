"""What is wrong with an object though nobody says so: nobody reconciles it, its kind follows no contract, its etcd has no quorum."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from clusterwright.api.meta import Condition, Unstructured
from clusterwright.api.wellknown import CONTRACT_LABEL_PREFIX, CORE_GROUP
from clusterwright.conditions import get
from clusterwright.offline.complaints import Complaint, Tier, condition_path, since
from clusterwright.offline.words import HALT, OTHER_PROCESS

AT_ONCE: Final = timedelta(seconds=15)
"""A controller that runs has said something of a new object by then."""
QUORUM: Final = "quorum"
"""What a complaint about a lost quorum is about."""
BOOT: Final = "boot"
"""What a complaint about a machine is about that runs without anything coming of it."""
TOPOLOGY: Final = "TopologyReconciled"
IDLE: Final = "idle"
"""What a complaint about a controller that does not run is about, where it is known why."""
RIGHTS: Final = "rights"
"""What a complaint about controllers is about that may not do what they have to."""
CONTRACT: Final = "contract"
"""What a complaint about a CRD without a contract label is about."""
_CONTRACT_LABEL: Final = re.compile(rf"^{re.escape(CONTRACT_LABEL_PREFIX)}v\d+((alpha|beta)\d+)?$")
_ADDRESSES: Final = "ipam.cluster.x-k8s.io"
_CLAIM: Final = "IPAddressClaim"
"""The only kind of its group that every provider reports on."""
_UNREPORTED: Final = ("Template", "Binding", "ClusterResourceSet", "ExtensionConfig", "Revision")
"""Ends of kinds that report nothing, or only when they have something to do."""


def unreconciled(obj: Unstructured, now: datetime | None, heard: str = "", written: str = "") -> Complaint | None:
    """That no controller has said anything of an object of Cluster API since it was made, or since its spec was changed.

    `heard`: when an Event last told of it. A controller that fails may have nothing else to say. `written`: when the spec was changed,
    where the object itself does not tell.
    """
    group = obj.gvk.group
    is_ours = group == CORE_GROUP or group.endswith(f".{CORE_GROUP}")
    if now is None or not is_ours or obj.kind.endswith(_UNREPORTED) or (group == _ADDRESSES and obj.kind != _CLAIM):
        return None
    made = obj.metadata.creation_timestamp
    status = obj.at("status")
    if obj.kind == "Cluster" and obj.at("spec", "topology") and isinstance(status, Mapping) and status and made is not None:
        types = [c.get("type") for c in status.get("conditions") or () if isinstance(c, Mapping)]
        if TOPOLOGY not in types and now - made >= AT_ONCE and not obj.at("metadata", "deletionTimestamp"):
            text = f"nothing has reconciled its topology since it was made {ago(now - made)} ago"
            return Complaint(Tier.UNRECONCILED, text, f"{made:%Y-%m-%dT%H:%M:%SZ}", TOPOLOGY, path="spec.topology")
    if not (isinstance(status, Mapping) and status):
        if made is None or now - made < AT_ONCE:
            return None
        if heard >= f"{made:%Y-%m-%dT%H:%M:%SZ}":
            return Complaint(Tier.SILENT, "has no status, though a controller acts on it", f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")
        text = f"nothing has reconciled it since it was made {ago(now - made)} ago"
        return Complaint(Tier.UNRECONCILED, text, f"{made:%Y-%m-%dT%H:%M:%SZ}", path="status")
    observed, generation = observed_generation(obj), obj.at("metadata", "generation")
    changed = None if is_own_write(obj) else spec_changed(obj, written)
    if not isinstance(observed, int) or not isinstance(generation, int) or observed >= generation or changed is None:
        return None
    if now - changed < AT_ONCE or heard >= f"{changed:%Y-%m-%dT%H:%M:%SZ}":
        return None
    behind = f"the last observedGeneration is {observed}, metadata.generation is {generation}"
    text = f"nothing has reconciled it since its spec was changed {ago(now - changed)} ago: {behind}"
    return Complaint(Tier.UNRECONCILED, text, f"{changed:%Y-%m-%dT%H:%M:%SZ}", path="status.observedGeneration")


def observed_generation(obj: Unstructured) -> int | None:
    """Return the newest generation that the status tells of; conditions are newer where a pass fails after them."""
    conditions = obj.at("status", "conditions")
    told = [obj.at("status", "observedGeneration"), *(c.get("observedGeneration") for c in conditions or () if isinstance(c, Mapping))]
    return max((n for n in told if isinstance(n, int) and n > 0), default=None)


def is_own_write(obj: Unstructured) -> bool:
    """Return whether the controller of an object that has done its part was the last to write the spec, after it had reported."""
    listed = [m for m in obj.at("metadata", "managedFields") or () if isinstance(m, Mapping)]
    newest = max((m for m in listed if not m.get("subresource")), key=lambda m: str(m.get("time")), default={})
    reporters = {m.get("manager") for m in listed if m.get("subresource") == "status"}
    is_done = obj.at("status", "ready") is True or any(
        obj.at("status", "initialization", flag) is True for flag in ("provisioned", "dataSecretCreated")
    )
    return is_done and newest.get("manager") in reporters


def spec_changed(obj: Unstructured, written: str = "") -> datetime | None:
    """When somebody last wrote anything but the status, as far as the fields' managers tell; else `written`."""
    times = [m.get("time") for m in obj.at("metadata", "managedFields") or () if isinstance(m, Mapping) and not m.get("subresource")]
    newest = max((t for t in times if isinstance(t, str)), default=written)
    try:
        return datetime.fromisoformat(newest) if newest else None
    except ValueError:
        return None


def ago(span: timedelta) -> str:
    """Return a span of time in at most two units, as people say it."""
    seconds = max(0, int(span.total_seconds()))
    for unit, length, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= length:
            rest = seconds % length // part
            return f"{seconds // length} {unit} {rest} {smaller}" if rest else f"{seconds // length} {unit}"
    return f"{seconds} s"


def without_contract(definition: Unstructured) -> Complaint | None:
    """That a CRD of a provider says of none of its versions which contract it follows."""
    if any(_CONTRACT_LABEL.match(label) for label in definition.metadata.labels):
        return None
    versions = [str(v.get("name")) for v in definition.at("spec", "versions") or () if isinstance(v, Mapping) and v.get("served")]
    label = f"{CONTRACT_LABEL_PREFIX}v1beta2"
    text = f"has no label like {label}={'_'.join(versions)}: nobody can tell which contract its versions follow"
    return Complaint(Tier.ERROR, text, about=CONTRACT, path=f"metadata.labels[{label}]")


def booting_in_vain(machine: Unstructured, conditions: tuple[Condition, ...], now: datetime | None) -> Complaint | None:
    """That the machine of a control plane runs, with its bootstrap data, and no control plane has come up on it, for a while."""
    begun = get(conditions, "InfrastructureReady")
    provisioned = machine.at("status", "initialization", "infrastructureProvisioned") is True
    if not provisioned or machine.at("status", "nodeRef") or begun is None or begun.status != "True":
        return None
    if now is not None and begun.last_transition_time is not None and now - begun.last_transition_time < AT_ONCE:
        return None
    text = "its machine runs, but no control plane has come up on it yet; what happens there only its console tells"
    return Complaint(Tier.WAITING, text, since(begun), BOOT, path="status.nodeRef")


def is_of_a_halt(complaint: Complaint) -> bool:
    """Whether a complaint of a machine says that it, or the etcd on it, does not run; that something else on it is wrong is not that."""
    words = f"{complaint.about} {complaint.text}"
    return HALT.said_in(words) and not OTHER_PROCESS.said_in(words)


@dataclass(frozen=True, slots=True)
class Seat:
    """A Machine that has an etcd member, what it says of it, and what is wrong with the machine behind it, if anything."""

    machine: Unstructured
    conditions: tuple[Condition, ...]
    behind: Complaint | None = None

    @property
    def is_voter(self) -> bool:
        """Whether the member counts: one that is yet to come or to be promoted does not."""
        member = get(self.conditions, "EtcdMemberHealthy")
        return bool(self.machine.at("status", "nodeRef")) and not (member is not None and "learner" in member.message)

    @property
    def down_since(self) -> str | None:
        """Since when the member is known to be down, by etcd's own words; empty: it is not known since when; None: it is not down."""
        for type_ in ("EtcdMemberHealthy", "EtcdPodHealthy"):
            said = get(self.conditions, type_)
            if said is not None and said.status == "False" and said.reason not in {"Deleting", "Provisioning"}:
                return since(said)
        return None


def lost_quorum(seats: Sequence[Seat], *, reachable: bool) -> Complaint | None:
    """That too few etcd members of a managed control plane are left to decide anything.

    Without contact, the machines behind the members are asked, too: nothing on them answers while they do not run. At the edge of the
    quorum, losing contact is taken for the last straw, if etcd itself had been in trouble.
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
    return Complaint(Tier.ERROR, text, lost, QUORUM, path=condition_path("EtcdClusterHealthy"))
