"""Worlds in which each row of each table of the Cluster controller fires, and what the pass then does."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from clusterwright.kubeadm.certificates import KeyPair, new_admin_client, new_ca, new_kubeconfig
from seeds.seed_worlds import (
    BEFORE,
    CLUSTER_CLASS,
    CONTROL_PLANE,
    CONTROL_PLANE_LABEL,
    FINALIZER,
    LABEL,
    NAME,
    NOW,
    OLD_CRDS,
    TOPOLOGY,
    Json,
    child,
    cluster,
    condition,
    control_plane,
    infrastructure,
    machine,
    owner,
    secret,
)

LOGS = "Please check controller logs for errors"
ERROR = ("Unknown", "InternalError", LOGS)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A world, and what is expected of one pass on it. What is not named is not compared."""

    name: str
    objects: tuple[Json, ...]
    rows: dict[str, str]
    observed: dict[str, Any] = field(default_factory=dict)
    crds: list[Json] | None = None
    requeue: float | None = None
    error: str = ""
    """A part of the error's text; empty: the pass succeeds."""
    actions: tuple[tuple[str, str, str], ...] = ()
    conditions: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    old: dict[str, tuple[str, str, str, str] | None] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    gone: bool = False


STANDALONE: dict[str, Any] = {"controlPlaneRef": None}
NEW: dict[str, Any] = {"initialization": None}
INITIALIZED = condition("ControlPlaneInitialized", "True", "Initialized")


def up_to_date(status: str = "True", reason: str = "R", message: str = "") -> Json:
    return condition("UpToDate", status, reason, message)


def bad(type: str) -> Json:
    """A condition whose status is none: the API server's schema would not let it in."""
    return condition(type, "Maybe", "R")


@cache
def authority() -> KeyPair:
    return new_ca(ec.generate_private_key(ec.SECP256R1()), now=datetime(2026, 1, 1, tzinfo=UTC), serial=7)


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def ca_secret() -> Json:
    return secret("ca", {"tls.crt": encoded(authority().certificate), "tls.key": encoded(authority().key)})


def kubeconfig_secret(*, days_left: int, ours: bool = True) -> Json:
    made = datetime.fromisoformat(NOW) - timedelta(days=365 - days_left)
    client = new_admin_client(authority(), ec.generate_private_key(ec.SECP256R1()), now=made, serial=Random(1).randrange(1, 1 << 60))
    obj = secret("kubeconfig", {"value": encoded(new_kubeconfig(NAME, "https://10.0.0.10:6443", authority(), client))})
    if ours:
        obj["metadata"]["ownerReferences"] = [owner()]
    return obj


PROVIDERS = (infrastructure(), control_plane())
DELETING = cluster(INITIALIZED, deleting=True)
TO_BE_REPLACED = (
    condition("HealthCheckSucceeded", "False", "Unhealthy", "sick"),
    condition("OwnerRemediated", "False", "WaitingForRemediation", "soon"),
)
SICK = condition("HealthCheckSucceeded", "False", "Unhealthy", "sick")

ENTRY = [
    Scenario(name="cluster-not-found", objects=(), rows={"reconcile": "not-found"}, gone=True),
    Scenario(
        name="finalizer-missing",
        objects=(cluster(finalizers=None),),
        rows={"reconcile": "finalizer-added"},
        status={"observedGeneration": None},
    ),
    Scenario(
        name="paused",
        objects=(cluster(spec={"paused": True}), *PROVIDERS),
        rows={"reconcile": "paused", "Paused": "paused"},
        conditions={"Paused": ("True", "Paused", "Cluster spec.paused is set to true")},
    ),
    Scenario(
        name="not-paused",
        objects=(cluster(), *PROVIDERS),
        rows={
            "reconcile": "normal",
            "Paused": "not-paused",
            "Deleting": "not-deleting",
            "Available": "available",
            "Ready (v1beta1)": "summarized",
        },
        conditions={"Paused": ("False", "NotPaused", ""), "Available": ("True", "Available", "")},
    ),
    Scenario(
        name="class-not-found",
        objects=(cluster(spec={"topology": TOPOLOGY}), *PROVIDERS),
        rows={},
        error="class",
        status={"observedGeneration": None, "phase": None},
    ),
    Scenario(
        name="topology-refs-missing",
        objects=(cluster(spec={"topology": TOPOLOGY, "infrastructureRef": None, "controlPlaneRef": None}, status=NEW), CLUSTER_CLASS),
        rows={
            "reconcile": "waiting-for-topology",
            "InfrastructureReady": "topology-pending",
            "ControlPlaneAvailable": "topology-pending",
            "ControlPlaneInitialized": "topology-pending",
        },
        conditions={"ControlPlaneInitialized": ("Unknown", "DoesNotExist", "Waiting for cluster topology to be reconciled")},
        status={"observedGeneration": 2, "initialization.infrastructureProvisioned": None},
    ),
]

FAILING_ENTRY = [
    Scenario(
        name="cluster-cannot-be-read",
        objects=(cluster(), *PROVIDERS),
        observed={"unreadable": [{"kind": "Cluster", "namespace": "ns", "name": "c1"}]},
        rows={},
        error="cannot be read",
    ),
    Scenario(
        name="finalizer-cannot-be-added",
        objects=(cluster(finalizers=None),),
        observed={"unwritable": [{"verb": "patch", "kind": "Cluster"}]},
        rows={},
        error="refused",
    ),
    Scenario(
        name="paused-condition-absent",
        objects=(cluster(status={"conditions": []}), *PROVIDERS),
        rows={"reconcile": "normal", "Paused": "not-paused"},
        conditions={"Paused": ("False", "NotPaused", ""), "Deleting": ("False", "NotDeleting", "")},
        status={"observedGeneration": 2},
    ),
    Scenario(
        name="paused-condition-cannot-be-written",
        objects=(cluster(status={"conditions": []}), *PROVIDERS),
        observed={"unwritable": [{"verb": "patch", "kind": "Cluster"}]},
        rows={},
        error="refused",
    ),
    Scenario(
        name="class-gone-deleting",
        objects=(
            cluster(INITIALIZED, spec={"topology": TOPOLOGY}, deleting=True),
            infrastructure(ownerReferences=[owner() | {"controller": True}]),
        ),
        rows={"reconcile": "deleting", "reconcileDelete": "infrastructure-remains"},
        actions=(("delete", "ExampleCluster", "infra"),),
    ),
    Scenario(
        name="terminal-failure",
        crds=OLD_CRDS,
        objects=(
            cluster(INITIALIZED),
            infrastructure(provisioned=None, status={"ready": True, "failureReason": "Broken", "failureMessage": "for ever"}),
            control_plane(initialized=None, status={"initialized": True}),
        ),
        rows={"reconcile": "normal"},
        status={"phase": "Failed", "deprecated.v1beta1.failureReason": "Broken"},
    ),
    Scenario(
        name="failure-that-the-contract-does-not-know",
        objects=(cluster(INITIALIZED), infrastructure(status={"failureReason": "Broken"}), control_plane()),
        rows={"reconcile": "normal"},
        status={"phase": "Provisioned", "deprecated.v1beta1.failureReason": "Broken"},
    ),
]

INFRASTRUCTURE_ROWS = [
    Scenario(
        name="infra-no-ref",
        objects=(cluster(spec={"infrastructureRef": None, "controlPlaneRef": None, "controlPlaneEndpoint": None}, status=NEW),),
        rows={"reconcileInfrastructure": "no-ref", "InfrastructureReady": "no-infrastructure", "InfrastructureReady (v1beta1)": "no-ref"},
        conditions={"InfrastructureReady": ("True", "Ready", "")},
        old={"InfrastructureReady": ("True", "", "", "")},
        status={"initialization.infrastructureProvisioned": True, "phase": "Provisioning"},
    ),
    Scenario(
        name="infra-no-ref-deleting",
        objects=(cluster(spec={"infrastructureRef": None}, deleting=True), control_plane()),
        rows={"reconcileInfrastructure": "no-ref-deleting", "InfrastructureReady (v1beta1)": "no-ref-deleting"},
        actions=(("delete", "ExampleControlPlane", "cp"),),
    ),
    Scenario(
        name="infra-missing",
        objects=(cluster(status=NEW), control_plane()),
        rows={"reconcileInfrastructure": "missing", "InfrastructureReady": "missing", "InfrastructureReady (v1beta1)": "not-read"},
        requeue=30,
        conditions={"InfrastructureReady": ("False", "DoesNotExist", "ExampleCluster does not exist")},
        old={"InfrastructureReady": None},
    ),
    Scenario(
        name="infra-missing-after-provisioned",
        objects=(cluster(), control_plane()),
        rows={"reconcileInfrastructure": "missing-after-provisioned", "InfrastructureReady": "deleted-before-cluster"},
        error="ExampleCluster has been deleted after being provisioned",
        conditions={"InfrastructureReady": ("False", "ObjectDeleted", "ExampleCluster has been deleted while the cluster still exists")},
    ),
    Scenario(
        name="infra-missing-deleting",
        objects=(DELETING, control_plane()),
        rows={"reconcileInfrastructure": "missing-deleting", "InfrastructureReady": "deleted-with-cluster"},
        actions=(("delete", "ExampleControlPlane", "cp"),),
        conditions={"InfrastructureReady": ("False", "ObjectDeleted", "ExampleCluster has been deleted")},
    ),
    Scenario(
        name="infra-unreadable",
        objects=(cluster(), *PROVIDERS),
        observed={"unreadable": [{"kind": "ExampleCluster", "namespace": "ns", "name": "infra"}]},
        rows={"reconcileInfrastructure": "unreadable", "InfrastructureReady": "unreadable"},
        error="ExampleCluster",
        conditions={"InfrastructureReady": ERROR},
    ),
    Scenario(
        name="infra-garbled",
        objects=(cluster(), infrastructure(provisioned="yes"), control_plane()),
        rows={"reconcileInfrastructure": "garbled", "InfrastructureReady (v1beta1)": "not-read"},
        error="provisioned",
    ),
    Scenario(
        name="infra-found",
        objects=(
            cluster(status=NEW),
            infrastructure(provisioned=False, conditions=[], labels={LABEL: None}, ownerReferences=[]),
            control_plane(),
        ),
        rows={
            "reconcileInfrastructure": "not-provisioned",
            "InfrastructureReady": "not-provisioned",
            "InfrastructureReady (v1beta1)": "not-provisioned",
        },
        actions=(("patch", "ExampleCluster", "infra"),),
        conditions={"InfrastructureReady": ("False", "NotReady", "ExampleCluster status.initialization.provisioned is false")},
        old={"InfrastructureReady": ("False", "Info", "WaitingForInfrastructure", "")},
        status={"initialization.infrastructureProvisioned": None},
    ),
    Scenario(
        name="infra-object-deleting",
        objects=(cluster(status=NEW), infrastructure(deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0), control_plane()),
        rows={"reconcileInfrastructure": "object-deleting", "InfrastructureReady": "mirrored", "InfrastructureReady (v1beta1)": "mirrored"},
        status={"initialization.infrastructureProvisioned": None},
    ),
    Scenario(
        name="infra-endpoint-garbled",
        objects=(cluster(spec={"controlPlaneEndpoint": None}), infrastructure(spec={"controlPlaneEndpoint": {"host": 7}}), control_plane()),
        rows={"reconcileInfrastructure": "endpoint-garbled"},
        error="spec.controlPlaneEndpoint",
    ),
    Scenario(
        name="infra-failure-domains-garbled",
        objects=(cluster(), infrastructure(status={"failureDomains": {"a": {}}}), control_plane()),
        rows={"reconcileInfrastructure": "failure-domains-garbled"},
        error="status.failureDomains",
    ),
    Scenario(
        name="infra-provisioned",
        objects=(
            cluster(spec={"controlPlaneEndpoint": None}, status=NEW),
            infrastructure(
                conditions=[],
                spec={"controlPlaneEndpoint": {"host": "a.example.com", "port": 443}},
                status={"failureDomains": [{"name": "b"}, {"name": "a", "controlPlane": True}]},
            ),
            control_plane(initialized=False),
        ),
        rows={
            "reconcileInfrastructure": "provisioned",
            "InfrastructureReady": "provisioned",
            "InfrastructureReady (v1beta1)": "provisioned",
        },
        spec={"controlPlaneEndpoint": {"host": "a.example.com", "port": 443}},
        status={
            "initialization.infrastructureProvisioned": True,
            "failureDomains": [{"name": "a", "controlPlane": True}, {"name": "b", "controlPlane": False}],
            "phase": "Provisioning",
        },
    ),
    Scenario(
        name="infra-conditions-garbled",
        objects=(cluster(), infrastructure(conditions=[{"type": "Ready"}]), control_plane()),
        rows={"InfrastructureReady": "conditions-garbled"},
        conditions={
            "InfrastructureReady": (
                "Unknown",
                "InvalidConditionReported",
                "failed to convert status.conditions from ExampleCluster to []metav1.Condition: status must be set for the Ready condition",
            )
        },
    ),
    Scenario(
        name="infra-missing-never-provisioned-deleting",
        objects=(cluster(deleting=True, status=NEW, spec={"controlPlaneRef": None}), infrastructure(conditions=[])),
        rows={"InfrastructureReady (v1beta1)": "deleting", "reconcileDelete": "infrastructure-remains"},
        actions=(("delete", "ExampleCluster", "infra"),),
    ),
    Scenario(
        name="infra-topology-deleting",
        objects=(
            cluster(
                spec={"topology": TOPOLOGY, "infrastructureRef": None, "controlPlaneRef": None},
                deleting=True,
                finalizers=[FINALIZER, "other.example.com/x"],
            ),
            CLUSTER_CLASS,
        ),
        rows={
            "InfrastructureReady": "topology-deleting",
            "ControlPlaneAvailable": "topology-deleting",
            "ControlPlaneInitialized": "topology-deleting",
        },
        conditions={"ControlPlaneInitialized": ("Unknown", "DoesNotExist", "")},
    ),
]

CONTROL_PLANE_ROWS = [
    Scenario(
        name="cp-no-ref",
        objects=(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig")),
        rows={
            "reconcileControlPlane": "no-ref",
            "ControlPlaneInitialized": "no-node-yet",
            "ControlPlaneAvailable": "no-node-yet",
            "ControlPlaneReady (v1beta1)": "no-ref",
            "ControlPlaneInitialized (v1beta1)": "no-node-yet",
        },
        conditions={
            "ControlPlaneInitialized": (
                "False",
                "NotInitialized",
                "Waiting for the first control plane machine to have status.nodeRef set",
            ),
            "ControlPlaneAvailable": ("False", "NotAvailable", "Waiting for the first control plane machine to have status.nodeRef set"),
        },
    ),
    Scenario(
        name="cp-missing",
        objects=(cluster(status=NEW), infrastructure()),
        rows={
            "reconcileControlPlane": "missing",
            "ControlPlaneAvailable": "missing",
            "ControlPlaneInitialized": "cp-missing",
            "ControlPlaneReady (v1beta1)": "missing",
            "ControlPlaneInitialized (v1beta1)": "not-told",
        },
        requeue=30,
        conditions={
            "ControlPlaneAvailable": ("False", "DoesNotExist", "ExampleControlPlane does not exist"),
            "ControlPlaneInitialized": ("Unknown", "DoesNotExist", "ExampleControlPlane does not exist"),
        },
        old={"ControlPlaneReady": ("False", "Info", "WaitingForControlPlane", "")},
    ),
    Scenario(
        name="cp-missing-after-initialized",
        objects=(cluster(INITIALIZED), infrastructure()),
        rows={"reconcileControlPlane": "missing-after-initialized", "ControlPlaneAvailable": "deleted-before-cluster"},
        error="ExampleControlPlane has been deleted after being initialized",
        conditions={
            "ControlPlaneAvailable": ("False", "ObjectDeleted", "ExampleControlPlane has been deleted while the cluster still exists")
        },
    ),
    Scenario(
        name="cp-missing-deleting",
        objects=(DELETING, infrastructure()),
        rows={
            "reconcileControlPlane": "missing-deleting",
            "ControlPlaneAvailable": "deleted-with-cluster",
            "ControlPlaneReady (v1beta1)": "deleted",
            "reconcileDelete": "infrastructure-remains",
        },
        actions=(("delete", "ExampleCluster", "infra"),),
        conditions={"ControlPlaneAvailable": ("False", "ObjectDeleted", "ExampleControlPlane has been deleted")},
        old={"ControlPlaneReady": ("False", "Info", "Deleted", "")},
    ),
    Scenario(
        name="cp-unreadable",
        objects=(cluster(), *PROVIDERS),
        observed={"unreadable": [{"kind": "ExampleControlPlane", "namespace": "ns", "name": "cp"}]},
        rows={
            "reconcileControlPlane": "unreadable",
            "ControlPlaneAvailable": "unreadable",
            "ControlPlaneInitialized": "cp-unreadable",
            "RollingOut": "unlisted",
            "ScalingUp": "unlisted",
            "ScalingDown": "unlisted",
            "ControlPlaneReady (v1beta1)": "not-read",
        },
        error="ExampleControlPlane",
        conditions={"ControlPlaneAvailable": ERROR, "ControlPlaneInitialized": ERROR, "RollingOut": ERROR},
    ),
    Scenario(
        name="cp-garbled",
        objects=(cluster(), infrastructure(), control_plane(initialized="yes")),
        rows={"reconcileControlPlane": "garbled", "ControlPlaneInitialized": "cp-garbled"},
        error="controlPlaneInitialized",
        conditions={"ControlPlaneInitialized": ERROR},
    ),
    Scenario(
        name="cp-found",
        objects=(
            cluster(status=NEW),
            infrastructure(),
            control_plane(initialized=False, conditions=[], labels={LABEL: None}, ownerReferences=[]),
        ),
        rows={
            "reconcileControlPlane": "not-initialized",
            "ControlPlaneInitialized": "cp-uninitialized",
            "ControlPlaneAvailable": "not-initialized",
            "ControlPlaneReady (v1beta1)": "not-initialized",
            "ControlPlaneInitialized (v1beta1)": "cp-uninitialized",
        },
        actions=(("patch", "ExampleControlPlane", "cp"),),
        conditions={
            "ControlPlaneInitialized": ("False", "NotInitialized", "Control plane not yet initialized"),
            "ControlPlaneAvailable": (
                "False",
                "NotAvailable",
                "ExampleControlPlane status.initialization.controlPlaneInitialized is false",
            ),
        },
        old={"ControlPlaneReady": ("False", "Info", "WaitingForControlPlane", "")},
    ),
    Scenario(
        name="cp-object-deleting",
        objects=(cluster(status=NEW), infrastructure(), control_plane(deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)),
        rows={"reconcileControlPlane": "object-deleting"},
        status={"initialization.controlPlaneInitialized": None},
    ),
    Scenario(
        name="cp-endpoint-garbled",
        objects=(
            cluster(spec={"controlPlaneEndpoint": None}),
            infrastructure(),
            control_plane(spec={"controlPlaneEndpoint": {"port": True}}),
        ),
        rows={"reconcileControlPlane": "endpoint-garbled"},
        error="spec.controlPlaneEndpoint",
    ),
    Scenario(
        name="cp-initialized",
        objects=(
            cluster(spec={"controlPlaneEndpoint": None}, status=NEW),
            infrastructure(),
            control_plane(conditions=[], spec={"replicas": 1, "controlPlaneEndpoint": {"host": "b.example.com", "port": 443}}),
        ),
        rows={
            "reconcileControlPlane": "initialized",
            "ControlPlaneInitialized": "cp-initialized",
            "ControlPlaneAvailable": "initialized",
            "ControlPlaneReady (v1beta1)": "initialized",
            "ControlPlaneInitialized (v1beta1)": "cp-initialized",
        },
        spec={"controlPlaneEndpoint": {"host": "b.example.com", "port": 443}},
        conditions={"ControlPlaneInitialized": ("True", "Initialized", "")},
        old={"ControlPlaneReady": ("True", "", "", ""), "ControlPlaneInitialized": ("True", "", "", "")},
        status={"initialization.controlPlaneInitialized": True, "phase": "Provisioned"},
    ),
    Scenario(
        name="cp-initialized-by-old-contract",
        crds=OLD_CRDS,
        objects=(
            cluster(status=NEW),
            infrastructure(provisioned=None, status={"ready": True}),
            control_plane(initialized=None, status={"initialized": True}),
        ),
        rows={
            "reconcileInfrastructure": "provisioned",
            "reconcileControlPlane": "initialized",
            "ControlPlaneInitialized": "cp-initialized",
        },
        status={"initialization.controlPlaneInitialized": True},
    ),
    Scenario(
        name="cp-conditions-garbled",
        objects=(cluster(), infrastructure(), control_plane(conditions=[{"type": "Available", "status": "Perhaps"}])),
        rows={"ControlPlaneAvailable": "conditions-garbled"},
        conditions={
            "ControlPlaneAvailable": (
                "Unknown",
                "InvalidConditionReported",
                (
                    "failed to convert status.conditions from ExampleControlPlane to []metav1.Condition: "
                    "status for the Available condition must be one of True, False, Unknown"
                ),
            )
        },
    ),
    Scenario(
        name="cp-mirrored",
        objects=(
            cluster(),
            infrastructure(),
            control_plane(conditions=[condition("Available", "False", "Bad", "no"), condition("Ready", "True", "Fine")]),
        ),
        rows={"ControlPlaneAvailable": "mirrored", "ControlPlaneReady (v1beta1)": "mirrored", "Available": "issues"},
        conditions={"ControlPlaneAvailable": ("False", "Bad", "no"), "Available": ("False", "NotAvailable", "* ControlPlaneAvailable: no")},
        old={"ControlPlaneReady": ("True", "", "Fine", "")},
    ),
    Scenario(
        name="already-initialized",
        objects=(cluster(INITIALIZED), infrastructure(), control_plane(initialized=False)),
        rows={"ControlPlaneInitialized": "already-initialized"},
        conditions={"ControlPlaneInitialized": ("True", "Initialized", "")},
    ),
    Scenario(
        name="first-node-up",
        objects=(
            cluster(spec=STANDALONE, status=NEW),
            infrastructure(),
            secret("kubeconfig"),
            machine("m1", condition("Available", "True"), condition("Ready", "True"), up_to_date(), control_plane=True),
        ),
        rows={
            "ControlPlaneInitialized": "first-node-up",
            "ControlPlaneAvailable": "machines-available",
            "ControlPlaneInitialized (v1beta1)": "first-node-up",
            "ControlPlaneMachinesReady": "all-fine",
            "ControlPlaneMachinesUpToDate": "all-fine",
        },
        conditions={"ControlPlaneInitialized": ("True", "Initialized", ""), "ControlPlaneAvailable": ("True", "Available", "")},
        status={"phase": "Provisioned", "controlPlane.availableReplicas": 1},
    ),
    Scenario(
        name="standalone-none-available",
        objects=(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig"), machine("m1", control_plane=True)),
        rows={"ControlPlaneAvailable": "no-machine-available", "ControlPlaneMachinesReady": "unknowns"},
        conditions={
            "ControlPlaneAvailable": ("False", "NotAvailable", "There are no available control plane Machines, at least 1 required"),
            "ControlPlaneMachinesReady": ("Unknown", "ReadyUnknown", "* Machine m1: Condition Ready not yet reported"),
        },
    ),
    Scenario(
        name="machines-unlisted",
        objects=(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig")),
        observed={"unlistable": ["Machine"]},
        rows={
            "ControlPlaneInitialized": "machines-unlisted",
            "ControlPlaneAvailable": "machines-unlisted",
            "WorkersAvailable": "unlisted",
            "ControlPlaneMachinesReady": "unlisted",
            "WorkerMachinesReady": "unlisted",
            "ControlPlaneMachinesUpToDate": "unlisted",
            "WorkerMachinesUpToDate": "unlisted",
            "Remediating": "unlisted",
        },
        error="failed to list Machines",
        conditions={"ControlPlaneInitialized": ERROR, "ControlPlaneMachinesUpToDate": ERROR},
    ),
    Scenario(
        name="old-condition-already-initialized",
        objects=(
            cluster(
                spec=STANDALONE,
                status={
                    "deprecated": {
                        "v1beta1": {"conditions": [{"type": "ControlPlaneInitialized", "status": "True", "lastTransitionTime": BEFORE}]}
                    }
                },
            ),
            infrastructure(),
            secret("kubeconfig"),
        ),
        rows={"ControlPlaneInitialized (v1beta1)": "already-initialized"},
        old={"ControlPlaneInitialized": ("True", "", "", "")},
    ),
    Scenario(
        name="old-control-plane-deleting",
        objects=(DELETING, infrastructure(), control_plane(conditions=[])),
        rows={"ControlPlaneReady (v1beta1)": "deleting", "reconcileDelete": "control-plane-remains"},
        actions=(("delete", "ExampleControlPlane", "cp"),),
        old={"ControlPlaneReady": ("False", "Info", "Deleting", "")},
    ),
    Scenario(
        name="old-ready-nothing-reported",
        objects=(
            cluster(
                spec={"infrastructureRef": None, "controlPlaneRef": None}, deleting=True, finalizers=[FINALIZER, "other.example.com/x"]
            ),
        ),
        rows={"Ready (v1beta1)": "nothing-reported", "reconcileDelete": "completed"},
        old={"Ready": None},
    ),
]

DELETION_ROWS = [
    Scenario(
        name="hook-pending",
        objects=(
            cluster(INITIALIZED, spec={"topology": TOPOLOGY}, deleting=True),
            CLUSTER_CLASS,
            infrastructure(ownerReferences=[owner() | {"controller": True}]),
            control_plane(ownerReferences=[owner() | {"controller": True}]),
        ),
        observed={"features": {"RuntimeSDK": True, "ClusterTopology": True, "MachinePool": True}},
        rows={"reconcile": "deleting", "reconcileDelete": "hook-pending", "Deleting": "deleting"},
        conditions={"Deleting": ("True", "WaitingForBeforeDeleteHook", "Waiting for BeforeClusterDelete hook")},
    ),
    Scenario(
        name="descendants-unlisted",
        objects=(DELETING, *PROVIDERS),
        observed={"unlistable": ["MachineSet"]},
        rows={"reconcileDelete": "descendants-unlisted"},
        error="failed to list MachineSets",
        conditions={"Deleting": ("True", "InternalError", LOGS)},
    ),
    Scenario(
        name="children-unclear",
        objects=(DELETING, *PROVIDERS, child("MachineSet", "ms", ownerReferences=[owner(api_version="a/b/c")])),
        rows={"reconcileDelete": "children-unclear"},
        error="failed to extract direct descendants",
        conditions={"Deleting": ("True", "InternalError", LOGS)},
    ),
    Scenario(
        name="children-remain",
        objects=(
            DELETING,
            *PROVIDERS,
            child("MachineDeployment", "md"),
            child("MachineSet", "ms"),
            child("MachinePool", "mp"),
            machine("w"),
            machine("gone", deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0),
            machine("cp-1", control_plane=True),
        ),
        rows={"reconcileDelete": "children-remain"},
        requeue=5,
        actions=(
            ("delete", "MachinePool", "mp"),
            ("delete", "MachineDeployment", "md"),
            ("delete", "MachineSet", "ms"),
            ("delete", "Machine", "w"),
        ),
        conditions={
            "Deleting": (
                "True",
                "WaitingForWorkersDeletion",
                "* MachineDeployments: md\n* MachineSets: ms\n* MachinePools: mp\n* Worker Machines: gone, w",
            )
        },
    ),
    Scenario(
        name="children-remain-delete-fails",
        objects=(DELETING, *PROVIDERS, child("MachineDeployment", "md"), machine("w")),
        observed={"unwritable": [{"verb": "delete", "kind": "MachineDeployment"}]},
        rows={"reconcileDelete": "children-remain", "Deleting": "delete-failed"},
        error="failed to delete MachineDeployment",
        actions=(("delete", "Machine", "w"),),
        conditions={"Deleting": ("True", "InternalError", LOGS)},
    ),
    Scenario(
        name="descendants-pending",
        objects=(DELETING, *PROVIDERS, child("MachineSet", "ms", owned=False)),
        rows={"reconcileDelete": "descendants-pending"},
        requeue=5,
        conditions={"Deleting": ("True", "WaitingForWorkersDeletion", "* MachineSets: ms")},
    ),
    Scenario(
        name="control-plane-unreadable",
        objects=(DELETING, *PROVIDERS),
        observed={"unreadable": [{"kind": "ExampleControlPlane", "namespace": "ns", "name": "cp"}]},
        rows={"reconcileDelete": "control-plane-unreadable"},
        error="ExampleControlPlane",
        conditions={"Deleting": ("True", "InternalError", LOGS)},
    ),
    Scenario(
        name="control-plane-remains",
        objects=(DELETING, *PROVIDERS, machine("cp-1", control_plane=True)),
        rows={"reconcileDelete": "control-plane-remains"},
        actions=(("delete", "ExampleControlPlane", "cp"),),
        conditions={"Deleting": ("True", "WaitingForControlPlaneDeletion", "Waiting for ExampleControlPlane to be deleted")},
        status={"phase": "Deleting"},
    ),
    Scenario(
        name="control-plane-being-deleted",
        objects=(DELETING, infrastructure(), control_plane(deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)),
        rows={"reconcileDelete": "control-plane-remains"},
        conditions={"Deleting": ("True", "WaitingForControlPlaneDeletion", "Waiting for ExampleControlPlane to be deleted")},
    ),
    Scenario(
        name="infrastructure-unreadable",
        objects=(DELETING, infrastructure()),
        observed={"unreadable": [{"kind": "ExampleCluster", "namespace": "ns", "name": "infra"}]},
        rows={"reconcileDelete": "infrastructure-unreadable", "ControlPlaneReady (v1beta1)": "deleted"},
        error="ExampleCluster",
        conditions={"Deleting": ("True", "InternalError", LOGS)},
    ),
    Scenario(
        name="infrastructure-remains",
        objects=(DELETING, infrastructure()),
        rows={"reconcileDelete": "infrastructure-remains"},
        actions=(("delete", "ExampleCluster", "infra"),),
        conditions={"Deleting": ("True", "WaitingForInfrastructureDeletion", "Waiting for ExampleCluster to be deleted")},
    ),
    Scenario(
        name="infrastructure-being-deleted",
        objects=(DELETING, infrastructure(deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)),
        rows={"reconcileDelete": "infrastructure-remains"},
        conditions={"Deleting": ("True", "WaitingForInfrastructureDeletion", "Waiting for ExampleCluster to be deleted")},
    ),
    Scenario(
        name="hook-allows",
        objects=(
            cluster(INITIALIZED, spec={"topology": TOPOLOGY}, deleting=True, annotations={"runtime.cluster.x-k8s.io/ok-to-delete": ""}),
            CLUSTER_CLASS,
            infrastructure(ownerReferences=[owner() | {"controller": True}]),
            control_plane(ownerReferences=[owner() | {"controller": True}]),
        ),
        observed={"features": {"RuntimeSDK": True, "ClusterTopology": True, "MachinePool": True}},
        rows={"reconcileDelete": "control-plane-remains"},
        actions=(("delete", "ExampleControlPlane", "cp"),),
    ),
    Scenario(
        name="hooks-without-topology",
        objects=(DELETING, *PROVIDERS),
        observed={"features": {"RuntimeSDK": True, "ClusterTopology": True, "MachinePool": True}},
        rows={"reconcileDelete": "control-plane-remains"},
        actions=(("delete", "ExampleControlPlane", "cp"),),
    ),
    Scenario(
        name="child-already-gone",
        objects=(DELETING, *PROVIDERS, child("MachineDeployment", "md")),
        observed={"unwritable": [{"verb": "delete", "kind": "MachineDeployment", "error": "NotFound"}]},
        rows={"reconcileDelete": "children-remain", "Deleting": "deleting"},
        requeue=5,
    ),
    Scenario(
        name="deletion-completed",
        objects=(DELETING,),
        rows={"reconcileDelete": "completed", "InfrastructureReady (v1beta1)": "deleted"},
        gone=True,
    ),
    Scenario(
        name="deletion-completed-standalone",
        objects=(cluster(deleting=True, spec={"infrastructureRef": None, "controlPlaneRef": None}),),
        rows={"reconcileDelete": "completed"},
        gone=True,
    ),
]

KUBECONFIG_ROWS = [
    Scenario(
        name="kubeconfig-no-endpoint",
        objects=(cluster(spec=STANDALONE | {"controlPlaneEndpoint": None}), infrastructure(), ca_secret()),
        rows={"reconcileKubeconfig": "no-endpoint"},
    ),
    Scenario(name="kubeconfig-not-ours", objects=(cluster(), *PROVIDERS, ca_secret()), rows={"reconcileKubeconfig": "not-ours"}),
    Scenario(
        name="kubeconfig-unreadable",
        objects=(cluster(spec=STANDALONE), infrastructure(), ca_secret()),
        observed={"unreadable": [{"kind": "Secret", "namespace": "ns", "name": "c1-kubeconfig"}]},
        rows={"reconcileKubeconfig": "unreadable"},
        error="failed to retrieve Kubeconfig Secret",
    ),
    Scenario(
        name="kubeconfig-current",
        objects=(cluster(spec=STANDALONE), infrastructure(), ca_secret(), kubeconfig_secret(days_left=200)),
        rows={"reconcileKubeconfig": "current"},
        requeue=86400,
    ),
    Scenario(
        name="kubeconfig-of-someone-else",
        objects=(cluster(spec=STANDALONE), infrastructure(), ca_secret(), kubeconfig_secret(days_left=1, ours=False)),
        rows={"reconcileKubeconfig": "current"},
    ),
    Scenario(
        name="kubeconfig-renew",
        objects=(cluster(spec=STANDALONE), infrastructure(), ca_secret(), kubeconfig_secret(days_left=100)),
        rows={"reconcileKubeconfig": "renew"},
        requeue=3600,
        actions=(("patch", "Secret", "c1-kubeconfig"),),
    ),
    Scenario(
        name="kubeconfig-renewal-impossible",
        objects=(cluster(spec=STANDALONE), infrastructure(), kubeconfig_secret(days_left=100)),
        rows={"reconcileKubeconfig": "renewal-impossible"},
        requeue=3600,
    ),
    Scenario(
        name="kubeconfig-create",
        objects=(cluster(spec=STANDALONE, status=NEW), infrastructure(), ca_secret()),
        rows={"reconcileKubeconfig": "create"},
        actions=(("create", "Secret", "c1-kubeconfig"),),
    ),
    Scenario(
        name="kubeconfig-no-ca", objects=(cluster(spec=STANDALONE), infrastructure()), rows={"reconcileKubeconfig": "no-ca"}, requeue=30
    ),
    Scenario(
        name="kubeconfig-ca-unusable",
        objects=(cluster(spec=STANDALONE), infrastructure(), secret("ca")),
        rows={"reconcileKubeconfig": "ca-unusable"},
        error="CA of the cluster",
    ),
]


def machines(type: str, *, control_plane: bool, table: str, reasons: tuple[str, str, str]) -> list[Scenario]:
    """The rows of a table that aggregates a condition of Machines."""
    issue, unknown, fine = reasons
    old: Json = {"creationTimestamp": BEFORE}
    made = {
        "nobody": ((), ("True", "NoReplicas", "")),
        "all-fine": ((machine("m1", condition(type, "True"), control_plane=control_plane),), ("True", fine, "")),
        "issues": (
            (
                machine("m1", condition(type, "False", "R", "no"), control_plane=control_plane),
                machine("m2", control_plane=control_plane, **old),
            ),
            ("False", issue, f"* Machine m1: no\n* Machine m2: Condition {type} not yet reported"),
        ),
        "unknowns": (
            (machine("m1", control_plane=control_plane, **old),),
            ("Unknown", unknown, f"* Machine m1: Condition {type} not yet reported"),
        ),
        "aggregation-failed": ((machine("m1", bad(type), control_plane=control_plane),), ERROR),
    }
    return [
        Scenario(
            name=f"{table}-{row}", objects=(cluster(INITIALIZED), *PROVIDERS, *objects), rows={table: row}, conditions={table: expected}
        )
        for row, (objects, expected) in made.items()
    ]


def scalers(type: str, *, reasons: tuple[str, str, str]) -> list[Scenario]:
    """The rows of a table that aggregates what the control plane and the workers do."""
    issue, unknown, fine = reasons
    made = {
        "nobody": ((), ("False", fine, "")),
        "all-fine": ((child("MachineDeployment", "md", condition(type, "False")),), ("False", fine, "")),
        "issues": (
            (child("MachineDeployment", "md", condition(type, "True", "R", "now")),),
            ("True", issue, "* MachineDeployment md: now"),
        ),
        "unknowns": (
            (child("MachineDeployment", "md"),),
            ("Unknown", unknown, f"* MachineDeployment md: Condition {type} not yet reported"),
        ),
        "aggregation-failed": ((child("MachineDeployment", "md", bad(type)),), ERROR),
    }
    return [
        Scenario(name=f"{type}-{row}", objects=(cluster(INITIALIZED), *PROVIDERS, *objects), rows={type: row}, conditions={type: expected})
        for row, (objects, expected) in made.items()
    ]


WORKERS = {
    "nobody": ((), ("True", "NoWorkers", "")),
    "all-fine": ((child("MachineDeployment", "md", condition("Available", "True")),), ("True", "Available", "")),
    "issues": (
        (child("MachinePool", "mp", condition("Available", "False", "R", "no")),),
        ("False", "NotAvailable", "* MachinePool mp: no"),
    ),
    "unknowns": (
        (child("MachineDeployment", "md"), child("MachinePool", "silent")),
        ("Unknown", "AvailableUnknown", "* MachineDeployment md: Condition Available not yet reported"),
    ),
    "aggregation-failed": ((child("MachineDeployment", "md", bad("Available")),), ERROR),
}
READY = ("NotReady", "ReadyUnknown", "Ready")
UP_TO_DATE = ("NotUpToDate", "UpToDateUnknown", "UpToDate")
AGGREGATES = [
    *machines("Ready", control_plane=True, table="ControlPlaneMachinesReady", reasons=READY),
    *machines("Ready", control_plane=False, table="WorkerMachinesReady", reasons=READY),
    *machines("UpToDate", control_plane=True, table="ControlPlaneMachinesUpToDate", reasons=UP_TO_DATE),
    *machines("UpToDate", control_plane=False, table="WorkerMachinesUpToDate", reasons=UP_TO_DATE),
    *scalers("RollingOut", reasons=("RollingOut", "RollingOutUnknown", "NotRollingOut")),
    *scalers("ScalingUp", reasons=("ScalingUp", "ScalingUpUnknown", "NotScalingUp")),
    *scalers("ScalingDown", reasons=("ScalingDown", "ScalingDownUnknown", "NotScalingDown")),
    *(
        Scenario(
            name=f"WorkersAvailable-{row}",
            objects=(cluster(INITIALIZED), *PROVIDERS, *objects),
            rows={"WorkersAvailable": row},
            conditions={"WorkersAvailable": expected},
        )
        for row, (objects, expected) in WORKERS.items()
    ),
]


def probed(name: str, row: str, expected: tuple[str, str, str], *conditions: Json, **health: Any) -> Scenario:
    return Scenario(
        name=f"probe-{name}",
        objects=(cluster(INITIALIZED, *conditions), *PROVIDERS),
        observed={"workloadClusters": {"ns/c1": {"connected": False, **health}}},
        rows={"RemoteConnectionProbe": row},
        conditions={"RemoteConnectionProbe": expected},
    )


OTHERS = [
    probed(
        "kubeconfig-refused",
        "kubeconfig-refused",
        ("False", "ProbeFailed", "Secret c1-kubeconfig: users[u].user.exec: names a program"),
        refusal="Secret c1-kubeconfig: users[u].user.exec: names a program",
        consecutiveFailures=1,
    ),
    probed("not-established", "not-established", ("False", "ProbeFailed", "Remote connection not established yet"), consecutiveFailures=4),
    probed(
        "not-yet-tried-again",
        "not-yet-tried-again",
        ("True", "ProbeSucceeded", ""),
        condition("RemoteConnectionProbe", "True", "ProbeSucceeded"),
    ),
    probed("never-succeeded", "never-succeeded", ("False", "ProbeFailed", "Remote connection probe failed"), consecutiveFailures=5),
    probed(
        "lost",
        "lost",
        ("False", "ProbeFailed", "Remote connection probe failed, probe last succeeded at 2026-05-01T11:59:09Z"),
        lastProbeSuccess="2026-05-01T11:59:09Z",
    ),
    probed("connected", "connected", ("True", "ProbeSucceeded", ""), lastProbeSuccess="2026-05-01T11:59:10Z"),
    Scenario(
        name="remediating",
        objects=(cluster(INITIALIZED), *PROVIDERS, machine("m1", *TO_BE_REPLACED), machine("m2", SICK)),
        rows={"Remediating": "remediating"},
        conditions={"Remediating": ("True", "Remediating", "* Machine m1: soon")},
    ),
    Scenario(
        name="one-unhealthy",
        objects=(cluster(INITIALIZED), *PROVIDERS, machine("m1", SICK)),
        rows={"Remediating": "one-unhealthy"},
        conditions={"Remediating": ("False", "NotRemediating", "Machine m1 is not healthy (not to be remediated)")},
    ),
    Scenario(
        name="several-unhealthy",
        objects=(cluster(INITIALIZED), *PROVIDERS, machine("m2", SICK), machine("m1", SICK)),
        rows={"Remediating": "several-unhealthy"},
        conditions={"Remediating": ("False", "NotRemediating", "Machines m1, m2 are not healthy (not to be remediated)")},
    ),
    Scenario(
        name="none-unhealthy",
        objects=(cluster(INITIALIZED), *PROVIDERS),
        rows={"Remediating": "none-unhealthy"},
        conditions={"Remediating": ("False", "NotRemediating", "")},
    ),
    Scenario(
        name="available-unknown",
        objects=(cluster(INITIALIZED, spec={"availabilityGates": [{"conditionType": "Licence"}]}), *PROVIDERS),
        rows={"Available": "unknowns"},
        conditions={"Available": ("Unknown", "AvailableUnknown", "* Licence: Condition not yet reported")},
    ),
    Scenario(
        name="available-of-itself",
        objects=(cluster(INITIALIZED, spec={"availabilityGates": [{"conditionType": "Available"}]}), *PROVIDERS),
        rows={"Available": "summary-failed"},
        conditions={"Available": ERROR},
    ),
    Scenario(
        name="machine-owned-by-control-plane",
        objects=(
            cluster(INITIALIZED),
            *PROVIDERS,
            machine(
                "m1",
                condition("Ready", "False", "R", "no"),
                ownerReferences=[owner(CONTROL_PLANE["kind"], CONTROL_PLANE["name"], "u", "controlplane.example.com/v0")],
            ),
        ),
        rows={"ControlPlaneMachinesReady": "issues", "WorkerMachinesReady": "nobody"},
    ),
    Scenario(
        name="worker-with-node-is-no-control-plane",
        objects=(
            cluster(spec=STANDALONE, status=NEW),
            infrastructure(),
            secret("kubeconfig"),
            machine("w"),
            machine("cp", control_plane=True, node=False),
        ),
        rows={"ControlPlaneInitialized": "no-node-yet", "ControlPlaneInitialized (v1beta1)": "no-node-yet"},
    ),
    Scenario(
        name="new-silent-machine",
        objects=(
            cluster(INITIALIZED),
            *PROVIDERS,
            machine("m1", control_plane=True, creationTimestamp="2026-05-01T11:59:50Z", labels={CONTROL_PLANE_LABEL: ""}),
        ),
        rows={"ControlPlaneMachinesUpToDate": "nobody", "ControlPlaneMachinesReady": "unknowns"},
    ),
]

SCENARIOS = [*ENTRY, *FAILING_ENTRY, *INFRASTRUCTURE_ROWS, *CONTROL_PLANE_ROWS, *DELETION_ROWS, *KUBECONFIG_ROWS, *AGGREGATES, *OTHERS]
BY_NAME = {s.name: s for s in SCENARIOS}
assert len(BY_NAME) == len(SCENARIOS)
