"""The snapshot of a MachineHealthCheck and the Machines that it selects, and the outcome of a pass.

`TargetSnapshot` is one Machine with the check; the tables of a Machine's conditions decide on it, those of the check's own
conditions on `HealthCheckDone`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

from clusterwright.api.core import MachineHealthCheck
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.machinehealthcheck.evaluation import ClusterFacts, Evaluation, MachineFacts, Target
from clusterwright.controllers.machinehealthcheck.limits import Limit


class Request(Enum):
    """The state of the request for external remediation."""

    UNSOUGHT = auto()
    EXISTS = auto()
    TEMPLATE_MISSING = auto()
    REFUSED = auto()
    CREATED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSnapshot:
    """A selected Machine, the findings about it, and whether it may be remediated in this pass."""

    now: datetime
    check: MachineHealthCheck
    target: Target
    evaluation: Evaluation
    allowed: bool = False
    request: Request = Request.UNSOUGHT

    @property
    def machine(self) -> MachineFacts:
        """The Machine as read."""
        return self.target.machine


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckSnapshot(Snapshot[MachineHealthCheck]):
    """A check, its Cluster, and the Machines that it selects."""

    cluster: ClusterFacts
    found: tuple[Target, ...] = ()
    unread: Exception | None = None
    """Why the Machines or their Nodes could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckDone(HealthCheckSnapshot):
    """The check at the end of the pass, and its verdict on every Machine."""

    targets: tuple[TargetSnapshot, ...] = ()
    is_judged: bool = False
    limit: Limit = field(default_factory=Limit)
    limit_error: str = ""
    external_error: str = ""

    @property
    def expected(self) -> int:
        """The number of selected Machines."""
        return len(self.targets)

    @property
    def healthy(self) -> int:
        """The number of healthy Machines."""
        return sum(t.evaluation.is_healthy for t in self.targets)

    @property
    def unhealthy(self) -> int:
        """The number of Machines judged unhealthy; undecided ones also count against the limit."""
        return sum(t.evaluation.is_unhealthy for t in self.targets)

    @property
    def is_remediation_allowed(self) -> bool:
        """Whether the limit is valid and allows remediation."""
        return not self.limit_error and self.limit.allows(self.expected - self.healthy)
