"""Models of the requests of hooks, with the fields of their OpenAPI description. Pure.

Callers create requests as JSON; these models document their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from clusterwright.api.constraints import EMBEDDED, REQUIRED
from clusterwright.api.core import Cluster, Machine, MachineSet

Raw = Any
"""An object of any kind."""


class Request(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The fields of every request except Discovery's."""

    settings: Mapping[str, str] = {}


class DiscoveryRequest(msgspec.Struct, frozen=True):
    """A request for the list of handlers."""


class ClusterRequest(Request, frozen=True, kw_only=True):
    """A request about a Cluster."""

    cluster: Annotated[Cluster, REQUIRED]


class UpgradeStepInfo(msgspec.Struct, frozen=True):
    """A future step of an upgrade."""

    version: Annotated[str, REQUIRED]


class StepRequest(ClusterRequest, frozen=True, kw_only=True):
    """A request about a step of an upgrade, with the later ones."""

    control_plane_upgrades: tuple[UpgradeStepInfo, ...] = ()
    workers_upgrades: tuple[UpgradeStepInfo, ...] = ()


class BeforeStepRequest(StepRequest, frozen=True, kw_only=True):
    """A request before a step from one version to another."""

    from_kubernetes_version: Annotated[str, REQUIRED]
    to_kubernetes_version: Annotated[str, REQUIRED]


class AfterStepRequest(StepRequest, frozen=True, kw_only=True):
    """A request after a step."""

    kubernetes_version: Annotated[str, REQUIRED]


class AfterClusterUpgradeRequest(ClusterRequest, frozen=True, kw_only=True):
    """A request after all steps."""

    kubernetes_version: Annotated[str, REQUIRED]


class GenerateUpgradePlanRequest(ClusterRequest, frozen=True, kw_only=True):
    """A request for the steps to a version."""

    from_control_plane_kubernetes_version: Annotated[str, REQUIRED]
    from_workers_kubernetes_version: str = ""
    to_kubernetes_version: Annotated[str, REQUIRED]


class HolderReference(msgspec.Struct, frozen=True, rename="camel"):
    """The object and field that refer to a template."""

    api_version: Annotated[str, REQUIRED]
    kind: Annotated[str, REQUIRED]
    namespace: Annotated[str, REQUIRED]
    name: Annotated[str, REQUIRED]
    field_path: Annotated[str, REQUIRED]


class Variable(msgspec.Struct, frozen=True):
    """A variable and its value, of any type."""

    name: Annotated[str, REQUIRED]
    value: Annotated[Any, REQUIRED]


class ValidateTopologyRequestItem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A template, and its own variables."""

    holder_reference: Annotated[HolderReference, REQUIRED]
    object: Annotated[Raw, REQUIRED, EMBEDDED]
    variables: tuple[Variable, ...] = ()


class GeneratePatchesRequestItem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The same, with a UID to which the answer refers."""

    uid: Annotated[str, REQUIRED]
    holder_reference: Annotated[HolderReference, REQUIRED]
    object: Annotated[Raw, REQUIRED, EMBEDDED]
    variables: tuple[Variable, ...] = ()


class _Topology(Request, frozen=True, kw_only=True):
    variables: tuple[Variable, ...] = ()


class GeneratePatchesRequest(_Topology, frozen=True, kw_only=True):
    """A request to patch templates."""

    items: Annotated[tuple[GeneratePatchesRequestItem, ...], REQUIRED]


class ValidateTopologyRequest(_Topology, frozen=True, kw_only=True):
    """A request to validate templates."""

    items: Annotated[tuple[ValidateTopologyRequestItem, ...], REQUIRED]


class UpdateMachineRequestObjects(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A Machine with its dependent objects."""

    machine: Annotated[Machine, REQUIRED]
    infrastructure_machine: Annotated[Raw, REQUIRED, EMBEDDED]
    bootstrap_config: Annotated[Raw, EMBEDDED] = None


class CanUpdateMachineRequestObjects(UpdateMachineRequestObjects, frozen=True, kw_only=True):
    """The same, in the present or desired state."""


class CanUpdateMachineSetRequestObjects(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A MachineSet with its templates."""

    machine_set: Annotated[MachineSet, REQUIRED]
    infrastructure_machine_template: Annotated[Raw, REQUIRED, EMBEDDED]
    bootstrap_config_template: Annotated[Raw, EMBEDDED] = None


class CanUpdateMachineRequest(Request, frozen=True, kw_only=True):
    """A request whether one Machine can become the other."""

    current: Annotated[CanUpdateMachineRequestObjects, REQUIRED]
    desired: Annotated[CanUpdateMachineRequestObjects, REQUIRED]


class CanUpdateMachineSetRequest(Request, frozen=True, kw_only=True):
    """A request whether one MachineSet can become the other."""

    current: Annotated[CanUpdateMachineSetRequestObjects, REQUIRED]
    desired: Annotated[CanUpdateMachineSetRequestObjects, REQUIRED]


class UpdateMachineRequest(Request, frozen=True, kw_only=True):
    """A request to update a Machine to its desired state."""

    desired: Annotated[UpdateMachineRequestObjects, REQUIRED]
