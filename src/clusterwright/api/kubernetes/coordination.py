"""coordination.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import Doc, Format, Int32
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS, Object


class LeaseSpec(Builtin):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: Annotated[str | None, Format("date-time")] = None
    renew_time: Annotated[str | None, Format("date-time")] = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object):
    """coordination.k8s.io/v1 Lease."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"
    spec: Annotated[LeaseSpec, ALWAYS, Doc("desired state")] = LeaseSpec()
