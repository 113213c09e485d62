"""Everything that a pass over a machine has read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clusterwright import conditions
from clusterwright.api.infrastructure import InfraMachine, InMemoryPart
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL
from clusterwright.controllers.inmemory.facts import ClusterFacts, MachineFacts, PoolFacts
from clusterwright.controllers.inmemory.poolplan import VERSION_ANNOTATION
from clusterwright.inmemory import faults, stages
from clusterwright.inmemory.cluster import SimulatedCluster


@dataclass(frozen=True, slots=True)
class Scene:
    """A machine, its owners, and its cluster. `obj` is the infrastructure machine as it was read."""

    obj: InfraMachine
    machine: MachineFacts
    cluster: ClusterFacts
    simulated: SimulatedCluster
    now: datetime
    moments: Mapping[str, datetime] = field(default_factory=dict)
    """When stages were completed, by condition, as seen by this process; conditions only have full seconds."""
    pool: PoolFacts | None = None
    """The pool of the Machine; it has the version and bootstrap data that such a Machine lacks."""

    @property
    def name(self) -> str:
        """The name of the machine and of its Node."""
        return self.obj.metadata.name

    @property
    def is_control_plane(self) -> bool:
        """Whether the machine runs the control plane."""
        return CONTROL_PLANE_LABEL in self.machine.metadata.labels

    @property
    def version(self) -> str:
        """The Kubernetes version of the machine."""
        if self.pool is not None:
            return self.obj.metadata.annotations.get(VERSION_ANNOTATION, "") or self.pool.spec.template.spec.version
        return self.machine.spec.version

    @property
    def data_secret_name(self) -> str | None:
        """The Secret with the bootstrap data; None: it does not exist yet."""
        if self.pool is not None:
            return self.pool.spec.template.spec.bootstrap.data_secret_name
        return self.machine.spec.bootstrap.data_secret_name

    @property
    def config_kind(self) -> str:
        """The kind of the bootstrap config; empty if a user wrote the bootstrap data."""
        bootstrap = self.pool.spec.template.spec.bootstrap if self.pool is not None else self.machine.spec.bootstrap
        return bootstrap.config_ref.kind if bootstrap.config_ref is not None else ""

    @property
    def faults(self) -> frozenset[str]:
        """The requested faults; raises UnknownFault."""
        return faults.requested(self.obj.metadata.annotations, faults.MACHINE_FAULTS)

    def had(self, type_: str) -> bool:
        """Return whether a stage had been completed before this pass."""
        return conditions.is_true(self.obj.status.conditions, type_)

    def since(self, type_: str) -> datetime:
        """Return when a stage was completed; now, if in this pass."""
        condition = conditions.get(self.obj.status.conditions, type_)
        if condition is None or condition.status != "True" or condition.last_transition_time is None:
            return self.now
        return self.moments.get(type_, condition.last_transition_time)

    def delay(self, part: str) -> timedelta:
        """Return how long a stage takes; raises BadDuration, UnknownFault."""
        chosen: InMemoryPart | None = getattr(self.obj.in_memory, part, None)
        if chosen is None or chosen.provisioning is None:
            return timedelta()
        settings, seed = chosen.provisioning, f"{self.obj.metadata.uid}/{part}"
        field = f"spec.backend.inMemory.{_FIELDS.get(part, part)}.provisioning"
        slowness = faults.slowness(self.obj.metadata.annotations)
        return stages.delay(settings.startup_duration, settings.startup_jitter, field=field, seed=seed, slowness=slowness)


_FIELDS = {"api_server": "apiServer"}
