"""The fields of an infrastructure machine, by its contract. Pure."""

from __future__ import annotations

from clusterwright.api.contract import CONTRACTS
from clusterwright.api.core import MachineAddress
from clusterwright.controllers.kit.contract import field_of
from clusterwright.controllers.kit.lookup import Found, Lookup

_FAILURE_DOMAIN = CONTRACTS["v1beta2"].infra_machine.failure_domain
"""The field of the failure domain, in every contract."""


def infrastructure_provisioned(infra: Found) -> bool:
    """Return whether the infrastructure machine reports that it is provisioned. Raises MalformedField."""
    return field_of(infra, CONTRACTS[infra.contract].infra_machine.provisioned) is True


def reported_provider_id(infra: Found) -> str:
    """Return the provider ID; empty if it is not reported. Raises MalformedField."""
    return field_of(infra, CONTRACTS[infra.contract].infra_machine.provider_id) or ""


def failure_domains(infra: Found) -> tuple[str, str]:
    """Return the wanted and the actual failure domain; empty if not reported. Raises MalformedField."""
    requested = CONTRACTS[infra.contract].infra_machine.older_failure_domain
    return field_of(infra, requested) or "", field_of(infra, _FAILURE_DOMAIN) or ""


def addresses_of(infra: Found) -> tuple[MachineAddress, ...] | None:
    """Return the addresses of an infrastructure machine; None if not reported. Raises MalformedField."""
    return field_of(infra, CONTRACTS[infra.contract].infra_machine.addresses)


def is_interruptible(lookup: Lookup) -> bool:
    """Return whether the infrastructure may interrupt the machine at any time. Raises MalformedField."""
    return isinstance(lookup, Found) and field_of(lookup, CONTRACTS[lookup.contract].infra_machine.interruptible) is True
