"""Admission of Cluster. `clusterfacts.py` reads the facts outside of the Cluster itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address
from typing import Any, Final

import msgspec

from clusterwright.admission.classes import (
    CLASS_SCALED,
    SELF_SCALED,
    VALUE_RULES,
    class_key,
    incompatibilities,
    is_deleting,
    scaled_by_class,
    scaled_by_itself,
    topology_of,
    worker_class,
)
from clusterwright.admission.clusterfacts import facts_of, kept_pins, observe, observe_class
from clusterwright.admission.hook import Hook
from clusterwright.admission.ipam import address
from clusterwright.admission.pinning import PINNING
from clusterwright.admission.rule import DELETE, UPDATE, WRITE, Default, Delegated, Fault, Guard, Review, Rule, at
from clusterwright.admission.sets import (
    FORBIDDEN,
    INVALID,
    REQUIRED,
    gate_off,
    health_check,
    is_filled,
    is_health_check,
    kubernetes_version,
    label_values,
    rollout,
    taints,
    template_metadata,
    version_default,
)
from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    DISABLE_UPDATE_CLASS_NAME_CHECK_ANNOTATION,
    DISABLE_UPDATE_VERSION_CHECK_ANNOTATION,
    PENDING_HOOKS_ANNOTATION,
    UPGRADE_CONCURRENCY_ANNOTATION,
)
from clusterwright.apiserver.status import ErrorType, FieldError
from clusterwright.golang.numbers import atoi
from clusterwright.golang.quoting import quote
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.topology.variables import default_and_validate, default_topology

_TOPOLOGY: Final = "spec.topology"
_CLASS: Final = "spec.topology.class"
"""The former name of the reference to a class; errors still use it."""
_AFTER_UPGRADE: Final = "AfterClusterUpgrade"
_INTERNAL: Final = ErrorType.INTERNAL


# ----------------------------------------------------------------------------------------- for which writes


def _foreign_class(review: Review, namespace: Any) -> bool:
    """Return whether the class is in another namespace, which is not allowed here. A stored reference may stay."""
    if review.gates.get("CrossNamespaceClasses", True) or not namespace or namespace == (at(review.new, "metadata", "namespace") or ""):
        return False
    return bool(at(review.old, "spec", "topology", "classRef") != at(review.new, "spec", "topology", "classRef"))


def _managed(review: Review) -> bool:
    return topology_of(review.new) is not None


def _lives(review: Review) -> bool:
    """Return whether rules apply: a Cluster under deletion must be able to lose its finalizers, even without class or gate."""
    return _managed(review) and not is_deleting(review.new)


def _has_class(review: Review) -> bool:
    """Return whether the class exists; it need not be reconciled."""
    return _managed(review) and facts_of(review).cluster_class is not None


def _stays_managed(review: Review) -> bool:
    return _has_class(review) and topology_of(review.old) is not None and bool(class_key(review.old, "").name)


def _has_variables(review: Review) -> bool:
    facts = facts_of(review)
    return _managed(review) and facts.cluster_class is not None and facts.is_reconciled


def _class_changes(review: Review) -> bool:
    return _stays_managed(review) and class_key(review.old, review.namespace) != class_key(review.new, review.namespace)


# ----------------------------------------------------------------------------------------- defaults


def _fill_variables(obj: Json, review: Review) -> None:
    if _has_variables(review):
        obj["spec"]["topology"] = default_topology(obj["spec"]["topology"], facts_of(review).definitions)[0]


def _variables(review: Review) -> Iterable[FieldError]:
    topology = msgspec.json.decode(msgspec.json.encode(review.new["spec"]["topology"], order="sorted"))  # errors show values sorted
    return default_and_validate(topology, topology_of(review.old), facts_of(review).definitions)[1]


def _version(obj: Json, review: Review) -> None:
    if _managed(review):
        version_default("", "spec", "topology", also_empty=True).fill(obj, review)


# ----------------------------------------------------------------------------------------- guards


def _removed(key: str) -> Guard:
    return lambda review, value: is_filled(at(review.old, "spec", key)) and not is_filled(value)


def _says_nothing(review: Review, value: Any) -> bool:
    del review
    return not any(is_filled(at(value, key)) for key in ("controlPlaneRef", "infrastructureRef", "topology"))


def _no_cidr(review: Review, value: Any) -> bool:
    """Return the error of a CIDR: an address, a slash, and the number of significant bits."""
    del review
    text, _, bits = (value or "").partition("/")
    found = address(text)
    if found is None or (isinstance(found, IPv6Address) and found.scope_id) or not (bits.isascii() and bits.isdigit()):
        return True
    return len(bits.lstrip("0")) > 3 or int(bits) > found.max_prefixlen


def _cidr(ids: str, kind: str) -> Rule:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        if _no_cidr(review, value):
            yield Fault(value or "", cidr=value)

    return Rule(ids, INVALID, f"spec.clusterNetwork.{kind}.cidrBlocks[]", guard, "invalid CIDR address: {cidr}")


def _unread_concurrency(review: Review, value: Any) -> Iterator[Fault]:
    del review
    text = at(value, UPGRADE_CONCURRENCY_ANNOTATION)
    if text is None:
        return
    try:
        if atoi(text) < 1:
            yield Fault(text, problem="value cannot be less than 1")
    except ValueError as error:
        yield Fault(text, problem=f"could not parse the value of the annotation: {error}")


def _class_unread(review: Review, _: Any) -> Iterator[Fault]:
    if facts_of(review).class_error:
        yield Fault(error=facts_of(review).class_error)


def _other_version(review: Review, value: Any) -> bool:
    versions = at(facts_of(review).cluster_class, "spec", "kubernetesVersions")
    return bool(versions) and (value or "") not in versions


def _unknown_class(kind: str) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        known = facts_of(review).cluster_class
        if worker_class(known, kind, value or "") is None:
            yield Fault(value or "", name=quote(value or ""), of=quote(at(known, "metadata", "name") or ""))

    return guard


def _repeated(review: Review, value: Any) -> Iterator[Fault]:
    del review
    seen: set[str] = set()
    for n, entry in enumerate(value or ()):
        name = entry.get("name") or ""
        if name and name in seen:
            yield Fault(name, (n,), name=quote(name))
        seen.add(name)


def _check_without_machines(review: Review, value: Any) -> bool:
    reference = at(facts_of(review).cluster_class, "spec", "controlPlane", "machineInfrastructure", "templateRef")
    return is_health_check(value) and not is_filled(reference)


def _enabled_but_undefined(review: Review, value: Any) -> bool:
    defined = at(facts_of(review).cluster_class, "spec", "controlPlane", "healthCheck")
    return at(value, "enabled") is True and not is_health_check(value) and not is_health_check(defined)


def _worker_enabled_but_undefined(review: Review, value: Any) -> bool:
    entry = worker_class(facts_of(review).cluster_class, "machineDeployments", at(value, "class") or "")
    check = at(value, "healthCheck")
    return (
        entry is not None and at(check, "enabled") is True and not is_health_check(check) and not is_health_check(entry.get("healthCheck"))
    )


def _no_class(review: Review, _: Any) -> Iterator[Fault]:
    if facts_of(review).cluster_class is None:
        key = class_key(review.new, review.namespace)
        yield Fault(key=f"{key.namespace}/{key.name}")


def _class_added(review: Review, _: Any) -> bool:
    was_managed = topology_of(review.old) is not None and bool(class_key(review.old, "").name)
    return not was_managed and DISABLE_UPDATE_CLASS_NAME_CHECK_ANNOTATION not in review.annotations


def _old_class_unread(review: Review, _: Any) -> Iterator[Fault]:
    if facts_of(review).old_class is None:
        old, new = (quote("/".join(class_key(o, review.namespace))) for o in (review.old, review.new))
        yield Fault(old=old, new=new, error=facts_of(review).old_class_error)


# ----------------------------------------------------------------------------------------- versions


def _unread_versions(review: Review, value: Any) -> Iterator[Fault]:
    for text, which in ((value or "", ""), (at(review.old, "spec", "topology", "version") or "", "old ")):
        try:
            parse_version(text)
        except ValueError:
            yield Fault(text, which=which)


def _tolerant(text: str) -> Version:
    """Return a parsed version; an invalid one counts as the lowest."""
    try:
        return parse_version(text)
    except ValueError:
        return Version(0)


def _refused_change(review: Review) -> tuple[str, dict[str, Any]] | None:
    """Return the first reason against the change of the version, and the words for it."""
    old, new = (_tolerant(at(o, "spec", "topology", "version") or "") for o in (review.old, review.new))
    if str(old) == str(new):
        return None
    words: dict[str, Any] = {"old": old, "new": new}
    spec = at(facts_of(review).cluster_class, "spec")
    planned = at(spec, "kubernetesVersions") or at(spec, "upgrade", "external", "generateUpgradePlanExtension")
    if new.release < old.release and new != Version(0) and old != Version(0):
        return "CL-33", words
    if not planned and new.release >= (old.major, old.minor + 2, 0):
        return "CL-34", words
    if _AFTER_UPGRADE in (review.annotations.get(PENDING_HOOKS_ANNOTATION) or "").split(","):
        return "CL-35", words
    found = [text for text in facts_of(review).unfinished(old, kept_pins(review)) if text]
    return ("CL-36", {"why": found[0] if len(found) == 1 else f"[{', '.join(found)}]"}) if found else None


def _refused_for(id: str) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        refused = _refused_change(review)
        if refused is not None and refused[0] == id:
            yield Fault(value or "", **refused[1])

    return guard


def _version_is_checked(review: Review) -> bool:
    return _stays_managed(review) and DISABLE_UPDATE_VERSION_CHECK_ANNOTATION not in review.annotations


# ----------------------------------------------------------------------------------------- warnings


def _warnings(review: Review) -> Iterator[str]:
    if review.operation == "DELETE" or not _managed(review) or not review.enabled("ClusterTopology"):
        return
    facts, key = facts_of(review), class_key(review.new, review.namespace)
    if not key.name or facts.class_error:
        return
    begin = f"Cluster refers to ClusterClass {key.namespace}/{key.name}, but this ClusterClass"
    if facts.cluster_class is None:
        yield (
            f"{begin} does not exist. Cluster topology has not been fully validated. "
            "The ClusterClass must be created to reconcile the Cluster"
        )
    elif not facts.is_reconciled:
        yield (
            f"{begin} hasn't been successfully reconciled. Cluster topology has not been fully validated. "
            "Please take a look at the ClusterClass status"
        )
    if review.operation == "UPDATE" and _stays_managed(review) and not _version_is_checked(review):
        yield f"Skipping version validation for Cluster because annotation {quote(DISABLE_UPDATE_VERSION_CHECK_ANNOTATION)} is set."


# ----------------------------------------------------------------------------------------- the rows

_MDS, _MPS = (f"spec.topology.workers.{kind}" for kind in ("machineDeployments", "machinePools"))
_NO_CHECK: Final = "cannot be set to true as healthCheck definition is not available in the Cluster topology or the ClusterClass"
_SEMANTIC: Final = "version must be a valid semantic version"

CLUSTER: Final = Hook(
    model=Cluster,
    on=WRITE | DELETE,
    costly=lambda review: at(review.new, "spec", "topology") is not None,
    observe_default=observe_class,
    observe=observe,
    warn=_warnings,
    required=(
        Rule("CL-D2", REQUIRED, "spec.topology.classRef.name", lambda _, v: not v, "cannot be empty", when=_managed),
    ),
    defaults=(
        Default("CL-D1 VER-D", "spec.topology.version", _version),
        Default("CL-D3 CL-D4", "spec.topology.variables", _fill_variables),
    ),
    defaulted=(Delegated(f"CL-D5 {VALUE_RULES}", "spec.topology.variables", _variables, when=_has_variables),),
    rules=(
        Rule("CL-1", INVALID, "metadata.name", label_values, "must be a valid label value {text}"),
        Rule("CL-2", FORBIDDEN, "spec.infrastructureRef", _removed("infrastructureRef"), "cannot be removed", on=UPDATE),
        Rule("CL-3", FORBIDDEN, "spec", _says_nothing, "one of spec.controlPlaneRef, spec.infrastructureRef or spec.topology must be set"),
        Rule("CL-4", FORBIDDEN, "spec.controlPlaneRef", _removed("controlPlaneRef"), "cannot be removed", on=UPDATE),
        _cidr("CL-5", "pods"),
        _cidr("CL-6", "services"),
        Rule("CL-7", FORBIDDEN, _TOPOLOGY, _removed("topology"), "cannot be removed from an existing Cluster", on=UPDATE),
        Rule("CL-8", FORBIDDEN, _TOPOLOGY, gate_off("ClusterTopology"), "can be set only if the ClusterTopology feature flag is enabled",
             when=_lives, stop=True),
        Rule("CL-9", REQUIRED, f"{_TOPOLOGY}.classRef.name", lambda _, v: not v, "classRef.name cannot be empty", path=_CLASS, when=_managed, stop=True),
        Rule("CL-41", FORBIDDEN, f"{_TOPOLOGY}.classRef.namespace", _foreign_class,
             "must be the namespace of the Cluster, or empty: the CrossNamespaceClasses feature flag is disabled", when=_managed),
        *kubernetes_version("CL-10", f"{_TOPOLOGY}.version", text=_SEMANTIC, when=_managed),
        *template_metadata("CL-11", f"{_TOPOLOGY}.controlPlane.metadata", when=_managed),
        *template_metadata("CL-11", f"{_MDS}[name].metadata", when=_managed),
        *template_metadata("CL-11", f"{_MPS}[name].metadata", when=_managed),
        *rollout("CL-12", f"{_MDS}[name].rollout.strategy", when=_managed),
        *taints("CL-13", f"{_TOPOLOGY}.controlPlane.taints", when=_managed),
        *taints("CL-13", f"{_MDS}[name].taints", when=_managed),
        *taints("CL-13", f"{_MPS}[name].taints", when=_managed),
        Rule("CL-14", INVALID, "metadata.annotations", _unread_concurrency, "{problem}", path=f"metadata.annotations.{UPGRADE_CONCURRENCY_ANNOTATION}",
             when=_managed),
        Rule("CL-15", _INTERNAL, _TOPOLOGY, _class_unread, "{error}", path=_CLASS, when=_lives, stop=True),
        Rule("CL-16", INVALID, f"{_TOPOLOGY}.version", _other_version, "version must match one of the versions defined in the ClusterClass",
             when=_has_class),
        Rule("CL-17", INVALID, f"{_MDS}[].class", _unknown_class("machineDeployments"),
             "MachineDeploymentClass with name {name} does not exist in ClusterClass {of}", when=_has_class),
        Rule("CL-18", REQUIRED, f"{_MDS}[].name", lambda _, v: not v, "name must not be empty", when=_has_class),
        Rule("CL-19", INVALID, _MDS, _repeated, "name must be unique. MachineDeployment with name {name} is defined more than once",
             path=f"{_MDS}[{{}}].name", when=_has_class),
        Rule("CL-20", INVALID, f"{_MPS}[].class", _unknown_class("machinePools"),
             "MachinePoolClass with name {name} does not exist in ClusterClass {of}", when=_has_class),
        Rule("CL-21", REQUIRED, f"{_MPS}[].name", lambda _, v: not v, "name must not be empty", when=_has_class),
        Rule("CL-22", INVALID, _MPS, _repeated, "name must be unique. MachinePool with name {name} is defined more than once",
             path=f"{_MPS}[{{}}].name", when=_has_class),
        Rule("CL-23", FORBIDDEN, f"{_TOPOLOGY}.controlPlane.healthCheck", _check_without_machines,
             "can be only set if spec.controlPlane.machineInfrastructure is set in ClusterClass", when=_has_class),
        *health_check("CL-24", f"{_TOPOLOGY}.controlPlane.healthCheck", when=_has_class),
        Rule("CL-25", FORBIDDEN, f"{_TOPOLOGY}.controlPlane.healthCheck", _enabled_but_undefined, _NO_CHECK,
             path=f"{_TOPOLOGY}.controlPlane.healthCheck.enable", when=_has_class),
        *health_check("CL-26", f"{_MDS}[name].healthCheck", max_in_flight=True, when=_has_class),
        Rule("CL-27", FORBIDDEN, f"{_MDS}[name]", _worker_enabled_but_undefined, _NO_CHECK, path=f"{_MDS}[{{}}].healthCheck.enable", when=_has_class),
        Rule("CL-28", INVALID, "spec.topology", lambda r, _: scaled_by_itself(r.new, r.name, r.namespace), SELF_SCALED,
             path=f"{_MDS}[{{}}].replicas", when=_managed),
        Rule("CL-29", INVALID, "spec.topology", lambda r, _: scaled_by_class(r.new, facts_of(r).cluster_class, r.name, r.namespace), CLASS_SCALED,
             path=f"{_MDS}[{{}}].replicas", when=_has_class),
        Rule("CL-30", _INTERNAL, _TOPOLOGY, _no_class, "ClusterClass {key} not found", on=UPDATE, path=_CLASS, when=_lives, stop=True),
        Rule("CL-31", FORBIDDEN, _TOPOLOGY, _class_added, "classRef cannot be set on an existing Cluster", on=UPDATE, path=_CLASS, when=_managed, stop=True),
        Rule("CL-32", INVALID, f"{_TOPOLOGY}.version", _unread_versions, "{which}version must be a valid semantic version", on=UPDATE, when=_stays_managed),
        Rule("CL-33", INVALID, f"{_TOPOLOGY}.version", _refused_for("CL-33"), 'version cannot be decreased from "{old}" to "{new}"',
             on=UPDATE, when=_version_is_checked),
        Rule("CL-34", INVALID, f"{_TOPOLOGY}.version", _refused_for("CL-34"), 'version cannot be increased from "{old}" to "{new}"',
             on=UPDATE, when=_version_is_checked),
        Rule("CL-35", INVALID, f"{_TOPOLOGY}.version", _refused_for("CL-35"),
             f'version cannot be changed when the "{_AFTER_UPGRADE}" hook is still blocking', on=UPDATE, when=_version_is_checked),
        Rule("CL-36 CL-37 CL-38", INVALID, f"{_TOPOLOGY}.version", _refused_for("CL-36"), "version cannot be changed: {why}",
             on=UPDATE, when=_version_is_checked),
        *PINNING,
        Rule("CL-39", FORBIDDEN, _TOPOLOGY, _old_class_unread,
             "valid ClusterClass with name {old} could not be retrieved, change from class {old} to class {new} cannot be validated. Error: {error}",
             on=UPDATE, path=_CLASS, when=_class_changes, stop=True),
        Delegated("CL-40", "spec.topology.classRef", lambda r: incompatibilities(facts_of(r).old_class, facts_of(r).cluster_class),
                  on=UPDATE, when=_class_changes),
    ),
)  # fmt: skip
