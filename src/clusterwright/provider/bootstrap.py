"""The bootstrap data of a machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterwright.api.core import Machine, MachinePool
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.kit.owners import find_owner
from clusterwright.provider.failures import ProvisionFailed
from clusterwright.runtime.client import Reader


@dataclass(frozen=True, slots=True)
class BootstrapData:
    """The user data of a machine. They are secret, because they hold tokens and keys."""

    value: bytes = field(repr=False)
    format: str
    """The format: `cloud-config` or `ignition`."""


async def data_secret_name(reader: Reader, machine: Machine) -> str:
    """Return the name of the Secret with the data: the Machine's, or its MachinePool's. Empty: not yet."""
    if machine.spec.bootstrap.data_secret_name:
        return machine.spec.bootstrap.data_secret_name
    pool = await find_owner(reader, machine, MachinePool)
    return pool.spec.template.spec.bootstrap.data_secret_name or "" if pool is not None else ""


async def read_bootstrap_data(reader: Reader, machine: Machine) -> BootstrapData:
    """Return the data of a Machine; raises ProvisionFailed."""
    name = await data_secret_name(reader, machine)
    if not name:
        raise ProvisionFailed(f"Machine {machine.metadata.name} has no bootstrap data: spec.bootstrap.dataSecretName is not set")
    secret = await reader.find(Secret, ObjectKey(machine.metadata.namespace, name))
    if secret is None or "value" not in secret.data:
        raise ProvisionFailed(f"bootstrap data: Secret {name} {'does not exist' if secret is None else 'has no key `value`'}")
    format = secret.data.get("format", b"").decode("utf-8", "replace") or "cloud-config"
    if format not in {"cloud-config", "ignition"}:
        raise ProvisionFailed(f"bootstrap data: Secret {name} has the unknown format {format[:40]!r}; known: cloud-config, ignition")
    return BootstrapData(secret.data["value"], format)
