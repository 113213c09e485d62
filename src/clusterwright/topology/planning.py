"""Upgrade plans: the versions that control plane and workers go through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterwright.api.meta import Json
from clusterwright.golang.quoting import quote
from clusterwright.topology.extensions import Asking, CallHandler, ExtensionError
from clusterwright.topology.pinning import LARGEST_SKEW
from clusterwright.topology.versions import UNKNOWN, Version, compare, equal, parse


class PlanError(Exception):
    """There is no valid plan. The text says why."""


def _parsed(text: str, context: str) -> Version:
    try:
        return parse(text)
    except ValueError as error:
        raise PlanError(f"{context}: {error}") from None


def check_target(version: str) -> Version:
    """Return the target version of a topology. Raises PlanError."""
    return _parsed(version, f"failed to parse Cluster version {version}")


def lowest(versions: Iterable[tuple[str, str]], control_plane: str) -> str:
    """Return the lowest version of workers, given with their names, as `v1.2.3`; empty if there is none.

    Of two without an order, the one that differs from the control plane's is lower.
    """
    own = _parsed(control_plane, f"failed to parse ControlPlane version {control_plane}")
    found: Version | None = None
    for text, owner in versions:
        version = _parsed(text, f"failed to parse version {text} of {owner}")
        if found is None:
            found = version
            continue
        order = compare(version, found)
        if order == -1 or (order == UNKNOWN and not equal(version, own)):
            found = version
    return f"v{found}" if found is not None else ""


def upgrade_plan(
    cluster: Json, cluster_class: Json, control_plane: str, workers: str, *, runtime_sdk: bool
) -> Asking[tuple[list[str], list[str]]]:
    """Return the steps of the control plane and of the workers, whose lowest version is `workers` (empty: there are none).

    Raises PlanError.
    """
    target = cluster["spec"]["topology"]["version"]
    wanted = check_target(target)
    own = _parsed(control_plane, f"failed to parse ControlPlane version {control_plane}")
    if equal(own, wanted) and (not workers or equal(parse(workers), wanted)):
        return [], []
    spec = cluster_class.get("spec") or {}
    extension = ((spec.get("upgrade") or {}).get("external") or {}).get("generateUpgradePlanExtension")
    if extension:
        steps, worker_steps = yield from _from_extension(cluster, extension, control_plane, workers, target, runtime_sdk=runtime_sdk)
    elif spec.get("kubernetesVersions"):
        steps, worker_steps = _from_list(spec["kubernetesVersions"], own, wanted), []
    else:
        steps, worker_steps = _next_minor(control_plane, target, own, wanted), []
    return steps, checked(target, control_plane, workers, steps, worker_steps)


def _from_extension(
    cluster: Json, extension: str, control_plane: str, workers: str, target: str, *, runtime_sdk: bool
) -> Asking[tuple[list[str], list[str]]]:
    if not runtime_sdk:
        raise PlanError(f"can not use GenerateUpgradePlan extension {quote(extension)} if RuntimeSDK feature flag is disabled")
    request: Json = {"cluster": cluster, "fromControlPlaneKubernetesVersion": control_plane, "toKubernetesVersion": target}
    if workers:
        request["fromWorkersKubernetesVersion"] = workers
    try:
        response = yield CallHandler("GenerateUpgradePlan", extension, cluster, request)
    except ExtensionError as error:
        raise PlanError(f"failed to get upgrade plan from extension: {error}") from error
    return _steps(response.get("controlPlaneUpgrades")), _steps(response.get("workersUpgrades"))


def _steps(steps: Sequence[Json] | None) -> list[str]:
    return [str(step.get("version") or "") for step in steps or ()]


def _next_minor(control_plane: str, target: str, own: Version, wanted: Version) -> list[str]:
    if equal(own, wanted):
        return []
    if wanted.minor > own.minor + 1:
        raise PlanError(f"cannot compute an upgrade plan from {control_plane} to {target}")
    return [target]


def _from_list(versions: Sequence[str], own: Version, wanted: Version) -> list[str]:
    """Return, from the versions of a class in order, the last of each minor; in the control plane's own minor only if it stays there."""
    if equal(own, wanted):
        return []
    parsed = [(text, _parsed(text, f"failed to parse version {text}")) for text in versions]
    place = next((i for i, (_, v) in enumerate(parsed) if equal(v, own)), -1)
    steps: list[tuple[str, Version]] = []
    for i, (text, version) in enumerate(parsed):
        order = compare(version, own)
        if order < 1 or (order == UNKNOWN and i < place):
            continue
        if compare(version, wanted) == 1:
            break
        steps.append((text, version))
        if equal(version, wanted):
            break
    last_of_minor = {version.minor: text for text, version in steps if version.minor != own.minor or wanted.minor == own.minor}
    return list(last_of_minor.values())


def checked(target: str, control_plane: str, workers: str, steps: Sequence[str], worker_steps: Sequence[str]) -> list[str]:
    """Return the steps of the workers, computed if not given; raises PlanError if a plan is invalid."""
    wanted = check_target(target)
    own = _parsed(control_plane, f"failed to parse ControlPlane version {control_plane}")
    minors = {own.minor: control_plane}
    order = {control_plane: -1}
    if compare(own, wanted) != 0:
        _check_control_plane(steps, own, wanted, target, minors, order)
    elif steps:
        raise PlanError("invalid ControlPlane upgrade plan: control plane is already at the desired version")
    lowest_worker = _parsed(workers, f"failed to parse min workers version {workers}") if workers else None
    if lowest_worker is None or compare(lowest_worker, wanted) == 0:
        if worker_steps:
            raise PlanError("invalid worker upgrade plan; there are no workers or workers already at the desired version")
        return []
    unknown = [s for s in dict.fromkeys(worker_steps) if s not in steps and s != control_plane] if steps else []
    if unknown:
        text = f"versions {','.join(unknown)} doesn't match any versions in the control plane upgrade plan nor the control plane version"
        raise PlanError(f"invalid workers upgrade plan: {text}")
    made = list(worker_steps) or _default_worker_steps(lowest_worker, wanted, target, minors)
    _check_workers(made, lowest_worker, wanted, target, order)
    return made


def _check_control_plane(
    steps: Sequence[str], own: Version, wanted: Version, target: str, minors: dict[int, str], order: dict[str, int]
) -> None:
    context, previous = "invalid ControlPlane upgrade plan:", own
    for i, text in enumerate(steps):
        order[text] = i
        version = _parsed(text, f"{context} item {i}; failed to parse version {text}")
        if compare(version, previous) <= 0:
            raise PlanError(f"{context} item {i}; version {text} must be greater than v{previous}")
        if version.minor not in (previous.minor, previous.minor + 1):
            expected = f"{previous.minor} or {previous.minor + 1}"
            raise PlanError(f"{context} item {i}; expecting a version with minor {expected}, found version {text}")
        minors[version.minor] = text
        previous = version
    if compare(previous, wanted) != 0:
        raise PlanError(f"{context} control plane upgrade plan must end with version {target}, ends with v{previous} instead")


def _default_worker_steps(lowest_worker: Version, wanted: Version, target: str, minors: dict[int, str]) -> list[str]:
    made = []
    for minor in range(lowest_worker.minor + LARGEST_SKEW, wanted.minor, LARGEST_SKEW):
        if minor not in minors:
            raise PlanError(f"invalid upgrade plan; unable to identify version for minor {minor}")
        made.append(minors[minor])
    return made if made and made[-1] == target else [*made, target]


def _check_workers(steps: Sequence[str], lowest_worker: Version, wanted: Version, target: str, order: dict[str, int]) -> None:
    previous = lowest_worker
    for i, text in enumerate(steps):
        context = f"invalid workers upgrade plan, item {i};"
        version = _parsed(text, f"{context} failed to parse version {text}")
        compared = compare(version, previous)
        if compared <= 0:
            raise PlanError(f"{context} version {text} must be greater than v{previous}")
        if compared == UNKNOWN:
            if text not in order:
                raise PlanError(f"{context} failer to determine version {text} order")
            if f"v{previous}" not in order:
                raise PlanError(f"failer to determine version v{previous} order")
            if order[text] < order[f"v{previous}"]:
                raise PlanError(f"{context} version {text} must be before v{previous}")
        if version.minor - previous.minor > LARGEST_SKEW:
            way = f"from minor {previous.minor} (v{previous}) to minor {version.minor} ({text})"
            rules = "an intermediate step is required to comply with Kubernetes version skew rules"
            raise PlanError(f"{context} workers cannot go {way}, {rules}")
        previous = version
    if compare(previous, wanted) != 0:
        raise PlanError(f"invalid workers upgrade plan; workers upgrade plan must end with version {target}, ends with v{previous} instead")
