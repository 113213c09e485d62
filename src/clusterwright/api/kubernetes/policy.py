"""policy/v1."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

from clusterwright.api.constraints import PRESERVE, Doc, Int32, Int64, IntOrString, ListMap, Merge
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.meta import ALWAYS, Condition, LabelSelector, Object


class PodDisruptionBudgetSpec(Builtin):
    min_available: IntOrString | None = None
    selector: Annotated[LabelSelector | None, Merge(merge=False)] = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Builtin):
    observed_generation: Int64 = 0
    disrupted_pods: Mapping[str, datetime] = {}
    disruptions_allowed: Annotated[Int32, ALWAYS] = 0
    current_healthy: Annotated[Int32, ALWAYS] = 0
    desired_healthy: Annotated[Int32, ALWAYS] = 0
    expected_pods: Annotated[Int32, ALWAYS] = 0
    conditions: Annotated[tuple[Condition, ...], ListMap("type"), Merge("type")] = ()


class PodDisruptionBudget(Object):
    """policy/v1 PodDisruptionBudget."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "policy/v1"
    kind: str = "PodDisruptionBudget"
    spec: Annotated[PodDisruptionBudgetSpec, ALWAYS, Doc("desired state")] = PodDisruptionBudgetSpec()
    status: Annotated[PodDisruptionBudgetStatus, ALWAYS, Doc("observed state")] = PodDisruptionBudgetStatus()


class Eviction(Object):
    """policy/v1 Eviction."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "policy/v1"
    kind: str = "Eviction"
    delete_options: Annotated[Any, PRESERVE] = None
