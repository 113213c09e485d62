"""The definitions of correct provider kinds, by role and contract; tests break one thing in them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from clusterwright.api.contract import ContractVersion, pluralize
from clusterwright.api.meta import Json

GROUP: Final = "infrastructure.cluster.x-k8s.io"
GROUPS: Final = {"BootstrapConfig": "bootstrap.cluster.x-k8s.io", "ControlPlane": "controlplane.cluster.x-k8s.io"}
SUFFIX: Final = {
    "InfraMachine": "Machine",
    "InfraCluster": "Cluster",
    "InfraMachinePool": "MachinePool",
    "BootstrapConfig": "Config",
    "ControlPlane": "ControlPlane",
}
TEXT: Final[Json] = {"type": "string"}
NUMBER: Final[Json] = {"type": "integer", "format": "int32"}
FLAG: Final[Json] = {"type": "boolean"}
FREE: Final[Json] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAP: Final[Json] = {"type": "object", "additionalProperties": TEXT}
ENDPOINT: Final[Json] = {"type": "object", "properties": {"host": TEXT, "port": NUMBER}}
_DOMAIN: Final[Json] = {"name": TEXT, "controlPlane": FLAG, "attributes": MAP}
_ADDRESS: Final[Json] = {"type": "object", "required": ["type", "address"], "properties": {"type": TEXT, "address": TEXT}}


def listed(items: Json) -> Json:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def fields(**properties: Json) -> Json:
    """Return the schema of an object."""
    return {"type": "object", "properties": properties}


_FLAGS: Final = {
    "InfraMachine": ("provisioned", "ready"),
    "InfraCluster": ("provisioned", "ready"),
    "InfraMachinePool": ("provisioned", "ready"),
    "BootstrapConfig": ("dataSecretCreated", "ready"),
    "ControlPlane": ("controlPlaneInitialized", "initialized"),
}


def _spec(role: str) -> Json:
    return {
        "InfraMachine": fields(providerID=TEXT, failureDomain=TEXT),
        "InfraCluster": fields(controlPlaneEndpoint=ENDPOINT),
        "InfraMachinePool": fields(providerID=TEXT, providerIDList=listed(TEXT)),
        "BootstrapConfig": fields(script=TEXT),
        "ControlPlane": fields(controlPlaneEndpoint=ENDPOINT, version=TEXT, replicas=NUMBER, machineTemplate=FREE),
    }[role]


def _status(role: str, contract: ContractVersion) -> Json:
    older = contract == "v1beta1"
    new, old = _FLAGS[role]
    domains = {"type": "object", "additionalProperties": fields(**_DOMAIN)} if older else listed(fields(**_DOMAIN))
    counts = ("updatedReplicas", "unavailableReplicas") if older else ("upToDateReplicas", "availableReplicas")
    own: dict[str, Json] = {
        "InfraMachine": {"addresses": listed(_ADDRESS), "failureDomain": TEXT, "interruptible": FLAG},
        "InfraCluster": {"failureDomains": domains},
        "InfraMachinePool": {"replicas": NUMBER, "instances": listed(FREE), "infrastructureMachineKind": TEXT},
        "BootstrapConfig": {"dataSecretName": TEXT},
        "ControlPlane": {
            "version": TEXT,
            "versions": listed(FREE),
            "selector": TEXT,
            "externalManagedControlPlane": FLAG,
            **dict.fromkeys(("replicas", "readyReplicas", *counts), NUMBER),
        },
    }
    return fields(
        **({old: FLAG} if older else {"initialization": fields(**{new: FLAG})}),
        conditions=listed(FREE),
        failureReason=TEXT,
        failureMessage=TEXT,
        **own[role],
    )


def _definition(group: str, kind: str, contract: str, schema: Json, *, has_status: bool) -> Json:
    plural = pluralize(kind.lower())
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if has_status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "labels": {f"cluster.x-k8s.io/{contract}": "v1", "cluster.x-k8s.io/provider": "test"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def definitions(role: str, prefix: str = "Good", contract: ContractVersion = "v1beta2") -> tuple[Json, Json]:
    """Return the definitions of a kind and of its template, without a fault."""
    group, kind = GROUPS.get(role, GROUP), prefix + SUFFIX[role]
    spec, status = _spec(role), _status(role, contract)
    body = fields(metadata=fields(labels=MAP, annotations=MAP), spec=spec)
    template = fields(spec={**fields(template=body), "required": ["template"]}, status=fields(capacity=MAP, nodeInfo=FREE))
    return deepcopy(
        (
            _definition(group, kind, contract, fields(spec=spec, status=status), has_status=True),
            _definition(group, f"{kind}Template", contract, template, has_status=True),
        )
    )


def template(role: str, prefix: str = "Good") -> Json:
    """Return a template object of the kind."""
    group, kind = GROUPS.get(role, GROUP), prefix + SUFFIX[role]
    return {
        "apiVersion": f"{group}/v1",
        "kind": f"{kind}Template",
        "metadata": {"name": prefix.lower(), "namespace": "default"},
        "spec": {"template": {"spec": {"version": "v1.34.1", "replicas": 1} if role == "ControlPlane" else {}}},
    }
