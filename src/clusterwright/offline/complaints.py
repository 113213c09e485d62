"""Complaints of objects in their own words: bad conditions, deletions that do not end, pauses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, Unstructured
from clusterwright.api.wellknown import KCP_PRE_TERMINATE_HOOK, PAUSED_ANNOTATION, PRE_DRAIN_HOOK_PREFIX, PRE_TERMINATE_HOOK_PREFIX
from clusterwright.conditions import InvalidConditions, conditions_of, get, is_true
from clusterwright.offline.words import BLOCKED, CONNECTION, ERROR, HELD, INFRASTRUCTURE, INITIALIZATION, OF_A_NODE, last_word

OWN_FINALIZER = "cluster.x-k8s.io"
"""Part of every finalizer of Cluster API's own controllers and providers."""
HOOKS: Final = (PRE_DRAIN_HOOK_PREFIX, PRE_TERMINATE_HOOK_PREFIX)
"""Prefixes of annotations that hold the deletion of a Machine."""
SPEC_PAUSED = "spec.paused"
REDACTED: Final = "<redacted>"
"""Stands in the place of a secret in a recording."""
LOGS_ONLY: Final = "check controller logs"
"""Part of messages from controllers that failed and give the reason only in their log."""
SOON = timedelta(seconds=30)
TEMPLATE = "template"
"""The `about` of a complaint about the wrong kind of template."""
STANDSTILL = timedelta(minutes=2)
_NEGATIVE = frozenset(
    {"Deleting", "Paused", "Remediating", "RollingOut", "ScalingUp", "ScalingDown", "Updating", "Deleted", "Stalled", "Reconciling"}
)
_OF_NODES = frozenset({"NodeHealthy", "NodeReady"})
SUMMARIES = frozenset({"Ready", "Available"})
_FAULTS: Final = frozenset(
    {"Failed", "Failure", "Error", "Degraded", "Stalled", "Unhealthy", "Unavailable", "Pressure", "Exceeded", "Expired", "Lost", "Deadlock"}
)
"""Last words of foreign conditions that state a fault: only True is bad. Example: `CreateFailed`."""
_UNDER_WAY: Final = frozenset(
    {"Creating", "Updating", "Upgrading", "Deleting", "Provisioning", "Reconciling", "Scaling", "Migrating", "Draining", "Progressing"}
)
"""Last words of foreign conditions that state work under way: False is good, unless its reason is a fault."""
_WELL: Final = frozenset({"OK", "Ok", "Success", "Succeeded"})
"""Reasons of foreign conditions that are good whatever their status. Example: `ChangeDetected=False: OK`."""
QUIET = frozenset({"Paused", "Deleting"})  # looked at by other means


class Tier(IntEnum):
    """The strength of a complaint as evidence; lower is stronger."""

    MISSING = 0
    PAUSED = 1
    DELETING = 2
    HELD = 3
    """Another party holds the object, and reports that."""
    ERROR = 4
    UNRECONCILED = 5
    UNHEALTHY = 6
    WAITING = 7
    SILENT = 8
    UNKNOWN = 9
    PROGRESS = 10


@dataclass(frozen=True, slots=True)
class Complaint:
    """One fault of an object, in its own words or in ours."""

    tier: Tier
    text: str
    since: str = ""
    about: str = ""
    """The condition, or empty."""
    raw: str = ""
    """Reason and message as reported, for finding what they point at."""
    secondary: bool = False
    """Whether it names another complaint of the same object as its reason."""
    path: str = ""
    """The field concerned: of the object, or of the one that names it."""
    cause: str = ""
    """The stable identifier of a cause that `remedies` knows."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Names for the texts of the remedy."""


def with_cause(complaint: Complaint, cause: str, facts: Mapping[str, str], **changes: Any) -> Complaint:
    """Return the complaint with the cause that a detector found. The remedy of the cause uses the facts."""
    return replace(complaint, **{"cause": cause, "facts": facts, "secondary": False, **changes})


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference in an object's spec to another object."""

    group: str
    kind: str
    name: str
    path: str
    key: str = ""
    """The key of the Secret, if one is named."""
    namespace: str = ""
    """The namespace, if it differs from that of the object."""


def references(value: Any, path: str = "spec", home: str = "") -> Iterator[Reference]:
    """Yield every `{kind, name, apiGroup or apiVersion}` below a spec that names an object of the same namespace, `home`."""
    if isinstance(value, dict):
        kind, name = value.get("kind"), value.get("name")
        group = value.get("apiGroup") or str(value.get("apiVersion") or "").rpartition("/")[0]
        if isinstance(kind, str) and isinstance(name, str) and isinstance(group, str) and group and kind and name:
            if value.get("namespace") in (None, "", home):
                yield Reference(group, kind, name, path)
            return
        for key, inner in value.items():
            yield from references(inner, f"{path}.{key}", home)
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from references(inner, f"{path}[{n}]", home)


_BUILT_IN = re.compile(
    r"[^.]*|(admissionregistration|apiextensions|apiregistration|authentication|authorization|certificates|coordination|discovery|events|"
    r"(flowcontrol|internal)\.apiserver|networking|node|rbac\.authorization|resource|scheduling|storage|storagemigration|"
    r"((custom|external)\.)?metrics)\.k8s\.io"
)


def is_built_in(group: str) -> bool:
    """Return whether Kubernetes itself defines the group. Clusters consist of other objects, except a few of the core group."""
    return bool(_BUILT_IN.fullmatch(group))


def is_template_expected(kind: str, reference: Reference) -> bool:
    """Return whether objects are cloned from the referenced one. The contract requires that such kinds end in Template."""
    if kind in {"MachineDeployment", "MachineSet"}:
        return reference.path.startswith("spec.template.spec.")
    return reference.path in {"spec.machineTemplate.spec.infrastructureRef", "spec.machineTemplate.infrastructureRef"}


def secret_sources(value: Any, path: str = "spec") -> Iterator[Reference]:
    """Yield every `...From: {secret: {name}}` below a spec: contents and passwords that are kept in Secrets."""
    if isinstance(value, dict):
        for key, inner in value.items():
            source = inner.get("secret") if isinstance(inner, dict) and key.endswith("From") else None
            if isinstance(source, dict) and isinstance(source.get("name"), str):
                yield Reference("", "Secret", source["name"], f"{path}.{key}.secret", str(source.get("key") or ""))
            else:
                yield from secret_sources(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from secret_sources(inner, f"{path}[{n}]")


def own_pause(obj: Unstructured) -> str:
    """Return how the object itself is paused; empty if it is not."""
    if obj.at("spec", "paused") is True:
        return f"is paused by {SPEC_PAUSED}"
    if PAUSED_ANNOTATION in obj.metadata.annotations:
        return f"is paused by the annotation {PAUSED_ANNOTATION}"
    return ""


def pause_path(obj: Unstructured) -> str:
    """Return the field that pauses the object."""
    return SPEC_PAUSED if obj.at("spec", "paused") is True else f"metadata.annotations[{PAUSED_ANNOTATION}]"


def deletion(obj: Unstructured, conditions: Sequence[Condition], now: datetime | None) -> Complaint:
    """Return the complaint about a deletion, with its finalizers. A young deletion is only weak evidence."""
    metadata = obj.metadata
    begun = str(obj.at("metadata", "deletionTimestamp"))
    said = get(conditions, "Deleting")
    words = f": {said.reason}: {said.message}" if said is not None and said.status == "True" else ""
    pause = own_pause(obj)
    if pause:
        return Complaint(Tier.PAUSED, f"is being deleted, but {pause}", begun, "Deleting", path=pause_path(obj))
    told = [
        c
        for c in map(complaint_of, conditions)
        if c is not None and c.tier <= Tier.UNHEALTHY and (c.since >= begun or "delet" in c.raw.lower())
    ]
    if told and is_provided(obj):
        words += f": {told[0].text}"
    young = now is not None and metadata.deletion_timestamp is not None and now - metadata.deletion_timestamp < SOON
    finalizers = ", ".join(metadata.finalizers)
    held = f"is being deleted and held by finalizers: {finalizers}" if finalizers else "is being deleted"
    tier = Tier.SILENT if young else Tier.DELETING
    hooks = [name for name in metadata.annotations if name.startswith(HOOKS) and name != KCP_PRE_TERMINATE_HOOK]
    is_ours = all(OWN_FINALIZER in f for f in metadata.finalizers)
    path = f"metadata.annotations[{hooks[0]}]" if hooks and is_ours else "metadata.finalizers"
    made = Complaint(tier, held + words, begun, "Deleting", raw=words, path=path)
    if told and is_provided(obj) and is_ours:
        facts = {"provider": f"provider that reconciles {obj.kind}", "said": told[0].text, "namespace": metadata.namespace}
        return with_cause(made, "provider.deletion", {**facts, "resource": f"{obj.kind.lower()}/{metadata.name}"})
    return made


def without_blank_lines(message: str) -> str:
    """Return a message without lines that are empty, or bullets of nothing."""
    lines = [line.rstrip() for line in message.splitlines()]
    return "\n".join(line for line in lines if line.strip() not in {"", "*"})


def complaint_of(condition: Condition, severity: str = "") -> Complaint | None:
    """Return the complaint of a condition, or None if it is good. `severity`: of a condition of the old form."""
    if condition.type in QUIET:
        return None
    raw = f"{condition.reason} {condition.message}"
    shown = f"{condition.type}={condition.status}: {without_blank_lines(condition.message) or condition.reason}"
    if condition.type not in _NEGATIVE and (last := last_word(condition.type)) in _FAULTS | _UNDER_WAY:
        is_bad = condition.status == "True" if last in _FAULTS else condition.status == "False" and ERROR.said_in(raw)
        return Complaint(Tier.ERROR, shown, since(condition), condition.type, raw, path=condition_path(condition.type)) if is_bad else None
    if condition.type in _NEGATIVE:
        if condition.status != "True":
            return None
        tier = Tier.PROGRESS
        if BLOCKED.said_in(condition.message):
            tier = Tier.WAITING if _is_blocked_for_now(condition.message) else Tier.ERROR
        return Complaint(tier, shown, since(condition), condition.type, raw, path=condition_path(condition.type))
    if condition.status == "True" or condition.reason in _WELL:
        return None
    repeats_ready = (condition.type, condition.reason) == ("Available", "NotReady")  # a Machine's: Ready says why, if it does
    # of a health check that may replace nothing only Machines are in trouble, if any
    says_little = condition.type.endswith("UpToDate") or condition.type in {"OwnerRemediated", "RemediationAllowed"} or repeats_ready
    is_upgrading = condition.type == "TopologyReconciled" and _is_on_its_way(condition.reason) and not BLOCKED.said_in(raw)
    progress = condition.reason != "InternalError" and (says_little or is_upgrading)
    if is_upgrading and HELD.said_in(condition.message):
        return Complaint(Tier.WAITING, shown, since(condition), condition.type, raw, path=condition_path(condition.type))
    tier = Tier.PROGRESS if progress else _SEVERITIES.get(severity) or _tier(condition, raw)
    return Complaint(tier, shown, since(condition), condition.type, raw, path=condition_path(condition.type))


_SEVERITIES: Final = {"Error": Tier.ERROR, "Info": Tier.WAITING}


def severities(obj: Unstructured) -> dict[str, str]:
    """Return the severities of an object's conditions of the old form, by type."""
    listed = obj.at("status", "conditions")
    told = [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []
    return {str(c.get("type")): str(c["severity"]) for c in told if c.get("severity")}


def _is_blocked_for_now(message: str) -> bool:
    """Return whether an object waits for others, which report their own trouble."""
    _, blocked, reasons = message.partition("blocked because:")
    return bool(blocked) and bool(reasons) and all(line.startswith("* waiting ") for line in reasons.removeprefix("\n").split("\n"))


def _is_on_its_way(reason: str) -> bool:
    return reason in {"ClusterCreating", "ClusterUpgrading"} or reason.endswith(("UpgradePending", "UpgradeDeferred", "CreatePending"))


def condition_path(type_: str) -> str:
    """Return the field of a condition."""
    return f"status.conditions[{type_}]"


def _tier(condition: Condition, raw: str) -> Tier:
    if condition.reason in {"NotYetReported", "NoReasonReported"} and not condition.message:
        return Tier.UNKNOWN
    if _is_a_wait(condition.message or condition.reason) or condition.reason.startswith("Waiting"):
        return Tier.WAITING
    if INITIALIZATION.said_in(raw) or CONNECTION.said_in(raw) or INFRASTRUCTURE.said_in(raw):
        return Tier.WAITING
    if condition.reason == "InternalError":
        return Tier.UNHEALTHY  # its controller failed, and gives the reason only in its log
    if condition.status == "False" and _is_getting_on(condition.reason) and not ERROR.said_in(raw):
        return Tier.WAITING
    if condition.status == "Unknown":
        return Tier.UNHEALTHY if condition.type in _OF_NODES and OF_A_NODE.said_in(condition.message) else Tier.UNKNOWN
    return Tier.ERROR if ERROR.said_in(raw) else Tier.UNHEALTHY


def _is_a_wait(text: str) -> bool:
    """Return whether a text reports a wait. Example: `* NodeHealthy: Waiting for a Node to exist`."""
    said = text.partition(": ")[2] if text.startswith("* ") else text
    return said.startswith(("Wait", "wait")) or any(words in text for words in ("NotYetReported", "not yet reported", "in progress"))


def _is_getting_on(reason: str) -> bool:
    """Return whether a reason reports work in progress. Example: `Creating`."""
    last = last_word(reason)
    return last.endswith("ing") or last == "Progress"


_FAILURES: Final = (
    (("status",), "failureReason", "failureMessage"),
    (("status", "deprecated", "v1beta1"), "failureReason", "failureMessage"),
    (("status",), "errorType", "errorMessage"),
)
"""The fields outside conditions in which objects report failures: v1beta1's, and those of hosts."""


def terminal_failures(obj: Unstructured) -> list[Complaint]:
    """Return complaints about failures that are reported in fields of their own."""
    found = []
    for path, of_reason, of_message in _FAILURES:
        reason, message = (obj.at(*path, name) for name in (of_reason, of_message))
        told = [text for text in (reason, message) if isinstance(text, str) and text]
        if told:
            name = of_message if message else of_reason
            found.append(Complaint(Tier.ERROR, f"{name}: {': '.join(told)}", raw=": ".join(told), path=".".join((*path, name))))
    return found


def acquittal(obj: Unstructured, conditions: Sequence[Condition]) -> Tier | None:
    """Return the tier from which complaints do not count because a foreign provider reports its object as ready; None: all count."""
    told = [c for c in conditions if c.type in SUMMARIES]
    if not is_provided(obj) or (told and all(c.status != "True" for c in told)):
        return None
    return Tier.MISSING if told else Tier.UNHEALTHY if obj.at("status", "ready") is True else None


def is_up(obj: Unstructured) -> bool:
    """Return whether an object reports by any contract that it has done its work."""
    return has_delivered(obj) or obj.at("status", "ready") is True


def is_provided(obj: Unstructured) -> bool:
    """Return whether an object belongs to a foreign provider."""
    return obj.gvk.group.partition(".")[0] in {"infrastructure", "controlplane", "bootstrap"} and obj.kind not in _OUR_KINDS


def acquitted(complaints: Iterable[Complaint], least: Tier) -> list[Complaint]:
    """Return the complaints, from a tier on as progress, except orders to stop and faults that the object states."""
    kept = {Tier.PAUSED, Tier.DELETING}
    return [c if c.tier in kept or c.tier < least or last_word(c.about) in _FAULTS else replace(c, tier=Tier.PROGRESS) for c in complaints]


_OUR_KINDS: Final = frozenset({"KubeadmControlPlane", "KubeadmConfig", "DevMachine", "DevCluster", "DevMachinePool"})


def used_up(quota: Unstructured) -> str:
    """Return the object counts that a ResourceQuota has used up; empty if none is."""
    hard, used = quota.at("status", "hard"), quota.at("status", "used")
    if not isinstance(hard, Mapping) or not isinstance(used, Mapping):
        return ""
    counts = {k: (str(used.get(k)), str(v)) for k, v in hard.items() if str(k).startswith("count/")}
    spent = [f"{k} {u} of {h}" for k, (u, h) in counts.items() if u.isdecimal() and h.isdecimal() and int(u) >= int(h)]
    return ", ".join(spent)


def has_delivered(obj: Unstructured) -> bool:
    """Return whether the object reports that its work is done. Templates have no work."""
    if obj.kind.endswith("Template"):
        return True
    flags = ("provisioned", "dataSecretCreated", "controlPlaneInitialized")
    if any(obj.at("status", "initialization", flag) is True for flag in flags):
        return True
    try:
        return is_true(conditions_of(obj), "Ready")
    except InvalidConditions:
        return False


def old_conditions(obj: Unstructured) -> tuple[Condition, ...]:
    """Return the conditions of v1beta1 of an object that has no others, without those of severity Info that report no wait."""
    listed = obj.at("status", "deprecated", "v1beta1", "conditions")
    told = [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list) else []
    told = [c for c in told if c.get("severity") != "Info" or str(c.get("reason")).startswith("Waiting")]
    try:
        return conditions_of({"status": {"conditions": told}})
    except InvalidConditions:
        return ()


def without_summaries(complaints: list[Complaint]) -> list[Complaint]:
    """Lower summaries (Ready, Available) to progress, and mark complaints that name another one as their reason as secondary."""
    if any(c.about not in SUMMARIES and c.tier is not Tier.PROGRESS for c in complaints):
        complaints = [replace(c, tier=Tier.PROGRESS) if c.about in SUMMARIES else c for c in complaints]
    types = {c.about for c in complaints if c.about and c.about not in SUMMARIES}
    return [replace(c, secondary=any(t in c.raw for t in types - {c.about})) for c in complaints]


def since(condition: Condition | None) -> str:
    """Return the time of the condition's last change, as text."""
    if condition is None or condition.last_transition_time is None:
        return ""
    return condition.last_transition_time.strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(event: Mapping[str, Any]) -> str:
    """Return the time of an Event's last occurrence, as text."""
    series = event.get("series")
    newest = series.get("lastObservedTime") if isinstance(series, Mapping) else None
    return str(newest or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")


def begun_of(event: Mapping[str, Any]) -> str:
    """Return the time of an Event's first occurrence, as text."""
    return str(event.get("firstTimestamp") or event.get("eventTime") or time_of(event))


def earlier(moment: str, by: timedelta) -> str:
    """Return the text of a moment a while before the given one. Text that is not a time stays as it is."""
    try:
        return f"{datetime.fromisoformat(moment) - by:%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return moment


def text_of(event: Mapping[str, Any]) -> str:
    """Return the message of an Event of the old or the new form."""
    return str(event.get("message") or event.get("note") or "")
