"""What the seeds say of the Cluster controller, as data: tables cell by cell, flowcharts edge by edge."""

from __future__ import annotations

from dataclasses import dataclass

LOGS = "Please check controller logs for errors"
KEEP = ("", "", "")


@dataclass(frozen=True)
class SeedRow:
    """A row of a condition table: guard, (status, reason, message), next reconcile; and the row of ours that it became."""

    guard: str
    transition: tuple[str, str, str]
    row: str
    scenario: str
    requeue: float | None = None


# Seed 000: ControlPlaneInitialized.
CONTROL_PLANE_INITIALIZED = [
    SeedRow("ControlPlaneInitialized condition already True", KEEP, "already-initialized", "already-initialized"),
    SeedRow(
        "spec.controlPlaneRef not defined && spec.topology defined && DeletionTimestamp.IsZero()",
        ("Unknown", "DoesNotExist", "Waiting for cluster topology to be reconciled"),
        "topology-pending",
        "topology-refs-missing",
    ),
    SeedRow(
        "spec.controlPlaneRef not defined && spec.topology defined && !DeletionTimestamp.IsZero()",
        ("Unknown", "DoesNotExist", ""),
        "topology-deleting",
        "infra-topology-deleting",
    ),
    SeedRow(
        "spec.controlPlaneRef defined && controlPlane not found && error occurred (not NotFound)",
        ("Unknown", "InternalError", LOGS),
        "cp-unreadable",
        "cp-unreadable",
    ),
    SeedRow(
        "spec.controlPlaneRef defined && controlPlane not found (NotFound)",
        ("Unknown", "DoesNotExist", "<Kind> does not exist"),
        "cp-missing",
        "cp-missing",
    ),
    SeedRow(
        "spec.controlPlaneRef defined && controlPlane exists && status.initialized == true",
        ("True", "Initialized", ""),
        "cp-initialized",
        "cp-initialized",
    ),
    SeedRow(
        "spec.controlPlaneRef defined && controlPlane exists && status.initialized == false",
        ("False", "NotInitialized", "Control plane not yet initialized"),
        "cp-uninitialized",
        "cp-found",
    ),
    SeedRow(
        "spec.controlPlaneRef defined && controlPlane exists && error reading status.initialized (not field not found)",
        ("Unknown", "InternalError", LOGS),
        "cp-garbled",
        "cp-garbled",
    ),
    SeedRow(
        "spec.controlPlaneRef not defined && standalone machines && getDescendantsSucceeded == false",
        ("Unknown", "InternalError", LOGS),
        "machines-unlisted",
        "machines-unlisted",
    ),
    SeedRow(
        "spec.controlPlaneRef not defined && standalone machines && any machine has nodeRef",
        ("True", "Initialized", ""),
        "first-node-up",
        "first-node-up",
    ),
    SeedRow(
        "spec.controlPlaneRef not defined && standalone machines && no machine has nodeRef",
        ("False", "NotInitialized", "Waiting for the first control plane machine to have status.nodeRef set"),
        "no-node-yet",
        "cp-no-ref",
    ),
]

# Seed 003: ControlPlaneMachinesUpToDate. Ours is rendered whole in docs/tables/cluster.md, under the same name.
CONTROL_PLANE_MACHINES_UP_TO_DATE = [
    SeedRow("!getDescendantsSucceeded", ("Unknown", "InternalError", LOGS), "unlisted", "machines-unlisted"),
    SeedRow("len(controlPlaneMachines) == 0", ("True", "NoReplicas", ""), "nobody", "ControlPlaneMachinesUpToDate-nobody"),
    SeedRow("all control plane Machines have UpToDate=True", ("True", "UpToDate", ""), "all-fine", "ControlPlaneMachinesUpToDate-all-fine"),
    SeedRow(
        "any control plane Machine has UpToDate=False",
        ("False", "NotUpToDate", "<aggregated issues from control plane Machines>"),
        "issues",
        "ControlPlaneMachinesUpToDate-issues",
    ),
    SeedRow(
        "any control plane Machine has UpToDate=Unknown",
        ("Unknown", "UpToDateUnknown", "<aggregated unknown reasons>"),
        "unknowns",
        "ControlPlaneMachinesUpToDate-unknowns",
    ),
    SeedRow(
        "internal error during aggregation",
        ("Unknown", "InternalError", LOGS),
        "aggregation-failed",
        "ControlPlaneMachinesUpToDate-aggregation-failed",
    ),
]

# Words in which a guard of ours says the same as the seed's.
SAME_WORDS = {
    "spec.controlPlaneRef not defined && standalone machines && getDescendantsSucceeded == false": "spec.controlPlaneRef not defined && !getDescendantsSucceeded",
    "spec.controlPlaneRef not defined && standalone machines && any machine has nodeRef": "spec.controlPlaneRef not defined && any machine has nodeRef",
    "spec.controlPlaneRef not defined && standalone machines && no machine has nodeRef": "spec.controlPlaneRef not defined && !(any machine has nodeRef)",
}

# Where a transition of ours is not the seed's to the letter, and why.
DIFFERENT_TRANSITIONS = {
    ("ControlPlaneMachinesUpToDate", "all-fine"): "spec 003-3: messages of Machines that are up to date are shown, if they have any",
    ("ControlPlaneMachinesUpToDate", "issues"): "wording of the placeholder",
}


@dataclass(frozen=True)
class SeedLine:
    """A row of the KRTT or an edge of a flowchart: its words, and the scenario that hits it."""

    words: str
    scenario: str
    ruling: str = ""
    """The ruling under which we do otherwise than the words say."""


# Seed 001: KRTT, normal reconciliation.
NORMAL = [
    SeedLine("Cluster not found: return nil", "cluster-not-found"),
    SeedLine("Cluster without finalizer: add it, return", "finalizer-missing"),
    SeedLine("Cluster paused: Paused=True", "paused"),
    SeedLine("Topology defined, refs missing: wait, no change", "topology-refs-missing", "Topology set, refs missing, not deleting"),
    SeedLine("Pending, no InfraRef: InfrastructureProvisioned=true, Phase=Provisioning", "infra-no-ref", "No `infrastructureRef`"),
    SeedLine("Pending, InfraRef: owner ref and label, InfrastructureReady mirrors", "infra-found"),
    SeedLine("Infra not found: requeue after 30s, no change", "infra-missing", "Reason when a referenced object is missing"),
    SeedLine("Infra provisioned: copy endpoint and failure domains", "infra-provisioned"),
    SeedLine("CP not found: requeue after 30s, ControlPlaneReady=False", "cp-missing", "Control plane object NotFound, not deleting"),
    SeedLine("CP initialized: copy endpoint, ControlPlaneInitialized=True", "cp-initialized"),
    SeedLine(
        "No ControlPlaneRef, no Kubeconfig secret: generate it", "kubeconfig-create", "Kubeconfig Secret for stand-alone control planes"
    ),
    SeedLine("No ControlPlaneRef: control plane machine with NodeRef", "first-node-up"),
    SeedLine("Infra provisioned and CP initialized: Phase=Provisioned", "cp-initialized", "Phase `Provisioned`"),
]
# Seed 001: KRTT, deletion.
DELETION = [
    SeedLine("DeletionTimestamp: run always phases first", "control-plane-remains"),
    SeedLine("ok-to-delete annotation missing: WaitingForBeforeDeleteHook", "hook-pending"),
    SeedLine("getDescendants failed: InternalError, return", "descendants-unlisted"),
    SeedLine("Has owned descendants: delete those not deleting", "children-remain"),
    SeedLine(
        "objectsPendingDeleteCount > 0: WaitingForWorkersDeletion, requeue 5s",
        "descendants-pending",
        "Pending descendants when nothing is owned directly",
    ),
    SeedLine("CP still exists: delete it, WaitingForControlPlaneDeletion", "control-plane-remains"),
    SeedLine("Infra still exists: delete it, WaitingForInfrastructureDeletion", "infrastructure-remains"),
    SeedLine("CP and Infra gone: DeletionCompleted, remove finalizer", "deletion-completed"),
]
# Seed 001: KRTT, errors. The first two fail before the tables: `test_life.py`.
ERRORS = [
    SeedLine("Finalizer add failed: return error", "finalizer-cannot-be-added"),
    SeedLine("ClusterClass fetch failed: return error", "class-not-found"),
    SeedLine("InfrastructureProvisioned, infra not found: error", "infra-missing-after-provisioned"),
    SeedLine("ControlPlaneInitialized, CP not found: error", "cp-missing-after-initialized"),
    SeedLine("External object fetch error: 30s if not found, else error", "infra-unreadable"),
    SeedLine("Generic API error: requeue with error", "machines-unlisted"),
    SeedLine("filterOwnedDescendants error: InternalError", "children-unclear"),
    SeedLine(
        "Delete child error: InternalError, return error", "children-remain-delete-fails", "Child already gone when its delete is sent"
    ),
]

# Seed 001: flowcharts.
OVERVIEW = [
    SeedLine("Fetch -> Not Found -> return nil", "cluster-not-found"),
    SeedLine("Fetch -> Error -> return error", "cluster-cannot-be-read"),
    SeedLine("EnsureFinalizer -> Added -> return", "finalizer-missing"),
    SeedLine("EnsureFinalizer -> Error -> return", "finalizer-cannot-be-added"),
    SeedLine("EnsurePausedCondition -> Paused -> return", "paused"),
    SeedLine("EnsurePausedCondition -> Requeue -> return", "paused-condition-absent", "Paused False is written"),
    SeedLine("EnsurePausedCondition -> Error -> return", "paused-condition-cannot-be-written"),
    SeedLine("EnsurePausedCondition -> Not Paused -> ClusterClass", "not-paused"),
    SeedLine("Get ClusterClass -> Error -> return error", "class-not-found"),
    SeedLine("Topology Defined & Refs Missing -> wait", "topology-refs-missing"),
    SeedLine("Topology Defined & Refs Missing, deleting", "infra-topology-deleting", "Topology set, refs missing, object deleting"),
    SeedLine("No or Refs Ready -> Deleting? -> No -> reconcileNormal", "not-paused"),
    SeedLine("Deleting? -> Yes -> reconcileDelete", "control-plane-remains"),
]
INFRASTRUCTURE = [
    SeedLine("InfraRef Defined? -> No -> provisioned", "infra-no-ref"),
    SeedLine("Not Found -> Deleting? -> Yes -> tolerate", "infra-missing-deleting"),
    SeedLine("Not Found -> Was Provisioned? -> Yes -> error", "infra-missing-after-provisioned"),
    SeedLine("Not Found -> Was Provisioned? -> No -> 30s", "infra-missing"),
    SeedLine("Found -> owner ref and labels -> Provisioned? -> No -> wait", "infra-found"),
    SeedLine("Provisioned? -> Yes -> endpoint -> failure domains -> provisioned", "infra-provisioned"),
]
CONTROL_PLANE = [
    SeedLine("ControlPlaneRef Defined? -> No -> return", "cp-no-ref"),
    SeedLine("Not Found -> Deleting? -> Yes -> tolerate", "cp-missing-deleting"),
    SeedLine("Not Found -> Was Initialized? -> Yes -> error", "cp-missing-after-initialized"),
    SeedLine("Not Found -> Was Initialized? -> No -> 30s", "cp-missing"),
    SeedLine("Found -> owner ref and labels -> Initialized? -> No -> wait", "cp-found"),
    SeedLine("Initialized? -> Yes -> endpoint -> initialized", "cp-initialized"),
]
DELETE = [
    SeedLine("hooks enabled -> managed topology -> not ok to delete -> wait", "hook-pending"),
    SeedLine("hooks enabled -> managed topology -> ok to delete -> continue", "hook-allows"),
    SeedLine("hooks enabled -> no managed topology -> continue", "hooks-without-topology"),
    SeedLine("hooks disabled -> continue", "control-plane-remains"),
    SeedLine("getDescendantsSucceeded? -> No -> InternalError", "descendants-unlisted"),
    SeedLine("owned children -> delete those not deleting -> pending -> 5s", "children-remain"),
    SeedLine("Delete errors? -> Yes -> InternalError, error", "children-remain-delete-fails"),
    SeedLine("no owned children", "descendants-pending", "Pending descendants when nothing is owned directly"),
    SeedLine("ControlPlaneRef defined? -> No -> infrastructure", "infra-missing-never-provisioned-deleting"),
    SeedLine("controlPlane nil & NotFound -> ControlPlaneReady: Deleted", "cp-missing-deleting"),
    SeedLine("controlPlane read error -> InternalError", "control-plane-unreadable"),
    SeedLine("controlPlane exists, not deleting -> delete, wait", "control-plane-remains"),
    SeedLine("controlPlane exists, deleting -> wait", "control-plane-being-deleted"),
    SeedLine("InfrastructureRef defined? -> No -> completed", "deletion-completed-standalone"),
    SeedLine("infraCluster nil & NotFound -> InfraReady: Deleted", "deletion-completed"),
    SeedLine("infraCluster read error -> InternalError", "infrastructure-unreadable"),
    SeedLine("infraCluster exists, not deleting -> delete, wait", "infrastructure-remains"),
    SeedLine("infraCluster exists, deleting -> wait", "infrastructure-being-deleted"),
    SeedLine("completed -> remove finalizer", "deletion-completed"),
]
LINES = {
    "krtt-normal": NORMAL,
    "krtt-deletion": DELETION,
    "krtt-errors": ERRORS,
    "overview": OVERVIEW,
    "reconcileInfrastructure": INFRASTRUCTURE,
    "reconcileControlPlane": CONTROL_PLANE,
    "reconcileDelete": DELETE,
}

# The rulings on the Cluster, by topic, and the scenario or test that pins each.
RULINGS = {
    "Reason when a referenced object is missing": "infra-missing",
    "Which not-found flag feeds `ControlPlaneInitialized`": "cp-missing",
    'Where "initialized" is read on the control-plane object': "cp-initialized-by-old-contract",
    "Topology set, refs missing, object deleting": "infra-topology-deleting",
    "Topology set, refs missing, not deleting": "topology-refs-missing",
    "No `infrastructureRef`": "infra-no-ref",
    "Paused False is written": "paused-condition-absent",
    "Stand-alone control plane (no `controlPlaneRef`, no topology): `ControlPlaneAvailable`": "standalone-none-available",
    "Deleting, topology set, ClusterClass gone (NotFound)": "class-gone-deleting",
    "Phase `Provisioning`": "infra-no-ref",
    "Phase `Provisioned`": "cp-initialized",
    "Phase `Failed`": "terminal-failure",
    "Control plane object NotFound, not deleting": "cp-missing",
    "Kubeconfig Secret for stand-alone control planes": "kubeconfig-create",
    "Worker counters and worker conditions": "WorkersAvailable-issues",
    "Which Machines are control plane": "machine-owned-by-control-plane",
    "Pending descendants when nothing is owned directly": "descendants-pending",
    "Child already gone when its delete is sent": "child-already-gone",
    "`Please check controller logs for errors`": "infra-unreadable",
}
