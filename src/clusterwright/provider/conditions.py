"""How far the machine of a provider has come: what a pass sees of it, and what it says. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterwright.api.core import Machine
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.tables import OTHERWISE, Row, Table, false, guard, message, true


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Snapshot[Any]):
    """What a pass over an InfraMachine sees. One that is deleted may have outlived its Machine."""

    machine: Machine | None
    is_cluster_provisioned: bool
    failure: str = ""

    @property
    def has_data(self) -> bool:
        """Whether there is something to boot."""
        return self.machine is not None and bool(self.machine.spec.bootstrap.data_secret_name)

    @property
    def is_provisioned(self) -> bool:
        """Whether it was said that the machine runs; that is never taken back."""
        latch = self.object.status.initialization
        return latch is not None and bool(latch.provisioned)


@guard("it is deleted")
def deleting(v: View) -> bool:
    return v.deleting


@guard("status.initialization.provisioned")
def provisioned(v: View) -> bool:
    return v.is_provisioned


@guard("Cluster status.initialization.infrastructureProvisioned")
def cluster_provisioned(v: View) -> bool:
    return v.is_cluster_provisioned


@guard("Machine spec.bootstrap.dataSecretName")
def has_data(v: View) -> bool:
    return v.has_data


@guard("the provider failed")
def failed(v: View) -> bool:
    return bool(v.failure)


@message("<what the provider says>")
def failure(v: View) -> str:
    return v.failure


# fmt: off
READY: Table[View] = Table(
    "Ready",
    Row("deleting",       deleting,             false("Deleting")),
    Row("failed",         failed,               false("ProvisioningFailed", failure)),
    Row("provisioned",    provisioned,          true("Provisioned")),
    Row("infrastructure", ~cluster_provisioned, false("WaitingForClusterInfrastructureReady")),
    Row("data",           ~has_data,            false("WaitingForBootstrapData")),
    Row("provisioning",   OTHERWISE,            false("Provisioning")),
    about="How far the machine of a provider has come.",
)
# fmt: on
