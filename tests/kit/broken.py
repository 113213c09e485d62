"""Deliberately broken providers as data: each breaks one rule of the contract. They were written before the checks of the kit.

`change` breaks the definitions (of the kind, of its template); `switch` breaks the behaviour, see `fakes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.contract import ContractVersion
from clusterwright.api.meta import Json
from clusterwright.conformance import Role
from kit.definitions import FREE, NUMBER, TEXT, listed


@dataclass(frozen=True, slots=True)
class Broken:
    """A provider with one fault: the role, the rule that it breaks, and how."""

    role: Role
    rule: str
    name: str
    change: Callable[[Json, Json], None] | None = None
    switch: str = ""
    contract: ContractVersion = "v1beta2"


def at(crd: Json, path: str) -> dict[str, Any]:
    """Return the properties of a field in the schema of a definition: at(crd, "status.initialization")."""
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in path.split(".") if path else ():
        schema = schema["properties"][step]
    properties: dict[str, Any] = schema["properties"]
    return properties


def _put(where: str, path: str, name: str, schema: Json | None) -> Callable[[Json, Json], None]:
    """Return a change of one field of a schema; None removes it. `where` is "kind" or "template"."""

    def change(kind: Json, template: Json) -> None:
        found = at(kind if where == "kind" else template, path)
        if schema is None:
            del found[name]
        else:
            found[name] = schema

    return change


def _labels(where: str, **labels: str | None) -> Callable[[Json, Json], None]:
    def change(kind: Json, template: Json) -> None:
        found = (kind if where == "kind" else template)["metadata"]["labels"]
        for name, value in labels.items():
            found.pop(f"cluster.x-k8s.io/{name}", None)
            if value is not None:
                found[f"cluster.x-k8s.io/{name}"] = value

    return change


def _spec(where: str, **values: Any) -> Callable[[Json, Json], None]:
    def change(kind: Json, template: Json) -> None:
        (kind if where == "kind" else template)["spec"].update(values)

    return change


def _rename(where: str, **names: str) -> Callable[[Json, Json], None]:
    def change(kind: Json, template: Json) -> None:
        crd = kind if where == "kind" else template
        crd["spec"]["names"].update(names)
        crd["metadata"]["name"] = f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"

    return change


def _no_status(kind: Json, template: Json) -> None:
    del kind["spec"]["versions"][0]["subresources"]


def _no_body(kind: Json, template: Json) -> None:
    at(template, "spec")["template"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": False, "properties": {"text": TEXT}}


def _short_names(kind: Json, template: Json) -> None:
    at(kind, "")["metadata"] = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}}


def _foreign_group(kind: Json, template: Json) -> None:
    for crd in (kind, template):
        crd["spec"]["group"] = "infrastructure.example.com"
        crd["metadata"]["name"] = f"{crd['spec']['names']['plural']}.infrastructure.example.com"


def _long_kind(kind: Json, template: Json) -> None:
    template["spec"]["names"].update(kind=kind["spec"]["names"]["kind"] + "Blueprint")


_SHARED: Final = (
    # number of the rule, name, change: the four rules about definitions that all roles share
    (1, "scope-cluster", _spec("kind", scope="Cluster")),
    (2, "names-too-short", _short_names),
    (3, "no-contract-label", _labels("kind", v1beta2=None)),
    (3, "label-of-unserved-version", _labels("kind", v1beta2="v1_v2")),
    (3, "label-empty", _labels("kind", v1beta2="")),
    (3, "foreign-group-without-role", _foreign_group),
    (4, "plural-irregular", _rename("kind", plural="oddities")),
    (4, "list-kind", _rename("kind", listKind="ManyOfThem")),
    (4, "no-status-subresource", _no_status),
)


def _shared(role: Role, prefix: str) -> tuple[Broken, ...]:
    return tuple(Broken(role, f"{prefix}-{number}", name, change) for number, name, change in _SHARED)


def _machine(rule: str, name: str, contract: ContractVersion = "v1beta2") -> Broken:
    return Broken("InfraMachine", rule, name, switch=name, contract=contract)


def _cluster(rule: str, name: str, contract: ContractVersion = "v1beta2") -> Broken:
    return Broken("InfraCluster", rule, name, switch=name, contract=contract)


def _config(rule: str, name: str, contract: ContractVersion = "v1beta2") -> Broken:
    return Broken("BootstrapConfig", rule, name, switch=name, contract=contract)


MACHINES_STATIC: Final = (
    *_shared("InfraMachine", "IM"),
    Broken("InfraMachine", "IM-1", "template-scope-cluster", _spec("template", scope="Cluster")),
    Broken("InfraMachine", "IM-3", "template-without-contract-label", _labels("template", v1beta2=None)),
    Broken("InfraMachine", "IM-5", "schema-without-provider-id", _put("kind", "spec", "providerID", None)),
    Broken("InfraMachine", "IM-5", "schema-provider-id-number", _put("kind", "spec", "providerID", NUMBER)),
    Broken("InfraMachine", "IM-6", "schema-failure-domain-number", _put("kind", "status", "failureDomain", NUMBER)),
    Broken("InfraMachine", "IM-7", "schema-addresses-strings", _put("kind", "status", "addresses", listed(TEXT))),
    Broken("InfraMachine", "IM-8", "schema-without-provisioned", _put("kind", "status", "initialization", None)),
    Broken("InfraMachine", "IM-8", "schema-provisioned-string", _put("kind", "status.initialization", "provisioned", TEXT)),
    Broken("InfraMachine", "IM-8", "schema-v1beta1-ready-missing", _put("kind", "status", "ready", None), contract="v1beta1"),
    Broken("InfraMachine", "IM-9", "schema-conditions-object", _put("kind", "status", "conditions", FREE)),
    Broken("InfraMachine", "IM-10", "schema-failure-reason-object", _put("kind", "status", "failureReason", FREE)),
    Broken("InfraMachine", "IM-12", "template-named-otherwise", _long_kind),
    Broken("InfraMachine", "IM-12", "template-without-body", _no_body),
    Broken("InfraMachine", "IM-13", "template-capacity-string", _put("template", "status", "capacity", TEXT)),
)

MACHINES: Final = (
    _machine("IM-5", "provisioned-before-provider-id"),
    _machine("IM-5", "provider-id-never"),
    _machine("IM-5", "provider-id-changes"),
    _machine("IM-5", "provider-id-shared"),
    _machine("IM-5", "provider-id-too-long"),
    _machine("IM-6", "failure-domain-ignored"),
    _machine("IM-7", "address-type-unknown"),
    _machine("IM-7", "address-empty"),
    _machine("IM-8", "provisioned-never"),
    _machine("IM-8", "provisioned-flips-back"),
    _machine("IM-8", "provisioned-never", "v1beta1"),
    _machine("IM-9", "condition-status-yes"),
    _machine("IM-9", "condition-twice"),
    _machine("IM-9", "ready-before-provisioned"),
    _machine("IM-10", "failure-while-well"),
    _machine("IM-11", "reverts-metadata"),
    _machine("IM-14", "dry-run-refused"),
    _machine("IM-17", "ignores-paused-annotation"),
    _machine("IM-17", "ignores-paused-cluster"),
    _machine("IM-17", "deletes-while-paused"),
    _machine("IM-17", "never-resumes"),
    _machine("PB-1", "acts-without-owner"),
    _machine("PB-2", "acts-without-data"),
    _machine("PB-3", "finalizer-never"),
    _machine("PB-3", "finalizer-late"),
    _machine("PB-4", "finalizer-stays"),
    _machine("PB-5", "drops-labels"),
    _machine("PB-5", "drops-other-finalizers"),
    _machine("PB-5", "drops-owner"),
    _machine("PB-6", "writes-heartbeat"),
    _machine("PB-6", "writes-same-again"),
    _machine("PB-7", "restart-loses-machines"),
    _machine("PB-7", "restart-stops-provisioning"),
    _machine("PB-8", "gives-up-when-refused"),
    _machine("PB-8", "hammers-when-refused"),
    _machine("PB-9", "secret-in-status"),
    _machine("PB-9", "secret-in-event"),
    _machine("PB-10", "observed-generation-ahead"),
    _machine("PB-10", "observed-generation-stale"),
    _machine("PB-11", "unowned-not-deletable"),
)

CLUSTERS_STATIC: Final = (
    *_shared("InfraCluster", "IC"),
    Broken("InfraCluster", "IC-5", "schema-endpoint-string", _put("kind", "spec", "controlPlaneEndpoint", TEXT)),
    Broken("InfraCluster", "IC-5", "schema-port-string", _put("kind", "spec.controlPlaneEndpoint", "port", TEXT)),
    Broken("InfraCluster", "IC-6", "schema-failure-domains-map", _put("kind", "status", "failureDomains", FREE)),
    Broken(
        "InfraCluster", "IC-6", "schema-failure-domains-list", _put("kind", "status", "failureDomains", listed(FREE)), contract="v1beta1"
    ),
    Broken("InfraCluster", "IC-7", "schema-without-provisioned", _put("kind", "status", "initialization", None)),
    Broken("InfraCluster", "IC-10", "template-without-body", _no_body),
)

CLUSTERS: Final = (
    _cluster("IC-5", "endpoint-after-provisioned"),
    _cluster("IC-5", "endpoint-port-too-big"),
    _cluster("IC-5", "endpoint-changes"),
    _cluster("IC-6", "failure-domain-without-name"),
    _cluster("IC-6", "failure-domain-twice"),
    _cluster("IC-7", "provisioned-never"),
    _cluster("IC-7", "provisioned-flips-back"),
    _cluster("IC-7", "provisioned-never", "v1beta1"),
    _cluster("IC-8", "condition-status-yes"),
    _cluster("IC-9", "failure-while-well"),
    _cluster("IC-11", "touches-managed"),
    _cluster("IC-14", "ignores-paused-annotation"),
    _cluster("IC-14", "ignores-paused-cluster"),
    _cluster("IC-14", "deletes-while-paused"),
    _cluster("IC-14", "never-resumes"),
    _cluster("PB-1", "acts-without-owner"),
    _cluster("PB-3", "finalizer-never"),
    _cluster("PB-4", "finalizer-stays"),
    _cluster("PB-5", "drops-labels"),
    _cluster("PB-6", "writes-heartbeat"),
    _cluster("PB-7", "restart-loses-machines"),
    _cluster("PB-8", "gives-up-when-refused"),
    _cluster("PB-10", "observed-generation-ahead"),
    _cluster("PB-11", "unowned-not-deletable"),
)

CONFIGS_STATIC: Final = (
    *_shared("BootstrapConfig", "BC"),
    Broken("BootstrapConfig", "BC-5", "schema-without-secret-name", _put("kind", "status", "dataSecretName", None)),
    Broken("BootstrapConfig", "BC-6", "schema-without-flag", _put("kind", "status", "initialization", None)),
    Broken("BootstrapConfig", "BC-6", "schema-v1beta1-ready-string", _put("kind", "status", "ready", TEXT), contract="v1beta1"),
    Broken("BootstrapConfig", "BC-10", "template-without-body", _no_body),
)

CONFIGS: Final = (
    _config("BC-5", "secret-never"),
    _config("BC-5", "secret-without-label"),
    _config("BC-5", "secret-without-owner"),
    _config("BC-5", "secret-without-value"),
    _config("BC-5", "flag-before-name"),
    _config("BC-5", "name-changes"),
    _config("BC-6", "provisioned-never"),
    _config("BC-6", "provisioned-flips-back"),
    _config("BC-6", "provisioned-never", "v1beta1"),
    _config("BC-7", "condition-status-yes"),
    _config("BC-8", "failure-while-well"),
    _config("BC-9", "reverts-metadata"),
    _config("BC-11", "dry-run-refused"),
    _config("BC-16", "ignores-paused-annotation"),
    _config("BC-16", "ignores-paused-cluster"),
    _config("BC-16", "never-resumes"),
    _config("PB-1", "acts-without-owner"),
    _config("PB-4", "finalizer-stays"),
    _config("PB-5", "drops-labels"),
    _config("PB-6", "writes-heartbeat"),
    _config("PB-7", "restart-loses-machines"),
    _config("PB-8", "gives-up-when-refused"),
    _config("PB-10", "observed-generation-ahead"),
    _config("PB-11", "unowned-not-deletable"),
)

PLANES_STATIC: Final = (
    *_shared("ControlPlane", "CP"),
    Broken("ControlPlane", "CP-5", "schema-endpoint-string", _put("kind", "spec", "controlPlaneEndpoint", TEXT)),
    Broken("ControlPlane", "CP-6", "schema-replicas-string", _put("kind", "status", "readyReplicas", TEXT)),
    Broken("ControlPlane", "CP-6", "schema-v1beta1-counter-string", _put("kind", "status", "updatedReplicas", TEXT), contract="v1beta1"),
    Broken("ControlPlane", "CP-7", "schema-version-number", _put("kind", "status", "version", NUMBER)),
    Broken("ControlPlane", "CP-9", "schema-without-flag", _put("kind", "status", "initialization", None)),
    Broken("ControlPlane", "CP-13", "template-without-body", _no_body),
)


def _plane(rule: str, name: str, contract: ContractVersion = "v1beta2") -> Broken:
    return Broken("ControlPlane", rule, name, switch=name, contract=contract)


PLANES: Final = (
    _plane("CP-5", "endpoint-port-too-big"),
    _plane("CP-5", "endpoint-changes"),
    _plane("CP-6", "replicas-missing"),
    _plane("CP-6", "selector-missing"),
    _plane("CP-7", "version-missing"),
    _plane("CP-7", "versions-unordered"),
    _plane("CP-9", "provisioned-never"),
    _plane("CP-9", "provisioned-flips-back"),
    _plane("CP-9", "provisioned-never", "v1beta1"),
    _plane("CP-11", "condition-status-yes"),
    _plane("CP-12", "failure-while-well"),
    _plane("CP-14", "kubeconfig-never"),
    _plane("CP-14", "kubeconfig-without-label"),
    _plane("CP-14", "kubeconfig-unreadable"),
    _plane("CP-21", "ignores-paused-annotation"),
    _plane("CP-21", "ignores-paused-cluster"),
    _plane("PB-1", "acts-without-owner"),
    _plane("PB-8", "gives-up-when-refused"),
)

POOLS_STATIC: Final = (
    *_shared("InfraMachinePool", "MP"),
    Broken("InfraMachinePool", "MP-1", "template-scope-cluster", _spec("template", scope="Cluster")),
    Broken("InfraMachinePool", "MP-5", "schema-instances-object", _put("kind", "status", "instances", FREE)),
    Broken("InfraMachinePool", "MP-5", "schema-instances-strings", _put("kind", "status", "instances", listed(TEXT))),
    Broken("InfraMachinePool", "MP-6", "schema-machine-kind-number", _put("kind", "status", "infrastructureMachineKind", NUMBER)),
    Broken("InfraMachinePool", "MP-7", "schema-provider-id-number", _put("kind", "spec", "providerID", NUMBER)),
    Broken("InfraMachinePool", "MP-8", "schema-without-list", _put("kind", "spec", "providerIDList", None)),
    Broken("InfraMachinePool", "MP-8", "schema-list-of-numbers", _put("kind", "spec", "providerIDList", listed(NUMBER))),
    Broken("InfraMachinePool", "MP-9", "schema-without-provisioned", _put("kind", "status", "initialization", None)),
    Broken("InfraMachinePool", "MP-9", "schema-v1beta1-ready-missing", _put("kind", "status", "ready", None), contract="v1beta1"),
    Broken("InfraMachinePool", "MP-11", "schema-conditions-object", _put("kind", "status", "conditions", FREE)),
    Broken("InfraMachinePool", "MP-12", "schema-without-replicas", _put("kind", "status", "replicas", None)),
    Broken("InfraMachinePool", "MP-12", "schema-replicas-string", _put("kind", "status", "replicas", TEXT)),
    Broken("InfraMachinePool", "MP-13", "schema-failure-reason-object", _put("kind", "status", "failureReason", FREE)),
    Broken("InfraMachinePool", "MP-14", "template-without-body", _no_body),
)


def _pool(rule: str, name: str, contract: ContractVersion = "v1beta2") -> Broken:
    return Broken("InfraMachinePool", rule, name, switch=name, contract=contract)


POOLS: Final = (
    _pool("MP-5", "instance-unknown"),
    _pool("MP-6", "machines-missing"),
    _pool("MP-7", "pool-id-too-long"),
    _pool("MP-7", "pool-id-changes"),
    _pool("MP-8", "list-never"),
    _pool("MP-8", "list-twice"),
    _pool("MP-8", "list-shared"),
    _pool("MP-8", "list-changes"),
    _pool("MP-8", "list-never-grows"),
    _pool("MP-8", "list-never-shrinks"),
    _pool("MP-9", "provisioned-never"),
    _pool("MP-9", "provisioned-flips-back"),
    _pool("MP-9", "provisioned-never", "v1beta1"),
    _pool("MP-10", "ignores-paused-annotation"),
    _pool("MP-10", "ignores-paused-cluster"),
    _pool("MP-10", "deletes-while-paused"),
    _pool("MP-10", "never-resumes"),
    _pool("MP-11", "condition-status-yes"),
    _pool("MP-11", "condition-twice"),
    _pool("MP-11", "ready-before-provisioned"),
    _pool("MP-12", "replicas-missing"),
    _pool("MP-12", "replicas-stale"),
    _pool("MP-13", "failure-while-well"),
    _pool("MP-15", "dry-run-refused"),
    _pool("PB-1", "acts-without-owner"),
    _pool("PB-3", "finalizer-never"),
    _pool("PB-4", "finalizer-stays"),
    _pool("PB-5", "drops-labels"),
    _pool("PB-6", "writes-heartbeat"),
    _pool("PB-7", "restart-loses-machines"),
    _pool("PB-7", "restart-stops-provisioning"),
    _pool("PB-8", "gives-up-when-refused"),
    _pool("PB-9", "secret-in-status"),
    _pool("PB-10", "observed-generation-ahead"),
    _pool("PB-11", "unowned-not-deletable"),
)

STATIC: Final = (*MACHINES_STATIC, *POOLS_STATIC, *CLUSTERS_STATIC, *CONFIGS_STATIC, *PLANES_STATIC)
RUNNING: Final = (*MACHINES, *POOLS, *CLUSTERS, *CONFIGS, *PLANES)
