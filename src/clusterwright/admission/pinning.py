"""Rules of workers that a topology pins to a version, of both kinds. Pinned versions follow the version skew policy of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from clusterwright.admission.classes import is_deleting, topology_of
from clusterwright.admission.clusterfacts import facts_of, kept_pins
from clusterwright.admission.rule import UPDATE, Fault, Guard, Review, Rule, at
from clusterwright.admission.sets import FORBIDDEN, INVALID, kubernetes_version
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    DEFER_UPGRADE_ANNOTATION,
    DISABLE_UPDATE_VERSION_CHECK_ANNOTATION,
    HOLD_UPGRADE_SEQUENCE_ANNOTATION,
    PENDING_HOOKS_ANNOTATION,
)
from clusterwright.golang.quoting import quote
from clusterwright.kubeadm.versions import Version, compare, parse_version
from clusterwright.topology.hooks import AFTER_CLUSTER_UPGRADE
from clusterwright.topology.pinning import GATE, KINDS, LARGEST_SKEW, Workers, pins

_NOUNS: Final = {"machineDeployments": "MachineDeployment", "machinePools": "MachinePool"}
_Check = Callable[[Review, Workers, Json], Iterator[Fault]]


def _parsed(text: str | None) -> Version | None:
    """Return a version; None if it is empty or invalid, which other rules report."""
    try:
        return parse_version(text) if text else None
    except ValueError:
        return None


def _wanted(obj: Any) -> str:
    return at(obj, "spec", "topology", "version") or ""


def _is_beyond_skew(worker: str, control_plane: str) -> bool:
    old, new = _parsed(worker), _parsed(control_plane)
    return old is not None and new is not None and (old.major, old.minor + LARGEST_SKEW) < (new.major, new.minor)


def _is_newer(one: str, other: str) -> bool:
    a, b = _parsed(one), _parsed(other)
    return a is not None and b is not None and compare(a, b, build=True) == 1


# ----------------------------------------------------------------------------------------- for which writes


def _is_alive(review: Review) -> bool:
    return topology_of(review.new) is not None and not is_deleting(review.new)


def _is_on(review: Review) -> bool:
    return _is_alive(review) and review.enabled(GATE)


def _is_off(review: Review) -> bool:
    return _is_alive(review) and not review.enabled(GATE)


def _is_compared(review: Review) -> bool:
    """Return whether the write is compared with the object before it and with the versions that run."""
    return _is_on(review) and topology_of(review.old) is not None and DISABLE_UPDATE_VERSION_CHECK_ANNOTATION not in review.annotations


def _before(review: Review, kind: Workers, entry: Json) -> Json | None:
    """Return the former entry of the same name."""
    entries = at(review.old, "spec", "topology", "workers", kind) or ()
    return next((e for e in entries if e.get("name") == entry.get("name")), None)


def _changed(check: _Check) -> _Check:
    """Return a check of pins that the write sets or changes."""

    def guard(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
        if entry.get("version") and entry["version"] != at(_before(review, kind, entry), "version"):
            yield from check(review, kind, entry)

    return guard


# ----------------------------------------------------------------------------------------- checks


def _edited(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    if (entry.get("version") or "") != (at(_before(review, kind, entry), "version") or ""):
        yield Fault()


def _too_new(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    for what, version in (
        ("spec.topology.version", _wanted(review.new)),
        ("the control plane, which runs", facts_of(review).oldest_control_plane),
    ):
        if _is_newer(entry["version"], version):
            yield Fault(entry["version"], what=what, version=version)
            return


def _too_old(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    if _is_beyond_skew(entry["version"], _wanted(review.new)):
        yield Fault(entry["version"], version=_wanted(review.new))


def _unlisted(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    versions = at(facts_of(review).cluster_class, "spec", "kubernetesVersions")
    if versions and entry["version"] not in versions:
        yield Fault(entry["version"])


def _deferred(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    found = [a for a in (DEFER_UPGRADE_ANNOTATION, HOLD_UPGRADE_SEQUENCE_ANNOTATION) if a in (at(entry, "metadata", "annotations") or {})]
    if entry.get("version") and found and entry != _before(review, kind, entry):
        yield Fault(annotation=found[0])


def _unstable(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    """Find pins that are set or changed during an upgrade. A new entry has nothing that could be in between."""
    old = _parsed(_wanted(review.old))
    if _before(review, kind, entry) is None or old is None:
        return
    if AFTER_CLUSTER_UPGRADE in (review.annotations.get(PENDING_HOOKS_ANNOTATION) or "").split(","):
        yield Fault(entry["version"], why=f'the "{AFTER_CLUSTER_UPGRADE}" hook is still blocking')
        return
    for why in filter(None, facts_of(review).unfinished(old, kept_pins(review))):
        yield Fault(entry["version"], why=why)
        return


def _lowered(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    former = at(_before(review, kind, entry), "version") or ""
    for version in (former, *facts_of(review).worker_version(kind, entry.get("name") or "")):
        if _is_newer(version, entry["version"]):
            yield Fault(entry["version"], old=version)
            return


def _unpinned(review: Review, kind: Workers, entry: Json) -> Iterator[Fault]:
    former, version = at(_before(review, kind, entry), "version") or "", _wanted(review.old)
    if former and not entry.get("version") and _parsed(former) != _parsed(version):
        yield Fault(old=former, version=version)


def _left_behind(review: Review, value: Any) -> Iterator[Fault]:
    """Find pinned workers that a new version of the topology would leave too far behind, by the version before or one that still runs."""
    if _wanted(review.old) == value:
        return
    for kind in KINDS:
        before = pins(review.old, kind)
        for name, version in pins(review.new, kind).items():
            known = [before.get(name) or version, *facts_of(review).running(kind, name)]
            behind = next((v for v in known if _is_beyond_skew(v, value or "")), None)
            if behind is not None:
                yield Fault(value, who=f"{_NOUNS[kind]} {quote(name)}", pin=version, runs=behind)


# ----------------------------------------------------------------------------------------- the rows


def _of(check: _Check, kind: Workers) -> Guard:
    return lambda review, entry: check(review, kind, entry) if isinstance(entry, dict) else False


def _rows(kind: Workers) -> Iterator[Rule]:
    entry, path = f"spec.topology.workers.{kind}[name]", f"spec.topology.workers.{kind}[{{}}].version"
    here: dict[str, Any] = {"path": path, "when": _is_on}
    compared: dict[str, Any] = {"path": path, "on": UPDATE, "when": _is_compared}
    yield Rule(
        "CL-42", FORBIDDEN, entry, _of(_edited, kind), f"can be changed only if the {GATE} feature flag is enabled", path=path, when=_is_off
    )
    yield from kubernetes_version("CL-43", f"{entry}.version", optional=True, text="version must be a valid semantic version", when=_is_on)
    yield Rule("CL-44", INVALID, entry, _of(_changed(_too_new), kind), "version must not be newer than {what} {version}", **here)
    yield Rule(
        "CL-45",
        INVALID,
        entry,
        _of(_changed(_too_old), kind),
        f"version must be at most {LARGEST_SKEW} minor versions older than spec.topology.version {{version}}",
        **here,
    )
    yield Rule(
        "CL-46",
        INVALID,
        entry,
        _of(_changed(_unlisted), kind),
        "version must match one of the versions defined in the ClusterClass",
        **here,
    )
    yield Rule(
        "CL-47",
        FORBIDDEN,
        entry,
        _of(_deferred, kind),
        "cannot be combined with annotation {annotation}: pinned workers are not upgraded with the topology",
        **here,
    )
    yield Rule("CL-48", INVALID, entry, _of(_changed(_unstable), kind), "version cannot be changed: {why}", **compared)
    yield Rule("CL-49", INVALID, entry, _of(_changed(_lowered), kind), "version cannot be decreased from {old}", **compared)
    yield Rule("CL-50", FORBIDDEN, entry, _of(_unpinned, kind),
               "can be removed only when it equals spec.topology.version {version}; it is {old}, so raise it first", **compared)  # fmt: skip


PINNING: Final[tuple[Rule, ...]] = (
    *(row for kind in KINDS for row in _rows(kind)),
    Rule("CL-51", INVALID, "spec.topology.version", _left_behind,
         f"version cannot be changed: {{who}} is pinned to {{pin}} and runs {{runs}}, which is more than {LARGEST_SKEW} minor versions older; "
         "raise its version first", on=UPDATE, when=_is_compared),
)  # fmt: skip
