"""The numbered edge cases of the Cluster controller's specification, one test each; and providers that misbehave."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from clusterwright.kubeadm.certificates import decode_certificate
from seeds.seed_scenarios import DELETING, INITIALIZED, NEW, PROVIDERS, STANDALONE, ca_secret, kubeconfig_secret, up_to_date
from seeds.seed_worlds import (
    BEFORE,
    CLUSTER_CLASS,
    CONTROL_PLANE,
    CRDS,
    FINALIZER,
    INFRASTRUCTURE,
    LABEL,
    NAME,
    OLD_CRDS,
    TOPOLOGY,
    Json,
    actions_of,
    child,
    cluster,
    condition,
    conditions_of,
    control_plane,
    crd,
    infrastructure,
    machine,
    old_conditions_of,
    one_pass,
    owner,
    secret,
)

LOGS = "Please check controller logs for errors"
READY = [condition(t, "True") for t in ("Ready",)]
NO_ENDPOINT: dict[str, Any] = {"controlPlaneEndpoint": None}


class Seen:
    """A pass, and short questions about it."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer
        self.object: Json = answer["object"] or {}
        self.status: Json = self.object.get("status", {})
        self.spec: Json = self.object.get("spec", {})
        self.conditions = conditions_of(answer)
        self.old = old_conditions_of(answer)
        self.actions = actions_of(answer)
        self.requeue = answer["requeueAfterSeconds"]
        self.error = answer["error"]
        self.initialization: Json = self.status.get("initialization", {})
        self.workers: Json = {k: v for k, v in self.status.get("workers", {}).items() if v is not None}
        self.plane: Json = {k: v for k, v in self.status.get("controlPlane", {}).items() if v is not None}


def look(*objects: Json, **more: Any) -> Seen:
    return Seen(one_pass(*objects, **more))


CASES: dict[str, Callable[[], bool]] = {}


def case(name: str) -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    def add(check: Callable[[], bool]) -> Callable[[], bool]:
        assert name not in CASES
        CASES[name] = check
        return check

    return add


# ------------------------------------------------------------------------ entry, pause, finalizer, phases


@case("001 another finalizer, deleting: own finalizer not added")
def _() -> bool:
    s = look(cluster(deleting=True, finalizers=["other.example.com/x"]), *PROVIDERS)
    return s.object["metadata"]["finalizers"] == ["other.example.com/x"] and ("delete", "ExampleControlPlane", "cp") in s.actions


@case("002 finalizer already there: pass continues")
def _() -> bool:
    return look(cluster(), *PROVIDERS).answer["rows"]["reconcile"] == "normal"


@case("005 second pass, nothing changed: no write")
def _() -> bool:
    first = look(cluster(), *PROVIDERS)
    second = look(first.object, *PROVIDERS)
    return second.object == first.object and second.actions == []


@case("006 generation bumped, not paused: same pass, observedGeneration raised")
def _() -> bool:
    s = look(cluster(generation=3), *PROVIDERS)
    paused = next(c for c in s.status["conditions"] if c["type"] == "Paused")
    return paused["observedGeneration"] == 3 and s.status["observedGeneration"] == 3


@case("007 generation bumped, paused: patched at once, pass stops")
def _() -> bool:
    paused = condition("Paused", "True", "Paused", "Cluster spec.paused is set to true") | {"observedGeneration": 2}
    s = look(cluster(paused, spec={"paused": True}, generation=3), *PROVIDERS)
    written = next(c for c in s.status["conditions"] if c["type"] == "Paused")
    return written["observedGeneration"] == 3 and "phase" not in s.status


@case("008 annotation paused with value false: paused")
def _() -> bool:
    s = look(cluster(annotations={"cluster.x-k8s.io/paused": "false"}), *PROVIDERS)
    return s.conditions["Paused"] == ("True", "Paused", "Cluster has the cluster.x-k8s.io/paused annotation")


@case("009 spec.paused and annotation: both sentences")
def _() -> bool:
    s = look(cluster(spec={"paused": True}, annotations={"cluster.x-k8s.io/paused": ""}), *PROVIDERS)
    return s.conditions["Paused"][2] == "Cluster spec.paused is set to true, Cluster has the cluster.x-k8s.io/paused annotation"


@case("010 deleting and paused: nothing is deleted")
def _() -> bool:
    s = look(cluster(deleting=True, spec={"paused": True}), *PROVIDERS)
    return s.actions == [] and s.conditions["Paused"][0] == "True"


@case("011 infrastructure errors, control plane waits: all phases run, error without requeue")
def _() -> bool:
    s = look(
        cluster(status=NEW), infrastructure(), observed_only(), unreadable=[{"kind": "ExampleCluster", "namespace": "ns", "name": "infra"}]
    )
    return bool(s.error) and s.requeue is None and s.conditions["ControlPlaneAvailable"][1] == "DoesNotExist"


def observed_only() -> Json:
    """Nothing: a Secret that nobody asks for."""
    return secret("unrelated")


@case("012 topology, deleting, class gone: deletion goes on (ruling)")
def _() -> bool:
    s = look(cluster(INITIALIZED, spec={"topology": TOPOLOGY}, deleting=True))
    return s.answer["object"] is None and not s.error


@case("017 provisioned without endpoint: endpoint stays empty")
def _() -> bool:
    s = look(cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(), control_plane(initialized=False))
    return "controlPlaneEndpoint" not in s.spec and s.initialization["infrastructureProvisioned"] is True


@case("018 provisioned with endpoint: copied")
def _() -> bool:
    s = look(
        cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}), control_plane()
    )
    return s.spec["controlPlaneEndpoint"] == {"host": "h", "port": 1}


@case("019 endpoint valid, infrastructure shows another and is no longer provisioned: unchanged")
def _() -> bool:
    s = look(cluster(), infrastructure(provisioned=False, spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}), control_plane())
    return s.spec["controlPlaneEndpoint"]["host"] == "10.0.0.10" and s.initialization["infrastructureProvisioned"] is True


@case("020 infrastructure deleting, never provisioned: endpoint not copied")
def _() -> bool:
    infra = infrastructure(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}, deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)
    s = look(cluster(spec=NO_ENDPOINT, status=NEW), infra, control_plane(initialized=False))
    return "controlPlaneEndpoint" not in s.spec and "infrastructureProvisioned" not in s.initialization


@case("021 no failureDomains any more: emptied")
def _() -> bool:
    return "failureDomains" not in look(cluster(status={"failureDomains": [{"name": "old", "controlPlane": True}]}), *PROVIDERS).status


@case("022 other failureDomains: replaced")
def _() -> bool:
    s = look(
        cluster(status={"failureDomains": [{"name": "old"}]}),
        infrastructure(status={"failureDomains": [{"name": "n", "attributes": {"a": "b"}}]}),
        control_plane(),
    )
    return s.status["failureDomains"] == [{"name": "n", "controlPlane": False, "attributes": {"a": "b"}}]


@case("023 failureDomains of the other contract: error, both ways")
def _() -> bool:
    new = look(cluster(), infrastructure(status={"failureDomains": {"a": {}}}), control_plane())
    old = look(
        cluster(),
        infrastructure(provisioned=None, status={"ready": True, "failureDomains": [{"name": "a"}]}),
        control_plane(initialized=None, status={"initialized": True}),
        crds=OLD_CRDS,
    )
    return "failureDomains" in new.error and "failureDomains" in old.error


@case("025 only the v1beta1 label: v1beta1 paths")
def _() -> bool:
    infra = infrastructure(provisioned=None, status={"ready": True, "failureDomains": {"b": {"controlPlane": True}, "a": {}}})
    s = look(cluster(status=NEW), infra, control_plane(initialized=None, status={"initialized": True}), crds=OLD_CRDS)
    return s.initialization == {"infrastructureProvisioned": True, "controlPlaneInitialized": True} and [
        d["name"] for d in s.status["failureDomains"]
    ] == ["a", "b"]


@case("026 both labels: v1beta2 wins, highest version of its list")
def _() -> bool:
    definition = crd(INFRASTRUCTURE, v1beta2="v1alpha9_v1_v1beta3", v1beta1="v2")
    s = look(cluster(status=NEW), *PROVIDERS, crds=[definition, CRDS[1]])
    return s.initialization["infrastructureProvisioned"] is True


@case("027 CRD missing or without labels: an error, no 30 s")
def _() -> bool:
    missing = look(cluster(), *PROVIDERS, crds=[CRDS[1]])
    bare = look(cluster(), *PROVIDERS, crds=[crd(INFRASTRUCTURE), CRDS[1]])
    return all(s.error and s.requeue is None and s.conditions["InfrastructureReady"][1] == "InternalError" for s in (missing, bare))


@case("028 topology: the Cluster is the controller of both")
def _() -> bool:
    s = look(cluster(spec={"topology": TOPOLOGY}), CLUSTER_CLASS, *PROVIDERS)
    owners = [o["metadata"]["ownerReferences"][0] for o in s.answer["others"].values()]
    return len(owners) == 2 and all(o["controller"] is True and o["blockOwnerDeletion"] is True for o in owners)


@case("029 no topology: plain owner, and the label")
def _() -> bool:
    bare: Json = {"labels": None, "ownerReferences": []}
    s = look(cluster(), infrastructure(**bare), control_plane(**bare))
    return all(
        "controller" not in o["metadata"]["ownerReferences"][0] and o["metadata"]["labels"][LABEL] == NAME
        for o in s.answer["others"].values()
    )


@case("031 control plane annotated as paused: the phase works")
def _() -> bool:
    return (
        look(cluster(status=NEW), infrastructure(), control_plane(annotations={"cluster.x-k8s.io/paused": ""})).initialization[
            "controlPlaneInitialized"
        ]
        is True
    )


@case("032 initialized without Ready condition: both v1beta1 conditions True")
def _() -> bool:
    s = look(cluster(status=NEW), infrastructure(), control_plane(conditions=[]))
    return s.old["ControlPlaneReady"][0] == s.old["ControlPlaneInitialized"][0] == "True"


@case("033 no longer initialized: latched, endpoint unchanged")
def _() -> bool:
    s = look(
        cluster(INITIALIZED), infrastructure(), control_plane(initialized=False, spec={"controlPlaneEndpoint": {"host": "h", "port": 1}})
    )
    return s.initialization["controlPlaneInitialized"] is True and s.spec["controlPlaneEndpoint"]["host"] == "10.0.0.10"


@case("034 control plane deleting: nothing is taken from it")
def _() -> bool:
    plane = control_plane(spec={"controlPlaneEndpoint": {"host": "h", "port": 1}}, deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)
    s = look(cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(), plane)
    return (
        "controlPlaneEndpoint" not in s.spec
        and "controlPlaneInitialized" not in s.initialization
        and "ControlPlaneInitialized" not in s.old
    )


@case("038 control plane reference: v1beta1 stand-alone check skipped")
def _() -> bool:
    return "ControlPlaneInitialized" not in look(cluster(status=NEW), infrastructure(), machine("m", control_plane=True)).old


# ------------------------------------------------------------------------------------------------ deletion


def many(kind: str, prefix: str, count: int) -> list[Json]:
    return [child(kind, f"{prefix}-{n}", deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0) for n in range(count)]


def crowd() -> list[Json]:
    gone: Json = {"deletionTimestamp": BEFORE, "deletionGracePeriodSeconds": 0}
    workers = [machine(f"w-{n}", **gone) for n in range(8)]
    planes = [machine(f"cp-{n}", control_plane=True, **gone) for n in range(3)]
    return [*many("MachineDeployment", "md", 2), *many("MachineSet", "ms", 2), *many("MachinePool", "mp", 2), *workers, *planes]


WAITING = "* MachineDeployments: md-0, md-1\n* MachineSets: ms-0, ms-1\n* MachinePools: mp-0, mp-1\n* Worker Machines: w-0, w-1, w-2, w-3, w-4, ... (3 more)"


@case("043 seventeen pending without control plane reference")
def _() -> bool:
    s = look(cluster(deleting=True, spec=STANDALONE), infrastructure(), *crowd())
    return (
        s.conditions["Deleting"] == ("True", "WaitingForWorkersDeletion", "* Control plane Machines: cp-0, cp-1, cp-2\n" + WAITING)
        and s.requeue == 5
    )


@case("044 the same with control plane reference")
def _() -> bool:
    return look(DELETING, *PROVIDERS, *crowd()).conditions["Deleting"][2] == WAITING


@case("045 owned children in order, control-plane Machines last")
def _() -> bool:
    objects = [
        child("MachineSet", "ms"),
        child("MachinePool", "mp"),
        child("MachineDeployment", "md"),
        machine("w"),
        machine("cp", control_plane=True),
        machine("free", owned=False),
    ]
    s = look(cluster(deleting=True, spec=STANDALONE), infrastructure(), *objects)
    return [(k, n) for _, k, n in s.actions] == [
        ("MachinePool", "mp"),
        ("MachineDeployment", "md"),
        ("MachineSet", "ms"),
        ("Machine", "w"),
        ("Machine", "cp"),
    ]


@case("047 only MachineSets of others left: nothing deleted, still 5 s")
def _() -> bool:
    s = look(DELETING, *PROVIDERS, child("MachineSet", "ms", owned=False))
    return s.actions == [] and s.requeue == 5


@case("048 child already deleting: not deleted again")
def _() -> bool:
    s = look(DELETING, *PROVIDERS, child("MachineSet", "ms", deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0))
    return s.actions == [] and s.requeue == 5


@case("049 the last finalizer goes: no error although the object is gone")
def _() -> bool:
    s = look(DELETING)
    return s.answer["object"] is None and not s.error


# ---------------------------------------------------------------------------------------------- conditions


@case("050 Ready True without reason")
def _() -> bool:
    s = look(cluster(), infrastructure(conditions=[{"type": "Ready", "status": "True", "message": "m"}]), control_plane())
    return s.conditions["InfrastructureReady"] == ("True", "Ready", "m")


@case("052 read error while deleting")
def _() -> bool:
    s = look(DELETING, *PROVIDERS, unreadable=[{"kind": "ExampleCluster", "namespace": "ns", "name": "infra"}])
    return s.conditions["InfrastructureReady"] == ("Unknown", "InternalError", LOGS)


@case("054 control plane without the field")
def _() -> bool:
    return (
        look(cluster(status=NEW), infrastructure(), control_plane(initialized=None)).conditions["ControlPlaneInitialized"][1]
        == "NotInitialized"
    )


@case("057 two False, one Unknown, one True: issues first, True not shown")
def _() -> bool:
    machines = [
        machine("a", condition("Ready", "Unknown", "R", "hm")),
        machine("b", condition("Ready", "False", "R", "no")),
        machine("c", condition("Ready", "False", "R", "never")),
        machine("d", condition("Ready", "True", "R", "yes")),
    ]
    s = look(cluster(INITIALIZED), *PROVIDERS, *machines)
    return s.conditions["WorkerMachinesReady"] == ("False", "NotReady", "* Machine b: no\n* Machine c: never\n* Machine a: hm")


@case("058 two silent Machines, one created 5 s ago: only the older counts")
def _() -> bool:
    s = look(cluster(INITIALIZED), *PROVIDERS, machine("old"), machine("new", creationTimestamp="2026-05-01T11:59:55Z"))
    return s.conditions["WorkerMachinesUpToDate"][2] == "* Machine old: Condition UpToDate not yet reported"


@case("059 same issue twice, two silent: grouped, issues first")
def _() -> bool:
    no = up_to_date("False", "R", "no")
    s = look(cluster(INITIALIZED), *PROVIDERS, machine("a", no), machine("b", no), machine("c"), machine("d"))
    return s.conditions["WorkerMachinesUpToDate"][2] == "* Machines a, b: no\n* Machines c, d: Condition UpToDate not yet reported"


@case("060 neither reports RollingOut: only the MachineDeployment line")
def _() -> bool:
    s = look(cluster(INITIALIZED), *PROVIDERS, child("MachineDeployment", "md"))
    return s.conditions["RollingOut"] == ("Unknown", "RollingOutUnknown", "* MachineDeployment md: Condition RollingOut not yet reported")


@case("061 control plane missing, no workers: nothing scales")
def _() -> bool:
    s = look(cluster(status=NEW), infrastructure())
    return all(s.conditions[t][0] == "False" for t in ("RollingOut", "ScalingUp", "ScalingDown"))


@case("062 three kinds and an owned MachineSet scaling: budget of three")
def _() -> bool:
    up = condition("ScalingUp", "True", "R", "up")
    more = [
        child("MachineDeployment", "md", condition("ScalingUp", "True", "R", "md up")),
        child("MachinePool", "mp", condition("ScalingUp", "True", "R", "mp up")),
        child("MachineSet", "ms", condition("ScalingUp", "True", "R", "ms up")),
    ]
    s = look(cluster(INITIALIZED), infrastructure(), control_plane(conditions=[up]), *more)
    return (
        s.conditions["ScalingUp"][2]
        == "* ExampleControlPlane cp: up\n* MachineDeployment md: md up\n* MachinePool mp: mp up\nAnd 1 MachineSet with other issues"
    )


@case("063 MachineSet of another owner scaling: ignored")
def _() -> bool:
    s = look(cluster(INITIALIZED), *PROVIDERS, child("MachineSet", "ms", condition("ScalingUp", "True", "R", "x"), owned=False))
    return s.conditions["ScalingUp"] == ("False", "NotScalingUp", "")


@case("069 Available of a Cluster that reports nothing else: computed from this pass")
def _() -> bool:
    return look(cluster(), *PROVIDERS).conditions["Available"] == ("True", "Available", "")


@case("070 topology, TopologyReconciled missing: Unknown, one line")
def _() -> bool:
    bound = [owner() | {"controller": True}]
    s = look(
        cluster(INITIALIZED, spec={"topology": TOPOLOGY}),
        CLUSTER_CLASS,
        infrastructure(ownerReferences=bound),
        control_plane(ownerReferences=bound),
    )
    return s.conditions["Available"] == ("Unknown", "AvailableUnknown", "* TopologyReconciled: Condition not yet reported")


@case("071 topology behind: information; with an issue it is dropped")
def _() -> bool:
    behind = condition("TopologyReconciled", "False", "ClusterUpgrading", "upgrading")
    fine = look(cluster(INITIALIZED, behind), *PROVIDERS).conditions["Available"]
    broken = look(
        cluster(INITIALIZED, behind), infrastructure(), control_plane(conditions=[condition("Available", "False", "R", "no")])
    ).conditions["Available"]
    return fine == ("True", "Available", "* TopologyReconciled: upgrading") and broken[2] == "* ControlPlaneAvailable: no"


@case("072 ClusterClass not reconciled: an issue")
def _() -> bool:
    return (
        look(cluster(INITIALIZED, condition("TopologyReconciled", "False", "ClusterClassNotReconciled", "no")), *PROVIDERS).conditions[
            "Available"
        ][0]
        == "False"
    )


@case("073 gates on Cluster and class: only the Cluster's")
def _() -> bool:
    bound = [owner() | {"controller": True}]
    class_ = copy.deepcopy(CLUSTER_CLASS) | {"spec": {"availabilityGates": [{"conditionType": "OfClass"}]}}
    providers = (infrastructure(ownerReferences=bound), control_plane(ownerReferences=bound))
    done = condition("TopologyReconciled", "True")
    own = look(cluster(INITIALIZED, done, spec={"topology": TOPOLOGY, "availabilityGates": [{"conditionType": "Own"}]}), class_, *providers)
    inherited = look(cluster(INITIALIZED, done, spec={"topology": TOPOLOGY}), class_, *providers)
    return (
        own.conditions["Available"][2] == "* Own: Condition not yet reported"
        and inherited.conditions["Available"][2] == "* OfClass: Condition not yet reported"
    )


@case("074 gate of negative polarity that is True: an issue")
def _() -> bool:
    s = look(
        cluster(
            INITIALIZED,
            condition("Frozen", "True", "R", "ice"),
            spec={"availabilityGates": [{"conditionType": "Frozen", "polarity": "Negative"}]},
        ),
        *PROVIDERS,
    )
    return s.conditions["Available"] == ("False", "NotAvailable", "* Frozen: ice")


@case("075 deleting, both objects gone: only the Deleting line")
def _() -> bool:
    s = look(cluster(INITIALIZED, deleting=True), child("MachineSet", "ms"))
    return s.conditions["Available"] == ("False", "NotAvailable", "* Deleting:\n  * MachineSets: ms")


# ----------------------------------------------------------------------------------------- counters, phase


@case("077 control plane missing: no counters")
def _() -> bool:
    return look(cluster(INITIALIZED, status={"controlPlane": {"replicas": 3}}), infrastructure()).plane == {}


@case("078 zero is zero")
def _() -> bool:
    return look(cluster(), infrastructure(), control_plane(status={"upToDateReplicas": 0})).plane["upToDateReplicas"] == 0


@case("079 stand-alone: five Machines, two ready, one available, three up to date")
def _() -> bool:
    yes = [["Ready", "UpToDate"], ["Ready", "UpToDate", "Available"], ["UpToDate"], [], []]
    machines = [machine(f"m{n}", *(condition(t, "True") for t in types), control_plane=True) for n, types in enumerate(yes)]
    s = look(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig"), *machines)
    return s.plane == {"desiredReplicas": 5, "replicas": 5, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3}


@case("080 stand-alone without Machines: no counters")
def _() -> bool:
    return look(cluster(spec=STANDALONE), infrastructure(), secret("kubeconfig")).plane == {}


@case("081 nobody counts: no worker counters")
def _() -> bool:
    s = look(
        cluster(),
        *PROVIDERS,
        child("MachineDeployment", "md", replicas=None),
        child("MachineSet", "ms", replicas=None),
        machine("m", owned=False),
    )
    return s.workers == {}


@case("082 provisioned, no endpoint: Provisioning until initialized (ruling)")
def _() -> bool:
    return look(cluster(spec=NO_ENDPOINT, status=NEW), infrastructure(), control_plane(initialized=False)).status["phase"] == "Provisioning"


@case("083 no infrastructure reference, control plane initialized: Provisioned")
def _() -> bool:
    return look(cluster(spec={"infrastructureRef": None}, status=NEW), control_plane()).status["phase"] == "Provisioned"


@case("111 kubeconfig of an IPv6 endpoint")
def _() -> bool:
    s = look(cluster(spec=STANDALONE | {"controlPlaneEndpoint": {"host": "fd00::1", "port": 6443}}), infrastructure(), ca_secret())
    document = yaml.safe_load(s.answer["data"]["Secret/c1-kubeconfig/value"])
    certificate = base64.b64decode(document["users"][0]["user"]["client-certificate-data"])
    return document["clusters"][0]["cluster"]["server"] == "https://[fd00::1]:6443" and b"CERTIFICATE" in certificate


@case("112 a renewed client certificate is good for a year and the server stays")
def _() -> bool:
    s = look(
        cluster(spec=STANDALONE | {"controlPlaneEndpoint": {"host": "elsewhere", "port": 1}}),
        infrastructure(),
        ca_secret(),
        kubeconfig_secret(days_left=100),
    )
    document = yaml.safe_load(s.answer["data"]["Secret/c1-kubeconfig/value"])
    certificate = decode_certificate(base64.b64decode(document["users"][0]["user"]["client-certificate-data"]))
    left = certificate.not_valid_after_utc - datetime.fromisoformat("2026-05-01T12:00:00Z")
    return left == timedelta(days=365) and document["clusters"][0]["cluster"]["server"] == "https://10.0.0.10:6443"


# -------------------------------------------------------------------------------- providers that misbehave

HUGE = "x" * 40_000
BAD_STATUSES: list[Any] = [
    "text",
    7,
    [],
    ["x"],
    {"conditions": "x"},
    {"conditions": {"a": 1}},
    {"conditions": [None, 1, [], {}]},
    {"v1beta2": 5},
]


@case("provider with a status of any type: a truthful condition, no crash")
def _() -> bool:
    for status in BAD_STATUSES:
        infra = infrastructure()
        infra["status"] = status
        s = look(cluster(INITIALIZED), infra, control_plane())
        if s.conditions["InfrastructureReady"] == ("", "", "") or "Traceback" in (s.error or ""):
            return False
    return True


@case("provider with a spec of any type")
def _() -> bool:
    for spec in ["text", 7, [], {"controlPlaneEndpoint": []}, {"controlPlaneEndpoint": {"host": {}, "port": "x"}}, {"replicas": "three"}]:
        infra, plane = infrastructure(), control_plane()
        infra["spec"] = plane["spec"] = spec
        s = look(cluster(INITIALIZED, spec=NO_ENDPOINT, status=NEW), infra, plane)
        if not {"Available", "InfrastructureReady", "ControlPlaneAvailable"} <= s.conditions.keys():
            return False
    return True


@case("conditions without reasons and with absurd sizes")
def _() -> bool:
    loud = [{"type": "Ready", "status": "False", "message": HUGE}, *({"type": f"T{n}", "status": "True"} for n in range(500))]
    s = look(cluster(INITIALIZED), infrastructure(conditions=loud), control_plane(conditions=[{"type": "Available", "status": "False"}]))
    return (
        s.conditions["InfrastructureReady"][:2] == ("False", "NoReasonReported")
        and s.conditions["ControlPlaneAvailable"] == ("False", "NoReasonReported", "")
        and not s.error
    )


@case("messages are cut to what the API server takes")
def _() -> bool:
    loud = condition("Ready", "False", "R", HUGE)
    s = look(cluster(INITIALIZED), infrastructure(conditions=[loud]), control_plane(), machine("m", loud))
    return all(len(message) <= 32768 for _, _, message in s.conditions.values())


@case("reasons that the API server would refuse are replaced")
def _() -> bool:
    s = look(cluster(INITIALIZED), infrastructure(conditions=[condition("Ready", "False", "not a reason!", "m")]), control_plane())
    return s.conditions["InfrastructureReady"] == ("False", "InvalidReasonReported", "not a reason!: m")


@case("failure domains that the Cluster could not hold")
def _() -> bool:
    twice = look(cluster(), infrastructure(status={"failureDomains": [{"name": "a"}, {"name": "a"}]}), control_plane())
    nameless = look(cluster(), infrastructure(status={"failureDomains": [{"controlPlane": True}]}), control_plane())
    return all("failureDomains" in s.error and "failureDomains" not in s.status and "Available" in s.conditions for s in (twice, nameless))


@case("a descendant that cannot be understood: unknown, not a crash")
def _() -> bool:
    odd = machine("odd")
    odd["status"] = {"conditions": "none of your business"}
    s = look(cluster(INITIALIZED), *PROVIDERS, odd)
    return "failed to list Machines" in s.error and s.conditions["WorkerMachinesReady"] == ("Unknown", "InternalError", LOGS)


@case("a Secret that cannot be understood")
def _() -> bool:
    odd = secret("kubeconfig") | {"data": {"value": 7}}
    s = look(cluster(spec=STANDALONE), infrastructure(), odd)
    return "kubeconfig" in s.error.lower() and "Available" in s.conditions


@case("failureReason of a wrong type")
def _() -> bool:
    s = look(cluster(INITIALIZED), infrastructure(status={"failureReason": {"a": 1}}), control_plane())
    return s.conditions["InfrastructureReady"] == ("Unknown", "InternalError", LOGS) and "failureReason" in s.error


@case("references that name nothing that can be")
def _() -> bool:
    strange = {**CONTROL_PLANE, "kind": "", "name": "cp"}
    s = look(cluster(INITIALIZED, spec={"controlPlaneRef": strange}), infrastructure())
    return s.conditions["ControlPlaneAvailable"][0] == "Unknown" and bool(s.error)


@case("metadata of a provider that cannot be understood")
def _() -> bool:
    infra = infrastructure(labels={LABEL: NAME})
    infra["metadata"]["annotations"] = {"a": "b"}
    infra["metadata"]["ownerReferences"] = [owner() | {"controller": False}]
    s = look(cluster(INITIALIZED, finalizers=[FINALIZER]), infra, control_plane())
    return not s.error


@case("a reference without a name: no object can have it, and nothing else is taken for it")
def _() -> bool:
    nameless = {**INFRASTRUCTURE, "name": ""}
    s = look(cluster(INITIALIZED, spec={"infrastructureRef": nameless}, deleting=True), infrastructure(), control_plane())
    t = look(cluster(spec={"infrastructureRef": nameless}, status=NEW), infrastructure(), control_plane())
    return (
        s.conditions["InfrastructureReady"][1] in {"ObjectDeleted", "DoesNotExist"}
        and not any(kind == INFRASTRUCTURE["kind"] for _, kind, _ in s.actions)
        and t.conditions["InfrastructureReady"][:2] == ("False", "DoesNotExist")
    )


@case("unhealthy pool Machines are their pool's concern, labelled control plane or not")
def _() -> bool:
    unhealthy = condition("HealthCheckSucceeded", "False")
    pooled = {LABEL: NAME, "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/pool-name": "pool"}
    s = look(cluster(INITIALIZED), *PROVIDERS, machine("a", unhealthy, labels=pooled), machine("b", unhealthy))
    return s.conditions["Remediating"] == ("False", "NotRemediating", "Machine b is not healthy (not to be remediated)")


@case("where only the label is missing, the owner reference becomes what we would write")
def _() -> bool:
    infra = infrastructure(labels={LABEL: "another"}, ownerReferences=[owner() | {"controller": False, "blockOwnerDeletion": True}])
    metadata = look(cluster(INITIALIZED), infra, control_plane()).answer["others"][f"{INFRASTRUCTURE['kind']}/{INFRASTRUCTURE['name']}"][
        "metadata"
    ]
    return metadata["labels"][LABEL] == NAME and metadata["ownerReferences"] == [owner()]


@case("a kubeconfig Secret that appears while ours is made: the pass fails and looks again")
def _() -> bool:
    refused = [{"verb": "create", "kind": "Secret", "error": "AlreadyExists"}]
    s = look(cluster(INITIALIZED, spec=STANDALONE), infrastructure(), ca_secret(), machine("m", control_plane=True), unwritable=refused)
    return bool(s.error) and not s.actions


@case("fields of an endpoint or a failure domain that are null are not there")
def _() -> bool:
    said = {"failureDomains": [{"name": "a", "controlPlane": None, "attributes": None}]}
    infra = infrastructure(spec={"controlPlaneEndpoint": {"host": "h", "port": None}}, status=said)
    s = look(cluster(INITIALIZED, spec=NO_ENDPOINT), infra, control_plane())
    return not s.error and s.status["failureDomains"] == [{"name": "a", "controlPlane": False}]


@case("a definition whose spec is nonsense still tells its contract by its labels")
def _() -> bool:
    def broken(path: str, value: Any) -> list[Json]:
        made = copy.deepcopy(CRDS)
        for definition in made:
            definition["spec"][path] = value
        return made

    odd = [
        ("versions", []),
        ("versions", ["v1"]),
        ("versions", [{"name": "v1", "schema": 7}]),
        ("names", {}),
        ("names", {"kind": 1}),
        ("group", []),
    ]
    passes = [look(cluster(INITIALIZED), *PROVIDERS, crds=broken(path, value)) for path, value in odd]
    return all(s.conditions["InfrastructureReady"][0] == "True" and not s.error for s in passes)


@case("an annotation without a value is an empty one")
def _() -> bool:
    s = look(cluster(INITIALIZED, annotations={"example.com/note": None}), *PROVIDERS)
    return not s.error and s.object["metadata"]["annotations"] == {"example.com/note": ""}


@case("the last successful probe is told in UTC")
def _() -> bool:
    late = {"workloadClusters": {f"ns/{NAME}": {"connected": True, "lastProbeSuccess": "2026-05-01T13:00:00+02:00"}}}
    s = look(cluster(INITIALIZED), *PROVIDERS, **late)
    return s.conditions["RemoteConnectionProbe"][2].endswith("probe last succeeded at 2026-05-01T11:00:00Z")


@pytest.mark.parametrize("name", sorted(CASES))
def test_edge_case(name: str) -> None:
    assert CASES[name]()
