"""The outcome of a pass over a ClusterClass. It reads only the class before it acts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterwright.api.core import ClusterClass
from clusterwright.api.core.shared import ClusterClassTemplateReference
from clusterwright.controllers.kit.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Outdated:
    """A reference to a template whose apiVersion is not the newest of its contract."""

    kind: str
    name: str
    current: str
    latest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterClassDone(Snapshot[ClusterClass]):
    """The class at the end of the pass, with the outcome of checking references and discovering variables."""

    reference_errors: tuple[str, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    variables_error: str = ""


def references(cluster_class: ClusterClass) -> Iterator[ClusterClassTemplateReference]:
    """Yield the templates that a class names, each once, in reading order."""
    spec = cluster_class.spec
    machine = spec.control_plane.machine_infrastructure
    found: list[ClusterClassTemplateReference | None] = [
        spec.infrastructure.template_ref,
        spec.control_plane.template_ref,
        machine.template_ref if machine is not None else None,
    ]
    if spec.workers is not None:
        for deployment in spec.workers.machine_deployments:
            found += [deployment.bootstrap.template_ref, deployment.infrastructure.template_ref]
        for pool in spec.workers.machine_pools:
            found += [pool.bootstrap.template_ref, pool.infrastructure.template_ref]
    seen = set()
    for reference in found:
        if reference is None or not (reference.api_version or reference.kind or reference.name):
            continue
        identity = (reference.api_version, reference.kind, reference.name)
        if identity not in seen:
            seen.add(identity)
            yield reference
