"""Admission of the Dev infrastructure: DevCluster, DevMachine and their templates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.mutability import differences
from clusterwright.admission.rule import CREATE, UPDATE, Default, Fault, Review, Rule, at, items
from clusterwright.admission.sets import FORBIDDEN, INVALID, below, gated, template_metadata
from clusterwright.api.codec import convert, to_json
from clusterwright.api.infrastructure import DevCluster, DevClusterTemplate, DevMachine, DevMachineTemplate
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import TOPOLOGY_DRY_RUN_ANNOTATION
from clusterwright.golang import times

SPEC: Final = ("spec",)
TEMPLATE: Final = ("spec", "template", "spec")


def _backend(where: tuple[str, ...]) -> Default:
    def fill(obj: Json, review: Review) -> None:
        del review
        _fill_backend(obj, where)

    return Default("DEV-D1", ".".join((*where, "backend", "docker")), fill)


def _fill_backend(obj: Json, where: tuple[str, ...]) -> bool:
    backend = at(obj, *where, "backend") or {}
    if backend.get("inMemory") is None and backend.get("docker") is None:
        below(obj, *where, "backend", "docker")
        return True
    return False


def _cluster(where: tuple[str, ...]) -> Default:
    """Return one row, because the load balancer is only written with other fields: upstream's objects do not change for it alone."""

    def fill(obj: Json, review: Review) -> None:
        del review
        filled = _fill_backend(obj, where)
        docker = at(obj, *where, "backend", "docker")
        if docker is None:
            return
        if not at(obj, *where, "controlPlaneEndpoint", "port"):
            below(obj, *where, "controlPlaneEndpoint")["port"] = 6443
            filled = True
        for domain in items(docker, "failureDomains"):
            if domain.get("controlPlane") is None:
                domain["controlPlane"] = False
                filled = True
        if filled:
            below(docker, "loadBalancer")

    return Default("DEV-D1 DEV-D2 DEV-D3", ".".join((*where, "backend", "docker")), fill)


def _sorted_domains(where: tuple[str, ...], **options: Any) -> Rule:
    return Rule(
        "DEV-1", INVALID, ".".join((*where, "backend", "docker", "failureDomains")), _unsorted, "failure domains must be sorted by name",
        path="spec.backend.docker.failureDomains", **options,
    )  # fmt: skip


def _unsorted(review: Review, value: Any) -> bool:
    del review
    names = [domain.get("name") or "" for domain in value or ()]
    return names != sorted(names)


def _immutable(kind: type[Any], defaults: tuple[Default, ...], *, but_for_dry_runs: bool = False) -> Rule:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        if but_for_dry_runs and review.dry_run and TOPOLOGY_DRY_RUN_ANNOTATION in review.annotations:
            return
        before, after = (_comparable(kind, defaults, o, review) for o in (review.old or {}, review.new))
        if before != after:
            yield Fault(value, paths=", ".join(differences(before, after)))

    text = f"{kind.__name__} spec.template.spec field is immutable. Please create a new resource instead. Diff: {{paths}}"
    return Rule("DEV-4", INVALID, "spec.template.spec", guard, text, on=UPDATE)


def _comparable(kind: type[Any], defaults: tuple[Default, ...], obj: Json, review: Review) -> Json:
    filled = deepcopy(obj)
    for row in defaults:
        row.fill(filled, review)
    return at(to_json(convert(filled, kind)), *TEMPLATE) or {}


def _changed_image(review: Review, value: Any) -> bool:
    before = at(review.old, "spec", "backend", "docker")
    return before is not None and value is not None and (value.get("customImage") or "") != (before.get("customImage") or "")


def _not_a_duration(review: Review, value: Any) -> bool:
    return bool(value) and times.parse_duration(value) is None


def _not_a_number(review: Review, value: Any) -> bool:
    try:
        return bool(value) and not math.isfinite(float(value))
    except ValueError:
        return True


def _stages(where: tuple[str, ...]) -> Iterator[Rule]:
    """Yield the rules for the start-up times of a simulated machine. A machine could not start with others, and would only fail."""
    for part in ("vm", "node", "etcd", "apiServer"):
        field = ".".join((*where, "backend", "inMemory", part, "provisioning"))
        yield Rule("DEV-6", INVALID, f"{field}.startupDuration", _not_a_duration, "must be a duration such as 10s or 1m30s", on=CREATE)
        yield Rule("DEV-7", INVALID, f"{field}.startupJitter", _not_a_number, "must be a number such as 0.2", on=CREATE)


DEV_CLUSTER: Final = Hook(model=DevCluster, defaults=(_cluster(SPEC),), rules=(_sorted_domains(SPEC),))

DEV_CLUSTER_TEMPLATE: Final = Hook(
    model=DevClusterTemplate,
    gate=gated("DEV-2", "ClusterTopology", on=CREATE),
    defaults=(_cluster(TEMPLATE),),
    rules=(
        _sorted_domains(TEMPLATE, on=CREATE),
        *template_metadata("DEV-3", "spec.template.metadata", on=CREATE),
        _immutable(DevClusterTemplate, (_cluster(TEMPLATE),)),
    ),
)

DEV_MACHINE: Final = Hook(
    model=DevMachine,
    defaults=(_backend(SPEC),),
    rules=(
        Rule("DEV-5", FORBIDDEN, "spec.backend.docker", _changed_image, "cannot be modified", on=UPDATE, path="spec.backend.docker.customImage"),
        *_stages(SPEC),
    ),
)  # fmt: skip

DEV_MACHINE_TEMPLATE: Final = Hook(
    model=DevMachineTemplate,
    defaults=(_backend(TEMPLATE),),
    rules=(
        *template_metadata("DEV-3", "spec.template.metadata"),
        _immutable(DevMachineTemplate, (_backend(TEMPLATE),), but_for_dry_runs=True),
        *_stages(TEMPLATE),
    ),
)
