"""Find a Node for a Pod: selectors, taints, cordons and room, as far as a simulated scheduler looks at them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.golang.quantities import parse_quantity

_DAEMON_TOLERATED: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
    }
)


class Room:
    """The number of Pods on each Node, and what they request; kept up by changes."""

    def __init__(self) -> None:
        self._pods: Counter[str] = Counter()
        self._used: dict[str, dict[str, Decimal]] = {}

    def change(self, old: bytes | None, new: bytes | None) -> None:
        """Take note of a Pod that appeared, changed or disappeared."""
        for raw, sign in ((old, -1), (new, 1)):
            load = _LOAD.decode(raw) if raw is not None else None
            if load is None or not load.spec.node_name or load.status.phase in {"Succeeded", "Failed"}:
                continue
            self._pods[load.spec.node_name] += sign
            used = self._used.setdefault(load.spec.node_name, {})
            for resource, amount in _requested(load.spec).items():
                used[resource] = used.get(resource, Decimal(0)) + sign * amount

    def on(self, node: str) -> tuple[int, Mapping[str, Decimal]]:
        """Return how many Pods are on a Node, and what they request."""
        return self._pods[node], self._used.get(node, {})


def choose(pod: Json, nodes: Sequence[Json], room: Room) -> tuple[str, str]:
    """Return the Node for a Pod, the one with the fewest Pods; or an empty name, and why there is none."""
    reasons: Counter[str] = Counter()
    requested = _requested(msgspec.convert(pod["spec"], _Spec))
    fitting = []
    for node in nodes:
        name = node["metadata"]["name"]
        count, used = room.on(name)
        why = _refusal(pod, node) or _lack(requested, node, count, used)
        if why:
            reasons[why] += 1
        else:
            fitting.append((count, name))
    if fitting:
        return min(fitting)[1], ""
    told = ", ".join(f"{number} {why}" for why, number in sorted(reasons.items()))
    return "", f"0/{len(nodes)} nodes are available: {told}." if told else "no nodes available to schedule pods"


def fits(pod: Json, node: Json, *, is_daemon: bool = False) -> bool:
    """Return whether a Pod may run on a Node, whatever else runs there."""
    return not _refusal(pod, node, is_daemon=is_daemon)


def _refusal(pod: Json, node: Json, *, is_daemon: bool = False) -> str:
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    wanted = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()) or not _has_affinity(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    host = node.get("spec") or {}
    if host.get("unschedulable") and not is_daemon:
        return "node(s) were unschedulable"
    for taint in host.get("taints") or ():
        if taint.get("effect") == "PreferNoSchedule" or (is_daemon and taint.get("key") in _DAEMON_TOLERATED):
            continue
        if not any(_tolerates(one, taint) for one in spec.get("tolerations") or ()):
            return f"node(s) had untolerated taint(s) {{{taint.get('key')}}}"
    return ""


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def _has_affinity(spec: Json, node: Json) -> bool:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or ()
    return not terms or any(_matches(term, node) for term in terms)


def _matches(term: Json, node: Json) -> bool:
    expressions = [(one, node["metadata"].get("labels") or {}) for one in term.get("matchExpressions") or ()]
    expressions += [(one, {"metadata.name": node["metadata"]["name"]}) for one in term.get("matchFields") or ()]
    return bool(expressions) and all(_holds(one, values) for one, values in expressions)


def _holds(expression: Json, values: Mapping[str, str]) -> bool:
    key, listed = expression.get("key", ""), expression.get("values") or []
    value = values.get(key)
    match expression.get("operator"):
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.lstrip("-").isdecimal() and int(value) > int(listed[0])
        case "Lt":
            return value is not None and value.lstrip("-").isdecimal() and int(value) < int(listed[0])
        case _:
            return False


class _Resources(msgspec.Struct):
    requests: dict[str, Any] | None = None


class _Container(msgspec.Struct):
    resources: _Resources | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] | None = None


class _Status(msgspec.Struct):
    phase: str = ""


class _Load(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_LOAD: Final = msgspec.json.Decoder(_Load)


def _requested(spec: _Spec) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for container in spec.containers or ():
        requests = container.resources.requests if container.resources is not None else None
        for resource, text in (requests or {}).items():
            sums[resource] = sums.get(resource, Decimal(0)) + amount_of(text)
    return sums


def _lack(requested: Mapping[str, Decimal], node: Json, count: int, used: Mapping[str, Decimal]) -> str:
    has = (node.get("status") or {}).get("allocatable") or {}
    if "pods" in has and count >= amount_of(has["pods"]):
        return "Too many pods"
    for resource, amount in sorted(requested.items()):
        if amount and used.get(resource, Decimal(0)) + amount > amount_of(has.get(resource, "0")):
            return f"Insufficient {resource}"
    return ""


def amount_of(text: Any) -> Decimal:
    """Return a quantity as a number; zero for anything else."""
    try:
        return parse_quantity(str(text)).amount
    except ValueError:
        return Decimal(0)
