"""The desired state of a topology: a pure function of the class, the current state, and the answers of extensions.

It calls and writes nothing itself; see `hooks.Computing`. So it also computes changes as a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from clusterwright.api.copying import replace
from clusterwright.api.jsonvalues import copied
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import TOPOLOGY_DEPLOYMENT_NAME_LABEL, TOPOLOGY_POOL_NAME_LABEL
from clusterwright.golang.quoting import quote
from clusterwright.topology import hooks, names, objects
from clusterwright.topology.extensions import ExtensionError
from clusterwright.topology.hooks import Computing
from clusterwright.topology.model import (
    Blueprint,
    Current,
    CurrentWorker,
    Desired,
    DesiredWorker,
    Progress,
    WorkersProgress,
    WorkerTemplates,
)
from clusterwright.topology.patches import PatchError, apply_patches
from clusterwright.topology.paths import at
from clusterwright.topology.pinning import pins
from clusterwright.topology.planning import PlanError, check_target, lowest, upgrade_plan
from clusterwright.topology.upgrading import UpgradeError, concurrency, control_plane_version, worker_version

T = TypeVar("T")


class DesiredStateError(Exception):
    """The desired state cannot be computed. `patch` names the patch at fault, if any; `progress` is the computed part."""

    def __init__(self, text: str, *, patch: str = "") -> None:
        super().__init__(text)
        self.patch = patch
        self.progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """The desired state, and the progress of its upgrade."""

    desired: Desired
    progress: Progress


def _wrapped(context: str, computing: Computing[T]) -> Computing[T]:
    """Yield a computation; its errors get a context."""
    try:
        return (yield from computing)
    except (PlanError, UpgradeError, ExtensionError, names.BadName, _Problem) as error:
        raise DesiredStateError(f"{context}: {error}" if context else str(error)) from error


class _Problem(Exception):
    """An object cannot be computed."""


def desired_state(blueprint: Blueprint, current: Current, *, runtime_sdk: bool, pinning: bool = False) -> Computing[Computed]:
    """Yield the desired state of every object of the topology; without `pinning`, pinned versions are ignored. Raises DesiredStateError."""
    current = replace(current, cluster=copied(current.cluster))
    progress = Progress(pending_hooks=hooks.pending_hooks(current.cluster))
    if pinning:
        progress.machine_deployments.pinned = pins(current.cluster, "machineDeployments")
        progress.machine_pools.pinned = pins(current.cluster, "machinePools")
    for workers, present, upgrading in (
        (progress.machine_deployments, current.machine_deployments, current.upgrading_deployments),
        (progress.machine_pools, current.machine_pools, current.upgrading_pools),
    ):
        workers.upgrading = {worker.name for worker in _followers(present, workers)} & upgrading
    try:
        return Computed((yield from _desired(blueprint, current, progress, runtime_sdk=runtime_sdk)), progress)
    except DesiredStateError as error:
        error.progress = progress
        raise


def _desired(blueprint: Blueprint, current: Current, progress: Progress, *, runtime_sdk: bool) -> Computing[Desired]:
    cluster = current.cluster
    try:
        infrastructure = _infrastructure(blueprint, current)
    except _Problem as error:
        raise DesiredStateError(f"failed to compute InfrastructureCluster: {error}") from error
    machine = _control_plane_machine(blueprint, current)
    yield from _wrapped("", _plan(blueprint, current, progress, runtime_sdk=runtime_sdk))
    progress.is_planned = True
    if current.upgrading_problem:
        raise DesiredStateError(current.upgrading_problem)
    plane = yield from _wrapped("failed to compute ControlPlane", _control_plane(blueprint, current, machine, progress, runtime_sdk))
    desired = Desired(cluster, infrastructure, plane, machine)
    desired.control_plane_health_check = _control_plane_health_check(blueprint, cluster, plane)
    desired.cluster = objects.cluster_object(cluster, infrastructure, plane, _step(progress, plane, runtime_sdk=runtime_sdk))
    _workers(blueprint, current, progress, desired)
    try:
        yield from apply_patches(cluster, blueprint, desired, runtime_sdk=runtime_sdk)
    except PatchError as error:
        raise DesiredStateError(f"failed to apply patches: {error}", patch=error.patch) from error
    return desired


def _uid(cluster: Json) -> str:
    uid: str = cluster["metadata"].get("uid", "")
    return uid


def _naming(blueprint: Blueprint, *path: str) -> str:
    template: str = at(blueprint.cluster_class, "spec", *path, "naming", "template") or ""
    return template


def _infrastructure(blueprint: Blueprint, current: Current) -> Json:
    cluster, template = current.cluster, blueprint.infrastructure_cluster
    present = at(cluster, "spec", "infrastructureRef", "name")
    name = _cluster_name(present, cluster, _naming(blueprint, "infrastructure"), template, "InfrastructureCluster", "IC")
    return objects.object_from_template(template, cluster, name, owners=objects.shim_owners(cluster, current.infrastructure_cluster))


def _cluster_name(present: str | None, cluster: Json, naming: str, made_from: Json, what: str, slot: str) -> str:
    """Return the name of one of the two objects that a Cluster refers to. Raises _Problem."""
    data = {"cluster": {"name": cluster["metadata"]["name"]}}
    kind = made_from["kind"]
    try:
        return _named(present, kind.removesuffix("Template"), naming, names.CLUSTER_TEMPLATE, data, cluster, slot)
    except names.BadName as error:
        raise _Problem(f"failed to generate the {what} object from the {kind}: {error}") from None


def _named(present: str | None, what: str, template: str, default: str, data: Mapping[str, Any], cluster: Json, slot: str) -> str:
    """Return the object with the name of the current one.

    A template without a name is still an error, because a new object would have none.
    """
    if present and not template:
        return present
    try:
        made = names.templated(template or default, data, _uid(cluster), slot)
    except names.BadName as error:
        raise names.BadName(f"failed to generate name for {what}: {error}") from None
    return present or made


def _control_plane_machine(blueprint: Blueprint, current: Current) -> Json | None:
    template, cluster = blueprint.control_plane_machine, current.cluster
    if template is None:
        return None
    name = at(current.control_plane_machine, "metadata", "name") or names.prefixed(machine_prefix(cluster), _uid(cluster), "IMT")
    return objects.template_from_template(template, cluster, name)


def machine_prefix(cluster: Json) -> str:
    """Return the name prefix of the control plane's machine templates."""
    return f"{cluster['metadata']['name']}-"


def worker_prefix(cluster: Json, topology_name: str) -> str:
    """Return the name prefix of a worker's templates and objects."""
    return f"{cluster['metadata']['name']}-{topology_name}-"


def _plan(blueprint: Blueprint, current: Current, progress: Progress, *, runtime_sdk: bool) -> Computing[None]:
    if current.control_plane is None:
        return
    check_target(current.cluster["spec"]["topology"]["version"])
    own = at(current.control_plane, "spec", "version")
    if not own:
        raise PlanError("failed to get the version from control plane spec: path .spec.version: field not found")
    deployments = _followers(current.machine_deployments, progress.machine_deployments)
    pools = _followers(current.machine_pools, progress.machine_pools)
    progress.lowest_worker = lowest(_worker_versions((*deployments, *pools)), own)
    steps, worker_steps = yield from upgrade_plan(
        hooks.clean_cluster(current.cluster), blueprint.cluster_class, own, progress.lowest_worker, runtime_sdk=runtime_sdk
    )
    progress.control_plane.plan = steps
    if deployments:
        progress.machine_deployments.plan = list(worker_steps)
    if pools:
        progress.machine_pools.plan = list(worker_steps)


def _followers(present: Mapping[str, CurrentWorker], workers: WorkersProgress) -> list[CurrentWorker]:
    """Return the existing workers that are not pinned: they follow the version of the topology."""
    return [worker for name, worker in present.items() if name not in workers.pinned]


def _worker_versions(workers: Iterable[CurrentWorker]) -> Iterable[tuple[str, str]]:
    for worker in workers:
        version = at(worker.object, "spec", "template", "spec", "version")
        if version:
            yield version, f"{worker.object['kind']} {worker.name}"


def _control_plane(blueprint: Blueprint, current: Current, machine: Json | None, progress: Progress, runtime_sdk: bool) -> Computing[Json]:
    cluster, template = current.cluster, blueprint.control_plane
    present = at(cluster, "spec", "controlPlaneRef", "name")
    name = _cluster_name(present, cluster, _naming(blueprint, "controlPlane"), template, "ControlPlane", "CP")
    if blueprint.contract is None:
        raise _Problem(f"failed to get contract version for the ControlPlane object: {blueprint.contract_problem}")
    try:
        version = yield from control_plane_version(current, progress, runtime_sdk=runtime_sdk)
    except (UpgradeError, ExtensionError) as error:
        raise _Problem(f"failed to compute version of ControlPlane: {error}") from error
    return objects.control_plane(
        template,
        cluster,
        blueprint.cluster_class,
        name,
        blueprint.contract,
        machine_template=machine,
        current=current.control_plane,
        version=version,
    )


def _control_plane_health_check(blueprint: Blueprint, cluster: Json, plane: Json) -> Json | None:
    if not blueprint.has_machine_infrastructure:
        return None
    topology = at(cluster, "spec", "topology", "controlPlane", "healthCheck")
    of_class = at(blueprint.cluster_class, "spec", "controlPlane", "healthCheck")
    return objects.health_check(topology, of_class, cluster, plane["metadata"]["name"], objects.CONTROL_PLANE_SELECTION)


def _step(progress: Progress, plane: Json, *, runtime_sdk: bool) -> str:
    """Return the present version of the upgrade; empty if there is none."""
    if runtime_sdk:
        is_under_way = hooks.AFTER_CLUSTER_UPGRADE in progress.pending_hooks
    else:
        is_under_way = bool(progress.control_plane.plan or progress.worker_plan)
    version: str = plane["spec"]["version"]
    return version if is_under_way else ""


def _workers(blueprint: Blueprint, current: Current, progress: Progress, desired: Desired) -> None:
    topology = current.cluster["spec"]["topology"].get("workers") or {}
    for entry in topology.get("machineDeployments") or ():
        context = f"failed to compute MachineDeployments: failed to compute MachineDepoyment for topology {quote(entry['name'])}"
        try:
            desired.machine_deployments[entry["name"]] = _machine_deployment(entry, topology, blueprint, current, progress)
        except (UpgradeError, names.BadName, _Problem) as error:
            raise DesiredStateError(f"{context}: {error}") from error
    for entry in topology.get("machinePools") or ():
        context = f"failed to compute MachinePools: failed to compute MachinePool for topology {quote(entry['name'])}"
        try:
            desired.machine_pools[entry["name"]] = _machine_pool(entry, topology, blueprint, current, progress)
        except (UpgradeError, names.BadName, _Problem) as error:
            raise DesiredStateError(f"{context}: {error}") from error
    for kind, workers in (("MachineDeployments", desired.machine_deployments), ("MachinePools", desired.machine_pools)):
        _check_names(kind, workers)


def _check_names(kind: str, workers: Mapping[str, DesiredWorker]) -> None:
    """Refuse two workers with one name: they would be one object that alternates between both."""
    seen: dict[str, str] = {}
    for topology_name, worker in workers.items():
        name = worker.object["metadata"]["name"]
        if name in seen:
            raise DesiredStateError(f"failed to compute {kind}: name {quote(name)} is used by {kind} {seen[name]} and {topology_name}")
        seen[name] = topology_name


def _class_of(blueprint: Blueprint, kind: str, noun: str, name: str) -> Json:
    found = blueprint.worker_class(kind, name)
    if found is None:
        metadata = blueprint.cluster_class["metadata"]
        raise _Problem(f"{noun} class {name} not found in ClusterClass {metadata.get('namespace', '')}/{metadata['name']}")
    return found


def _machine_deployment(entry: Json, topology: Json, blueprint: Blueprint, current: Current, progress: Progress) -> DesiredWorker:
    cluster, name = current.cluster, entry["name"]
    of_class = _class_of(blueprint, "machineDeployments", "MachineDeployment", entry["class"])
    templates = blueprint.machine_deployments[entry["class"]]
    present = current.machine_deployments.get(name)
    labels = {TOPOLOGY_DEPLOYMENT_NAME_LABEL: name}
    prefix, uid = worker_prefix(cluster, name), _uid(cluster)

    def template(of: Json, known: Json | None, slot: str) -> Json:
        kept = at(known, "metadata", "name")
        return objects.template_from_template(of, cluster, kept or names.prefixed(prefix, uid, f"MD:{name}:{slot}"), labels)

    made = _pair(template, templates, present)
    version = _worker_version(
        entry, topology["machineDeployments"], present, progress, progress.machine_deployments, cluster, "machine deployment"
    )
    data = {"cluster": {"name": cluster["metadata"]["name"]}, "machineDeployment": {"topologyName": name}}
    own = _worker_name(present, "MachineDeployment", of_class, names.MACHINE_DEPLOYMENT_TEMPLATE, data, cluster, f"MD:{name}")
    return objects.machine_deployment(entry, of_class, cluster, own, version, made)


def _machine_pool(entry: Json, topology: Json, blueprint: Blueprint, current: Current, progress: Progress) -> DesiredWorker:
    cluster, name = current.cluster, entry["name"]
    of_class = _class_of(blueprint, "machinePools", "MachinePool", entry["class"])
    templates = blueprint.machine_pools[entry["class"]]
    present = current.machine_pools.get(name)
    prefix, uid = worker_prefix(cluster, name), _uid(cluster)

    def made_of(template: Json, known: Json | None, slot: str) -> Json:
        kept = at(known, "metadata", "name") or names.prefixed(prefix, uid, f"MP:{name}:{slot}")
        labels = {TOPOLOGY_POOL_NAME_LABEL: name}
        return objects.object_from_template(template, cluster, kept, labels=labels, owners=[objects.owner_reference(cluster)])

    made = _pair(made_of, templates, present)
    version = _worker_version(entry, topology["machinePools"], present, progress, progress.machine_pools, cluster, "machine pool")
    data = {"cluster": {"name": cluster["metadata"]["name"]}, "machinePool": {"topologyName": name}}
    own = _worker_name(present, "MachinePool", of_class, names.MACHINE_POOL_TEMPLATE, data, cluster, f"MP:{name}")
    return objects.machine_pool(entry, of_class, cluster, own, version, made)


def _pair(make: Callable[[Json, Json | None, str], Json], of: WorkerTemplates, present: CurrentWorker | None) -> tuple[Json, Json]:
    """Return bootstrap and infrastructure object of a worker, each from its template and the current object."""
    return (
        make(of.bootstrap, present.bootstrap if present else None, "bootstrap"),
        make(of.infrastructure, present.infrastructure if present else None, "infrastructure"),
    )


def _worker_version(
    entry: Json, entries: list[Json], present: CurrentWorker | None, progress: Progress, workers: WorkersProgress, cluster: Json, noun: str
) -> str:
    target = cluster["spec"]["topology"]["version"]
    return worker_version(entry, entries, present, progress, workers, target, concurrency(cluster), noun)


def _worker_name(
    present: CurrentWorker | None, kind: str, of_class: Json, default: str, data: Mapping[str, Any], cluster: Json, slot: str
) -> str:
    return _named(present.name if present else None, kind, at(of_class, "naming", "template") or "", default, data, cluster, slot)
