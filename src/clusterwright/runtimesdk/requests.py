"""Make the requests of hooks, with the fields of their OpenAPI description. Pure.

Requests are made as JSON by who asks; these models say what belongs in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from clusterwright.api.constraints import EMBEDDED, REQUIRED
from clusterwright.api.core import Cluster, Machine, MachineSet

Raw = Any
"""An object of a kind that we need not know."""


class Request(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The fields of every request except Discovery's."""

    settings: Mapping[str, str] = {}


class DiscoveryRequest(msgspec.Struct, frozen=True):
    """Nothing is asked but which handlers there are."""


class ClusterRequest(Request, frozen=True, kw_only=True):
    """About a Cluster."""

    cluster: Annotated[Cluster, REQUIRED]


class UpgradeStepInfo(msgspec.Struct, frozen=True):
    """A step of an upgrade that is to come."""

    version: Annotated[str, REQUIRED]


class StepRequest(ClusterRequest, frozen=True, kw_only=True):
    """About a step of an upgrade, with those that are to come."""

    control_plane_upgrades: tuple[UpgradeStepInfo, ...] = ()
    workers_upgrades: tuple[UpgradeStepInfo, ...] = ()


class BeforeStepRequest(StepRequest, frozen=True, kw_only=True):
    """Before a step from one version to another."""

    from_kubernetes_version: Annotated[str, REQUIRED]
    to_kubernetes_version: Annotated[str, REQUIRED]


class AfterStepRequest(StepRequest, frozen=True, kw_only=True):
    """After a step."""

    kubernetes_version: Annotated[str, REQUIRED]


class AfterClusterUpgradeRequest(ClusterRequest, frozen=True, kw_only=True):
    """After all steps."""

    kubernetes_version: Annotated[str, REQUIRED]


class GenerateUpgradePlanRequest(ClusterRequest, frozen=True, kw_only=True):
    """Which steps lead to a version."""

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
    """A variable and its value, whatever that is."""

    name: Annotated[str, REQUIRED]
    value: Annotated[Any, REQUIRED]


class ValidateTopologyRequestItem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A template, and the variables that are its own."""

    holder_reference: Annotated[HolderReference, REQUIRED]
    object: Annotated[Raw, REQUIRED, EMBEDDED]
    variables: tuple[Variable, ...] = ()


class GeneratePatchesRequestItem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The same, by a uid that the answer names it by."""

    uid: Annotated[str, REQUIRED]
    holder_reference: Annotated[HolderReference, REQUIRED]
    object: Annotated[Raw, REQUIRED, EMBEDDED]
    variables: tuple[Variable, ...] = ()


class _Topology(Request, frozen=True, kw_only=True):
    variables: tuple[Variable, ...] = ()


class GeneratePatchesRequest(_Topology, frozen=True, kw_only=True):
    """Templates to be patched."""

    items: Annotated[tuple[GeneratePatchesRequestItem, ...], REQUIRED]


class ValidateTopologyRequest(_Topology, frozen=True, kw_only=True):
    """Templates to be judged."""

    items: Annotated[tuple[ValidateTopologyRequestItem, ...], REQUIRED]


class UpdateMachineRequestObjects(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A Machine with what belongs to it."""

    machine: Annotated[Machine, REQUIRED]
    infrastructure_machine: Annotated[Raw, REQUIRED, EMBEDDED]
    bootstrap_config: Annotated[Raw, EMBEDDED] = None


class CanUpdateMachineRequestObjects(UpdateMachineRequestObjects, frozen=True, kw_only=True):
    """The same, as it is or as it should be."""


class CanUpdateMachineSetRequestObjects(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A MachineSet with its templates."""

    machine_set: Annotated[MachineSet, REQUIRED]
    infrastructure_machine_template: Annotated[Raw, REQUIRED, EMBEDDED]
    bootstrap_config_template: Annotated[Raw, EMBEDDED] = None


class CanUpdateMachineRequest(Request, frozen=True, kw_only=True):
    """Whether one can become the other."""

    current: Annotated[CanUpdateMachineRequestObjects, REQUIRED]
    desired: Annotated[CanUpdateMachineRequestObjects, REQUIRED]


class CanUpdateMachineSetRequest(Request, frozen=True, kw_only=True):
    """Whether one can become the other."""

    current: Annotated[CanUpdateMachineSetRequestObjects, REQUIRED]
    desired: Annotated[CanUpdateMachineSetRequestObjects, REQUIRED]


class UpdateMachineRequest(Request, frozen=True, kw_only=True):
    """The desired state of a Machine."""

    desired: Annotated[UpdateMachineRequestObjects, REQUIRED]
