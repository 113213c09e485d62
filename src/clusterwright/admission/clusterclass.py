"""Admission of ClusterClass. Rules for its patches are in `clusterclasspatches.py`, those for its variables in `topology.variables`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.admission.classes import (
    CLASS_SCALED,
    SELF_SCALED,
    VARIABLE_RULES,
    WORKERS,
    class_key,
    class_workers,
    incompatibilities,
    scaled_by_class,
    scaled_by_itself,
    topology_of,
    topology_workers,
    worker_class,
)
from clusterwright.admission.clusterclasspatches import patches
from clusterwright.admission.hook import Access, Hook, Unobserved
from clusterwright.admission.rule import DELETE, UPDATE, WRITE, Delegated, Fault, Guard, Review, Rule, at, items
from clusterwright.admission.sets import (
    FORBIDDEN,
    INVALID,
    REQUIRED,
    SAMPLE_SUFFIX,
    class_naming,
    gated,
    health_check,
    is_filled,
    is_health_check,
    rollout,
    taints,
    template_metadata,
)
from clusterwright.api.core import Cluster, ClusterClass
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.apiserver.status import ErrorType, FieldError
from clusterwright.golang.quoting import quote
from clusterwright.kubeadm.versions import Version, compare, parse_version
from clusterwright.runtime.errors import ApiError
from clusterwright.topology.pinning import GATE, KINDS, pins
from clusterwright.topology.variables import validate_definitions

_MDS, _MPS = (f"spec.workers.{kind}" for kind in WORKERS)
_NAMED: Final = 3
"""The most Clusters that are named in a refusal."""


# ----------------------------------------------------------------------------------------- who uses it


@dataclass(frozen=True, slots=True)
class Users:
    """The Clusters of the class, by namespace and name; or why they are unknown."""

    clusters: tuple[Json, ...] = ()
    error: str = ""


async def _users(review: Review, access: Access) -> Users:
    if review.operation == "CREATE":
        return Users()
    wanted = ObjectKey(review.namespace, review.name)
    try:
        found = await access.reader.list(SCHEME.gvk(Cluster))
    except ApiError as error:
        if review.operation == "DELETE":
            raise Unobserved(f"could not retrieve Clusters using ClusterClass: {error}") from None
        return Users(error=str(error))
    clusters = [dict(cluster.json) for cluster in found]
    return Users(tuple(c for c in clusters if topology_of(c) is not None and class_key(c, _namespace(c)) == wanted))


def _namespace(cluster: Json) -> str:
    return at(cluster, "metadata", "namespace") or ""


def _name(cluster: Json) -> str:
    return at(cluster, "metadata", "name") or ""


def _clusters(review: Review) -> tuple[Json, ...]:
    return review.facts.clusters if isinstance(review.facts, Users) else ()


# ----------------------------------------------------------------------------------------- templates


def _template(field: str, path: str, *, optional: bool = False) -> tuple[Rule, ...]:
    """Return the rows CC-2 to CC-5. Paths have the former names of fields."""

    def present(review: Review, value: Any) -> bool:
        del review
        return is_filled(value) or not optional

    def guard(check: Any) -> Guard:
        return lambda review, value: present(review, value) and bool(check(value))

    return (
        Rule("CC-2", REQUIRED, field, guard(lambda v: not at(v, "name")), "template name must be defined", path=f"{path}.ref.name"),
        Rule("CC-3", INVALID, field, lambda r, v: _wrong_kind(v) if present(r, v) else False, 'template kind must be of form "<name>Template"',
             path=f"{path}.ref.kind"),
        Rule("CC-4", INVALID, field, lambda r, v: _wrong_version(v) if present(r, v) else False,
             "template apiVersion must be a valid Kubernetes apiVersion: unexpected GroupVersion string: {version}", path=f"{path}.ref.apiVersion"),
        Rule("CC-5", REQUIRED, field, guard(lambda v: not at(v, "apiVersion")), "template apiVersion must be defined", path=f"{path}.ref.apiVersion"),
    )  # fmt: skip


def _wrong_kind(reference: Any) -> Iterator[Fault]:
    kind = at(reference, "kind") or ""
    if kind == "Template" or not kind.endswith("Template"):
        yield Fault(kind)


def _wrong_version(reference: Any) -> Iterator[Fault]:
    version = at(reference, "apiVersion") or ""
    if version.count("/") > 1:
        yield Fault(version, version=version)


def _templates() -> Iterator[Rule]:
    yield from _template("spec.infrastructure.templateRef", "spec.infrastructure")
    yield from _template("spec.controlPlane.templateRef", "spec.controlPlane")
    yield from _template("spec.controlPlane.machineInfrastructure.templateRef", "spec.controlPlane.machineInfrastructure", optional=True)
    for kind in WORKERS:
        for part in ("bootstrap", "infrastructure"):
            yield from _template(f"spec.workers.{kind}[].{part}.templateRef", f"spec.workers.{kind}[{{}}].template.{part}")


# ----------------------------------------------------------------------------------------- guards


def _repeated(review: Review, value: Any) -> Iterator[Fault]:
    del review
    seen: set[str] = set()
    for n, entry in enumerate(value or ()):
        name = entry.get("class") or ""
        if name in seen:
            yield Fault(name, (n,), name=quote(name))
        seen.add(name)


def _check_without_machines(review: Review, value: Any) -> bool:
    del review
    return is_health_check(at(value, "healthCheck")) and not is_filled(at(value, "machineInfrastructure", "templateRef"))


def _variables(review: Review) -> Iterable[FieldError]:
    return validate_definitions(items(review.new, "spec", "variables"), "spec.variables")


def _versions(value: Any) -> Iterator[tuple[int, str, Version | None, Version | None]]:
    """Yield each version with its place and the last valid one before it; None: it is invalid."""
    previous = None
    for n, text in enumerate(value or ()):
        try:
            version = parse_version(text or "")
        except ValueError:
            yield n, text, None, previous
            continue
        yield n, text, version, previous
        previous = version


def _unread_versions(review: Review, value: Any) -> Iterator[Fault]:
    del review
    for n, text, version, _ in _versions(value):
        if version is None:
            yield Fault(text, (n,))


def _not_rising(review: Review, value: Any) -> Iterator[Fault]:
    del review
    for n, text, version, previous in _versions(value):
        # builds that are named and not numbered have no order
        if version is not None and previous is not None and compare(version, previous, build=True) in (-1, 0):
            yield Fault(text, (n,), previous=previous)


def _skipping(review: Review, value: Any) -> Iterator[Fault]:
    del review
    for n, text, version, previous in _versions(value):
        if version is not None and previous is not None and version.minor not in (previous.minor, previous.minor + 1):
            yield Fault(text, (n,), minor=previous.minor, next=previous.minor + 1, version=version)


# ----------------------------------------------------------------------------------------- guards of what is used


def _unlisted(review: Review, _: Any) -> Iterator[Fault]:
    if review.facts.error:
        yield Fault(name=review.name, error=review.facts.error)


def _used_versions(review: Review, value: Any) -> Iterator[Fault]:
    for cluster in _clusters(review) if value else ():
        version = at(cluster, "spec", "topology", "version") or ""
        if version not in value:
            yield Fault(version=version, cluster=quote(_name(cluster)))


def _used_pins(review: Review, value: Any) -> Iterator[Fault]:
    for cluster in _clusters(review) if value and review.enabled(GATE) else ():
        for kind in KINDS:
            for name, version in pins(cluster, kind).items():
                if version not in value:
                    yield Fault(version=version, who=f"{kind}[{name}]", cluster=quote(_name(cluster)))


def _used_classes(kind: str) -> Guard:
    def guard(review: Review, _: Any) -> Iterator[Fault]:
        kept = {entry.get("class") or "" for entry in class_workers(review.new, kind)}
        removed = {entry.get("class") or "" for entry in class_workers(review.old, kind)} - kept
        for cluster in _clusters(review):
            for entry in topology_workers(cluster, kind):
                if (entry.get("class") or "") in removed:
                    yield Fault(name=quote(entry.get("class") or ""), cluster=quote(_name(cluster)))

    return guard


def _needs_check(check: Any) -> bool:
    """Return whether a health check of a topology needs that of the class."""
    return at(check, "enabled") is True and not is_health_check(check)


def _used_check(review: Review, value: Any) -> Iterator[Fault]:
    if not is_health_check(at(review.old, "spec", "controlPlane", "healthCheck")) or is_health_check(value):
        return
    users = [_name(c) for c in _clusters(review) if _needs_check(at(c, "spec", "topology", "controlPlane", "healthCheck"))]
    if users:
        yield Fault(clusters=quote(",".join(users)))


def _used_worker_check(review: Review, value: Any) -> Iterator[Fault]:
    name = at(value, "class") or ""
    before = worker_class(review.old, "machineDeployments", name)
    if before is None or not is_health_check(before.get("healthCheck")) or is_health_check(at(value, "healthCheck")):
        return
    users = [
        _name(cluster)
        for cluster in _clusters(review)
        if any(
            (entry.get("class") or "") == name and _needs_check(entry.get("healthCheck"))
            for entry in topology_workers(cluster, "machineDeployments")
        )
    ]
    if users:
        yield Fault(clusters=quote(",".join(users)))


def _self_scaled(review: Review, _: Any) -> Iterator[Fault]:
    for cluster in _clusters(review):
        yield from scaled_by_itself(cluster, _name(cluster), _namespace(cluster))


def _class_scaled(review: Review, _: Any) -> Iterator[Fault]:
    for cluster in _clusters(review):
        yield from scaled_by_class(cluster, review.new, _name(cluster), _namespace(cluster))


def _used(review: Review, _: Any) -> Iterator[Fault]:
    names = [f"{_namespace(c)}/{_name(c)}" for c in _clusters(review)]
    if names:
        more = f", ... ({len(names) - _NAMED} more)" if len(names) > _NAMED else ""
        yield Fault(clusters=", ".join(names[:_NAMED]) + more)


# ----------------------------------------------------------------------------------------- the rows

_NAMING: Final = {"cluster": {"name": "cluster"}, "random": SAMPLE_SUFFIX}
_REPLICAS: Final = "spec.topology.workers.machineDeployments[{}].replicas"
_CHECK_USED: Final = "healthCheck cannot be deleted because it is used by Cluster(s) {clusters}"
_VERSIONS: Final = "spec.kubernetesVersion[{}]"
"""The path in errors, which lacks its last letter."""

CLUSTER_CLASS: Final = Hook(
    model=ClusterClass,
    on=WRITE | DELETE,
    costly=lambda review: bool(review.new),
    gate=gated("CC-1", "ClusterTopology"),
    observe=_users,
    rules=(
        *_templates(),
        Rule("CC-6", INVALID, _MDS, _repeated, "MachineDeployment class must be unique. MachineDeployment with class {name} is defined more than once",
             path=f"{_MDS}[{{}}].class"),
        Rule("CC-7", INVALID, _MPS, _repeated, "MachinePool class must be unique. MachinePool with class {name} is defined more than once",
             path=f"{_MPS}[{{}}].class"),
        *rollout("CC-8", f"{_MDS}[class].rollout.strategy"),
        *health_check("CC-9", "spec.controlPlane.healthCheck"),
        Rule("CC-10", FORBIDDEN, "spec.controlPlane", _check_without_machines, "can be only set if spec.controlPlane.machineInfrastructure is set",
             path="spec.controlPlane.healthCheck"),
        *health_check("CC-11", f"{_MDS}[class].healthCheck", max_in_flight=True),
        *class_naming("CC-12", "spec.infrastructure.naming.template", "InfraCluster", _NAMING),
        *class_naming("CC-13", "spec.controlPlane.naming.template", "ControlPlane", _NAMING),
        *class_naming("CC-14", f"{_MDS}[class].naming.template", "MachineDeployment", _NAMING | {"machineDeployment": {"topologyName": "mdtopology"}}),
        *class_naming("CC-15", f"{_MPS}[class].naming.template", "MachinePool", _NAMING | {"machinePool": {"topologyName": "mptopology"}}),
        *taints("CC-16", "spec.controlPlane.taints"),
        *taints("CC-16", f"{_MDS}[class].taints"),
        *taints("CC-16", f"{_MPS}[class].taints"),
        Delegated(f"CC-17 {VARIABLE_RULES}", "spec.variables", _variables),
        *patches("CC-18"),
        *template_metadata("CC-19", "spec.controlPlane.metadata"),
        *template_metadata("CC-19", f"{_MDS}[class].metadata", path=f"{_MDS}[{{}}].template.metadata"),
        *template_metadata("CC-19", f"{_MPS}[class].metadata", path=f"{_MPS}[{{}}].template.metadata"),
        Rule("CC-20", INVALID, "spec.kubernetesVersions", _unread_versions, "version must be a valid semantic version", path=_VERSIONS),
        Rule("CC-21", INVALID, "spec.kubernetesVersions", _not_rising, "version must be greater than v{previous}", path=_VERSIONS),
        Rule("CC-22", INVALID, "spec.kubernetesVersions", _skipping, "expecting a version with minor {minor} or {next}, found version {version}",
             path=_VERSIONS),
        Delegated("CC-30 CC-31 CC-32 CC-33 CC-34", "spec", lambda r: incompatibilities(r.old, r.new), on=UPDATE),
        Rule("CC-23", ErrorType.INTERNAL, "spec", _unlisted, "Clusters using ClusterClass {name} can not be retrieved: {error}", on=UPDATE, path="", stop=True),
        Rule("CC-24", FORBIDDEN, "spec.kubernetesVersions", _used_versions, "Kubernetes Version {version} is used by Cluster {cluster} but not set in ClusterClass",
             on=UPDATE),
        Rule("CC-36", FORBIDDEN, "spec.kubernetesVersions", _used_pins,
             "Kubernetes Version {version} is used by {who} of Cluster {cluster} but not set in ClusterClass", on=UPDATE),
        Rule("CC-25", FORBIDDEN, _MDS, _used_classes("machineDeployments"), "MachineDeploymentClass {name} cannot be deleted because it is used by Cluster {cluster}",
             on=UPDATE),
        Rule("CC-26", FORBIDDEN, _MPS, _used_classes("machinePools"), "MachinePoolClass {name} cannot be deleted because it is used by Cluster {cluster}",
             on=UPDATE),
        Rule("CC-27", FORBIDDEN, "spec.controlPlane.healthCheck", _used_check, _CHECK_USED, on=UPDATE),
        Rule("CC-28", FORBIDDEN, f"{_MDS}[class]", _used_worker_check, _CHECK_USED, on=UPDATE, path=f"{_MDS}[{{}}].healthCheck"),
        Rule("CC-29 CL-28", INVALID, "spec", _self_scaled, SELF_SCALED, on=UPDATE, path=_REPLICAS),
        Rule("CC-29 CL-29", INVALID, "spec", _class_scaled, CLASS_SCALED, on=UPDATE, path=_REPLICAS),
        Rule("CC-35", FORBIDDEN, "spec", _used, "ClusterClass cannot be deleted because it is used by Cluster(s): {clusters}", on=DELETE),
    ),
)  # fmt: skip
