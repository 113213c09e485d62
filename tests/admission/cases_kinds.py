"""Cases of Machines, their owners and checks, resource sets, extensions, addresses, Dev infrastructure; and of all defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.admission_cases import CLAIM, POOL_REF, SELECTOR, Case, Json, case, of_class, taint, variable, without
from clusterwright.admission.ipam import Claim
from clusterwright.kubeadm.naming import label_value

BAD_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "In"}]}
NO_BOOTSTRAP = {"bootstrap": {"configRef": None}}
MIN, MAX = (f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{which}-size" for which in ("min", "max"))
SKIP = "machineset.cluster.x-k8s.io/skip-preflight-checks"


def worker(spec: Json) -> Json:
    """A change of the Machines that are made from a template."""
    return {"spec": {"template": {"spec": spec}}}


def _taints(id: str, kind: str, put: Any, at: str, *, workers: bool = False) -> Iterator[Case]:
    good = put(taint("example.com/a"))
    keys = {
        "TNT-2": "node.cluster.x-k8s.io/uninitialized",
        "TNT-3": "node.cluster.x-k8s.io/outdated-revision",
        "TNT-4": "node.kubernetes.io/not-ready",
        "TNT-5": "node.cloudprovider.kubernetes.io/x",
        "TNT-6": "node-role.kubernetes.io/master",
        "TNT-7": "-bad",
        **({"TNT-8": "node-role.kubernetes.io/control-plane"} if workers else {}),
    }
    yield from case(f"{id} TNT-1", kind, good, at, good, gates=without("MachineTaintPropagation"))
    for rule, key in keys.items():
        keeps = put(taint("node.kubernetes.io/out-of-service")) if rule == "TNT-4" else good
        yield from case(rule, kind, put(taint(key)), f"{at}[0].key", keeps)


def _metadata(ids: str, kind: str, put: Any, at: str, **more: Any) -> Iterator[Case]:
    good = put({"labels": {"example.com/a": "b"}, "annotations": {"Example.com/A": "b c"}})
    yield from case(f"{ids} MET-1", kind, put({"labels": {"a": "$"}}), f"{at}.labels", good, **more)
    yield from case("MET-2", kind, put({"annotations": {"a b": "c"}}), f"{at}.annotations", good, **more)
    yield from case("MET-2", kind, put({"annotations": {"a": "x" * 262144}}), f"{at}.annotations", good, **more)


def _naming(ids: str, kind: str, put: Any, at: str, variable: str, **more: Any) -> Iterator[Case]:
    good = put({"template": f"{{{{ .cluster.name }}}}-{{{{ {variable} }}}}-{{{{ .random }}}}"})
    yield from case(f"{ids} NAM-1", kind, put({"template": "a"}), at, good, **more)
    yield from case("NAM-2", kind, put({"template": "{{ .nothing }}-{{ .random }}"}), at, good, **more)
    yield from case("NAM-2", kind, put({"template": "{{ .random }}{{"}), at, good, **more)
    yield from case("NAM-3", kind, put({"template": "A-{{ .random }}"}), at, good, **more)


def _rollout(ids: str, kind: str, put: Any, at: str) -> Iterator[Case]:
    good = put({"maxSurge": "10%", "maxUnavailable": 0})
    yield from case(f"{ids} ROL-1 IOP-1", kind, put({"maxUnavailable": "1"}), f"{at}.maxUnavailable", good)
    yield from case("ROL-2", kind, put({"maxSurge": "x%"}), f"{at}.maxSurge", good)
    yield from case("ROL-3", kind, put({"maxSurge": 0, "maxUnavailable": 0}), at, put({"maxSurge": "0%", "maxUnavailable": 0}))


def _health(ids: str, kind: str, put: Any, at: str, **more: Any) -> Iterator[Case]:
    yield from case(
        f"{ids} HC-1",
        kind,
        put({"checks": {"nodeStartupTimeoutSeconds": 29}}),
        f"{at}.checks.nodeStartupTimeoutSeconds",
        put({"checks": {"nodeStartupTimeoutSeconds": 30}}),
        **more,
    )
    yield from case(
        "HC-1",
        kind,
        put({"checks": {"nodeStartupTimeoutSeconds": 1}}),
        f"{at}.checks.nodeStartupTimeoutSeconds",
        put({"checks": {"nodeStartupTimeoutSeconds": 0}}),
        **more,
    )
    field = "remediation.triggerIf.unhealthyLessThanOrEqualTo"
    yield from case("HC-2", kind, put({"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40"}}}), f"{at}.{field}",
                    put({"remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}}}), **more)  # fmt: skip


def _machine() -> Iterator[Case]:
    pool = {"spec": NO_BOOTSTRAP, "metadata": {"labels": {"cluster.x-k8s.io/pool-name": "p"}}}
    yield from case(
        "MA-1", "Machine", {"spec": NO_BOOTSTRAP}, "spec.bootstrap", {"spec": {"bootstrap": {"configRef": None, "dataSecretName": "s"}}}
    )
    yield from case("MA-1", "Machine", {"spec": NO_BOOTSTRAP}, "spec.bootstrap", pool)
    owners = [{"apiVersion": "v1", "kind": "MachinePool", "name": "p", "uid": "u"}]
    yield from case(
        "MA-1", "Machine", {"spec": NO_BOOTSTRAP}, "spec.bootstrap", {"spec": NO_BOOTSTRAP, "metadata": {"ownerReferences": owners}}
    )
    yield from case("MA-2", "Machine", {"spec": {"clusterName": "d"}}, "spec.clusterName", old={})
    yield from case("MA-3 VER-1", "Machine", {"spec": {"version": "v1.34"}}, "spec.version", {"spec": {"version": "v1.34.2-rc.1+x"}})
    yield from _taints("MA-4", "Machine", lambda t: {"spec": {"taints": t}}, "spec.taints", workers=True)
    control = {
        "metadata": {"labels": {"cluster.x-k8s.io/control-plane": ""}},
        "spec": {"taints": taint("node-role.kubernetes.io/control-plane")},
    }
    yield from case("TNT-8", "Machine", {"spec": {"taints": taint("node-role.kubernetes.io/control-plane")}}, "spec.taints[0].key", control)


def _owners() -> Iterator[Case]:
    naming = "spec.machineNaming.template"
    skips = {"metadata": {"annotations": {SKIP: "KubeadmVersionSkew, All"}}}
    unknown, annotation = {"metadata": {"annotations": {SKIP: "All,None"}}}, f"metadata.annotations.{SKIP}"
    for kind, p in (("MachineSet", "MS"), ("MachineDeployment", "MD")):
        n = {"MS": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10), "MD": (2, 3, 4, 5, 6, 7, 10, 12, 11, 13)}[p]
        ids = [f"{p}-{i}" for i in n]
        yield from case(ids[0], kind, worker(NO_BOOTSTRAP), "spec.template.spec.bootstrap")
        yield from case(ids[1], kind, {"spec": {"selector": BAD_SELECTOR}}, "spec.selector")
        yield from case(ids[2], kind, {"spec": {"selector": {"matchLabels": {"a": "c"}}}}, "spec.template.metadata.labels")
        yield from case(ids[3], kind, unknown, annotation, skips)
        yield from case(ids[3], kind, unknown, annotation, unknown, keeps_gates=without("MachineSetPreflightChecks"))
        yield from case(ids[4], kind, {"spec": {"clusterName": "d"}}, "spec.clusterName", old={})
        yield from case(ids[5], kind, {"spec": {"clusterName": "d"}}, "spec.clusterName")
        yield from case(ids[6], kind, worker({"version": "v01.2.3"}), "spec.template.spec.version", worker({"version": "v1.2.3"}))
        yield from _taints(ids[7], kind, lambda t: worker({"taints": t}), "spec.template.spec.taints", workers=True)
        yield from _naming(ids[8], kind, lambda t: {"spec": {"machineNaming": t}}, naming, ".machineSet.name")
        yield from _metadata(ids[9], kind, lambda m: {"spec": {"template": {"metadata": m}}}, "spec.template.metadata")
    yield from case("MD-1", "MachineDeployment", {"metadata": {"name": "x" * 64}}, "metadata.name")
    yield from _rollout(
        "MD-8",
        "MachineDeployment",
        lambda r: {"spec": {"rollout": {"strategy": {"rollingUpdate": r}}}},
        "spec.rollout.strategy.rollingUpdate",
    )
    yield from case(
        "MD-9",
        "MachineDeployment",
        {"spec": {"remediation": {"maxInFlight": "%"}}},
        "spec.remediation.maxInFlight",
        {"spec": {"remediation": {"maxInFlight": "20%"}}},
    )
    tainted = worker({"taints": taint("a")})
    yield from case("MP-1", "MachinePool", {}, "spec", gates=without("MachinePool"))
    yield from case("MP-2", "MachinePool", worker(NO_BOOTSTRAP), "spec.template.spec.bootstrap")
    yield from case("MP-3", "MachinePool", {"spec": {"clusterName": "d"}}, "spec.clusterName", old={})
    yield from case("MP-4", "MachinePool", worker({"clusterName": "d"}), "spec.clusterName")
    yield from case("MP-5", "MachinePool", worker({"version": "v1"}), "spec.template.spec.version", worker({"version": "v1.0.0"}))
    yield from case("MP-6", "MachinePool", tainted, "spec.taints")
    yield from case("MP-7", "MachinePool", tainted, "spec.taints", tainted, gates=without("MachineTaintPropagation"))
    yield from _metadata("MP-8", "MachinePool", lambda m: {"spec": {"template": {"metadata": m}}}, "spec.template.metadata")  # fmt: skip


def _checks() -> Iterator[Case]:
    kind = "MachineHealthCheck"
    yield from case("MHC-1", kind, {"spec": {"selector": BAD_SELECTOR}}, "spec.selector")
    yield from case("MHC-2", kind, {"spec": {"selector": {"matchLabels": None}}}, "spec.selector")
    label = "cluster.x-k8s.io/cluster-name"
    yield from case(
        "MHC-3",
        kind,
        {"spec": {"selector": {"matchLabels": {label: "d"}}}},
        "spec.selector",
        {"spec": {"selector": {"matchLabels": {label: "c"}}}},
    )
    yield from case("MHC-4", kind, {"spec": {"clusterName": "d"}}, "spec.clusterName", old={})
    yield from _health("MHC-5", kind, lambda h: {"spec": h}, "spec")
    yield from case("DR-1", "MachineDrainRule", {"spec": {"drain": {"behavior": "Skip"}}}, "spec.drain.order")
    yield from case(
        "DR-1",
        "MachineDrainRule",
        {"spec": {"drain": {"behavior": "WaitCompleted"}}},
        "spec.drain.order",
        {"spec": {"drain": {"behavior": "Skip", "order": None}}},
    )
    for n, where in enumerate(("machines|selector", "machines|clusterSelector", "pods|selector", "pods|namespaceSelector"), 2):
        items, key = where.split("|")
        yield from case(f"DR-{n}", "MachineDrainRule", {"spec": {items: [{}, {key: BAD_SELECTOR}]}}, f"spec.{items}[1].{key}", {"spec": {items: [{key: SELECTOR}]}})  # fmt: skip


def _sets() -> Iterator[Case]:
    kind, selector = "ClusterResourceSet", "spec.clusterSelector"
    other = {"spec": {"clusterSelector": {"matchLabels": {"a": "c"}}}}
    yield from case("CRS-1", kind, {"spec": {"clusterSelector": BAD_SELECTOR}}, selector)
    yield from case("CRS-2", kind, {"spec": {"clusterSelector": {"matchLabels": None}}}, selector)
    yield from case("CRS-3", kind, {"spec": {"strategy": "Reconcile"}}, "spec.strategy", old={})
    yield from case("CRS-4", kind, other, selector, {"spec": {"clusterSelector": {"matchExpressions": []}}}, old={})
    yield from case("CRB-1", "ClusterResourceSetBinding", {"spec": {"clusterName": "d"}}, "spec.clusterName", old={})
    yield from case(
        "CRB-1", "ClusterResourceSetBinding", {"spec": {"clusterName": "d"}}, "spec.clusterName", {"spec": {"clusterName": "c"}}, old={}
    )


def _extensions() -> Iterator[Case]:
    kind, client = "ExtensionConfig", "spec.clientConfig"

    def service(**parts: Any) -> Json:
        return {"spec": {"clientConfig": {"url": None, "service": {"name": "s", "namespace": "n"} | parts}}}

    yield from case("EX-1", kind, {}, "spec", gates=without("RuntimeSDK"))
    yield from case("EX-2", kind, {"metadata": {"name": "a.b"}}, "metadata.name")
    yield from case("EX-3", kind, {"spec": {"clientConfig": {"url": None}}}, client)
    yield from case("EX-4", kind, {"spec": {"clientConfig": {"service": {"name": "s", "namespace": "n"}}}}, client, service())
    for url in ("a.example.com", "://x", "https://%zz", "https://a b", "https://a:x", "https://[::1", "https://u\x7f@h"):
        yield from case(
            "EX-5",
            kind,
            {"spec": {"clientConfig": {"url": url}}},
            f"{client}.url",
            {"spec": {"clientConfig": {"url": "https://u:p@[::1]:8/a%20b?c#d"}}},
        )
    yield from case(
        "EX-6", kind, {"spec": {"clientConfig": {"url": "http://a"}}}, f"{client}.url", {"spec": {"clientConfig": {"url": "HTTPS://a"}}}
    )
    yield from case("EX-7", kind, service(name=""), f"{client}.service.name", service())
    yield from case("EX-8", kind, service(name="1a"), f"{client}.service.name", service())
    yield from case("EX-9", kind, service(namespace=""), f"{client}.service.namespace", service())
    yield from case("EX-10", kind, service(namespace="A"), f"{client}.service.namespace", service())
    yield from case("EX-11", kind, service(path="/%zz"), f"{client}.service.path", service(path="/a%20b"))
    yield from case("EX-12", kind, service(path="a"), f"{client}.service.path", service(path="/a"))
    yield from case("EX-13", kind, service(port=65536), f"{client}.service.port", service(port=65535))
    yield from case("EX-13", kind, service(port=0), f"{client}.service.port", service(port=1))
    yield from case("EX-14", kind, {"spec": {"namespaceSelector": None}}, "spec.namespaceSelector")
    yield from case("EX-15", kind, {"spec": {"namespaceSelector": BAD_SELECTOR}}, "spec.namespaceSelector")


def _addresses() -> Iterator[Case]:
    def spec(**parts: Any) -> Json:
        return {"spec": parts}

    kind: Any = {"kind": "IPAddress", "facts": CLAIM}
    for bad in ("10.0.0", "010.0.0.1", "::g", "10.0.0.1/24"):
        yield from case("IP-1", breaks=spec(address=bad), at="spec.address", keeps=spec(address="fe80::1%eth0"), **kind)
    yield from case("IP-2", breaks=spec(prefix=-1), at="spec.prefix", keeps=spec(prefix=0), **kind)
    yield from case("IP-3", breaks=spec(prefix=33), at="spec.prefix", keeps=spec(prefix=33, address="::ffff:1.2.3.4"), **kind)
    yield from case("IP-4", breaks=spec(prefix=129, address="::1"), at="spec.prefix", keeps=spec(prefix=128, address="::1"), **kind)
    yield from case("IP-5", breaks=spec(gateway="x"), at="spec.gateway", keeps=spec(gateway="10.0.0.2"), **kind)
    yield from case("IP-6", "IPAddress", {}, "spec.claimRef", facts=Claim(error="no connection"), keeps_facts=Claim())
    for key in ("apiGroup", "kind", "name"):
        yield from case("IP-7", breaks=spec(poolRef={key: "other"}), at="spec.poolRef", **kind)
    yield from case("IP-8", breaks=spec(prefix=25), at="spec", keeps={"metadata": {"labels": {"a": "b"}}}, old={}, **kind)
    yield from case("IPC-1", "IPAddressClaim", spec(poolRef={"name": "q"}), "spec", spec(poolRef=dict(POOL_REF)), old={})


def _dev() -> Iterator[Case]:
    def cluster(*names: str) -> Json:
        return {"backend": {"docker": {"failureDomains": [{"name": n} for n in names]}}}

    def template(spec: Json) -> Json:
        return {"spec": {"template": {"spec": spec}}}

    field = "spec.backend.docker.failureDomains"
    image = {"backend": {"docker": {"customImage": "b"}}}
    yield from case("DEV-1", "DevCluster", {"spec": cluster("b", "a")}, field, {"spec": cluster("a", "b")})
    yield from case("DEV-1", "DevClusterTemplate", template(cluster("b", "a")), field, template(cluster("a", "b")))
    yield from case("DEV-2", "DevClusterTemplate", {}, "spec", gates=without("ClusterTopology"))
    for kind in ("DevClusterTemplate", "DevMachineTemplate"):
        yield from _metadata("DEV-3", kind, lambda m: {"spec": {"template": {"metadata": m}}}, "spec.template.metadata")
    # what defaulting would fill in is no change
    yield from case(
        "DEV-4",
        "DevClusterTemplate",
        template(cluster("a")),
        "spec.template.spec",
        template({"controlPlaneEndpoint": {"port": 6443}}),
        old={},
    )
    yield from case(
        "DEV-4",
        "DevMachineTemplate",
        template(image),
        "spec.template.spec",
        {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
        old={},
    )
    yield from case("DEV-4", "DevMachineTemplate", template({"backend": {"docker": None, "inMemory": {}}}), "spec.template.spec", old={})
    good = {"backend": {"inMemory": {"vm": {"provisioning": {"startupDuration": "1m30s", "startupJitter": "0.2"}}}}}
    for field, rule, bad in (("startupDuration", "DEV-6", "<no value>s"), ("startupJitter", "DEV-7", "much")):
        wrong = {"backend": {"inMemory": {"vm": {"provisioning": {field: bad}}}}}
        yield from case(rule, "DevMachine", {"spec": wrong}, f"spec.backend.inMemory.vm.provisioning.{field}", {"spec": good})
        path = f"spec.template.spec.backend.inMemory.vm.provisioning.{field}"
        yield from case(rule, "DevMachineTemplate", template(wrong), path, template(good))
    yield from case("DEV-5", "DevMachine", {"spec": image}, "spec.backend.docker.customImage", {"spec": {"backend": {"docker": None, "inMemory": {}}}}, old={})  # fmt: skip


KIND_CASES = [*_machine(), *_owners(), *_checks(), *_sets(), *_extensions(), *_addresses(), *_dev()]


# ----------------------------------------------------------------------------------------- defaults: id, kind, sent, path, value afterwards

LABEL = "metadata|labels|cluster.x-k8s.io/cluster-name"
BOTH = {"metadata": {"annotations": {MIN: "3", MAX: "5"}}}
_STRATEGY = "spec|rollout|strategy"
_TEMPLATE = "spec|template|spec"
_DRY = {"metadata": {"annotations": {"topology.cluster.x-k8s.io/dry-run": ""}}}


def _scaled(kind: str) -> Iterator[tuple[str, str, Json, str, Any]]:
    for rule, sent, value in (
        ("REP-0", {"spec": {"replicas": 0}, **BOTH}, 0),
        ("REP-1", BOTH, 3),
        ("REP-2", BOTH | {"$old": {}}, 3),
        ("REP-2", BOTH | {"$old": {"spec": {"replicas": 2}}}, 3),
        ("REP-3", BOTH | {"$old": {"spec": {"replicas": 9}}}, 5),
        ("REP-4", BOTH | {"$old": {"spec": {"replicas": 4}}}, 4),
        ("REP-5", {}, 1),
        ("REP-5", {"metadata": {"annotations": {MIN: "3"}}}, 1),
    ):
        yield rule, kind, sent, "spec|replicas", value


DEFAULTS: list[tuple[str, str, Json, str, Any]] = [
    *(
        (id, kind, {"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "other"}}}, LABEL, "c")
        for id, kind in (("MA-D1", "Machine"), ("MS-D1", "MachineSet"), ("MD-D1", "MachineDeployment"), ("MP-D1", "MachinePool"), ("MHC-D1", "MachineHealthCheck"))
    ),
    ("MA-D2", "Machine", {"spec": {"version": "1.2.3"}}, "spec|version", "v1.2.3"),
    ("VER-D", "Machine", {"spec": {"version": "v1.2.3"}}, "spec|version", "v1.2.3"),
    ("MA-D2", "Machine", {"spec": {"version": ""}}, "spec|version", ""),
    ("MA-D3", "Machine", {}, "spec|deletion|nodeDeletionTimeoutSeconds", 10),
    ("MA-D3", "Machine", {"spec": {"deletion": {"nodeDeletionTimeoutSeconds": 0}}}, "spec|deletion|nodeDeletionTimeoutSeconds", 0),
    ("MS-D2", "MachineSet", {}, "spec|replicas", 1),
    ("MD-D2", "MachineDeployment", {"spec": {"replicas": 4}}, "spec|replicas", 4),
    ("MP-D2", "MachinePool", {}, "spec|replicas", 1),
    *_scaled("MachineSet"),
    *_scaled("MachineDeployment"),
    *_scaled("MachinePool"),
    ("MS-D3", "MachineSet", {"spec": {"selector": None}}, "spec|selector|matchLabels", {"cluster.x-k8s.io/set-name": "x"}),
    ("MS-D3", "MachineSet", {"spec": {"selector": None}}, "spec|template|metadata|labels", {"a": "b", "cluster.x-k8s.io/set-name": "x"}),
    ("MS-D3", "MachineSet", {}, "spec|selector|matchLabels", {"a": "b"}),
    ("MS-D3", "MachineSet", {"metadata": {"name": "x" * 64}, "spec": {"selector": None}}, "spec|selector|matchLabels|cluster.x-k8s.io/set-name", label_value("x" * 64)),
    ("MS-D4", "MachineSet", worker({"version": "1.2.3"}), f"{_TEMPLATE}|version", "v1.2.3"),
    ("MD-D3", "MachineDeployment", {}, f"{_STRATEGY}|type", "RollingUpdate"),
    ("MD-D3", "MachineDeployment", {"spec": {"rollout": {"strategy": {"type": "OnDelete"}}}}, f"{_STRATEGY}|type", "OnDelete"),
    ("MD-D4", "MachineDeployment", {"spec": {"rollout": {"strategy": {"type": "RollingUpdate"}}}}, f"{_STRATEGY}|rollingUpdate", {"maxSurge": 1, "maxUnavailable": 0}),
    ("MD-D4", "MachineDeployment", {"spec": {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "5%"}}}}}, f"{_STRATEGY}|rollingUpdate",
     {"maxSurge": "5%", "maxUnavailable": 0}),
    ("MD-D4", "MachineDeployment", {"spec": {"rollout": {"strategy": {"type": "OnDelete"}}}}, _STRATEGY, {"type": "OnDelete"}),
    ("MD-D5", "MachineDeployment", {"spec": {"selector": None}}, "spec|selector|matchLabels", {"cluster.x-k8s.io/deployment-name": "x"}),
    ("MD-D5", "MachineDeployment", {}, "spec|selector|matchLabels", {"a": "b"}),
    ("MD-D6", "MachineDeployment", {}, "spec|selector|matchLabels", {"a": "b", "cluster.x-k8s.io/cluster-name": "c"}),
    ("MD-D6", "MachineDeployment", {}, "spec|template|metadata|labels", {"a": "b", "cluster.x-k8s.io/cluster-name": "c"}),
    ("MD-D7", "MachineDeployment", worker({"version": "1.2.3"}), f"{_TEMPLATE}|version", "v1.2.3"),
    ("MP-D3", "MachinePool", {}, f"{_TEMPLATE}|deletion|nodeDeletionTimeoutSeconds", 10),
    ("MP-D4", "MachinePool", worker({"version": "1.2.3"}), f"{_TEMPLATE}|version", "v1.2.3"),
    ("MHC-D2", "MachineHealthCheck", {}, "spec|checks|nodeStartupTimeoutSeconds", 600),
    ("MHC-D2", "MachineHealthCheck", {"spec": {"checks": {"nodeStartupTimeoutSeconds": 0}}}, "spec|checks|nodeStartupTimeoutSeconds", 0),
    ("CRS-D1", "ClusterResourceSet", {"spec": {"strategy": None}}, "spec|strategy", "ApplyOnce"),
    ("CRS-D1", "ClusterResourceSet", {"spec": {"strategy": "Reconcile"}}, "spec|strategy", "Reconcile"),
    ("EX-D1", "ExtensionConfig", {"spec": {"namespaceSelector": None}}, "spec|namespaceSelector", {}),
    ("EX-D1", "ExtensionConfig", {"spec": {"namespaceSelector": SELECTOR}}, "spec|namespaceSelector", SELECTOR),
    ("EX-D2", "ExtensionConfig", {"spec": {"clientConfig": {"service": {"name": "s"}}}}, "spec|clientConfig|service|port", 443),
    ("EX-D2", "ExtensionConfig", {"spec": {"clientConfig": {"service": {"name": "s", "port": 1}}}}, "spec|clientConfig|service|port", 1),
    ("KT-D1", "KubeadmConfigTemplate", _DRY | {"$dry_run": True}, f"{_TEMPLATE}|format", "cloud-config"),
    ("KT-D1", "KubeadmConfigTemplate", _DRY, _TEMPLATE, {"verbosity": 1}),
    ("KT-D1", "KubeadmConfigTemplate", {"$dry_run": True}, _TEMPLATE, {"verbosity": 1}),
    ("KCP-D1", "KubeadmControlPlane", {"spec": {"replicas": None}}, "spec|replicas", 1),
    ("KCP-D1", "KubeadmControlPlane", {"spec": {"replicas": 0}}, "spec|replicas", 0),
    ("KCP-D2", "KubeadmControlPlane", {"spec": {"version": "1.2.3"}}, "spec|version", "v1.2.3"),
    ("KCP-D2", "KubeadmControlPlane", {"spec": {"version": ""}}, "spec|version", "v"),
    ("KCP-D3", "KubeadmControlPlane", {"spec": {"rollout": {"strategy": {"type": "Other"}}}}, f"{_STRATEGY}|type", "RollingUpdate"),
    ("KCP-D4", "KubeadmControlPlane", {"spec": {"rollout": None}}, f"{_STRATEGY}|rollingUpdate", {"maxSurge": 1}),
    ("KCP-D4", "KubeadmControlPlane", {"spec": {"rollout": {"strategy": {"rollingUpdate": {"maxSurge": 0}}}}}, f"{_STRATEGY}|rollingUpdate", {"maxSurge": 0}),
    ("DEV-D1", "DevCluster", {"spec": {"backend": {"docker": None}}}, "spec|backend", {"docker": {"loadBalancer": {}}}),
    ("DEV-D1", "DevCluster", {"spec": {"backend": {"docker": None, "inMemory": {}}}}, "spec", {"backend": {"inMemory": {}}}),
    ("DEV-D1", "DevClusterTemplate", {"spec": {"template": {"spec": {"backend": {"docker": None}}}}}, f"{_TEMPLATE}|backend", {"docker": {"loadBalancer": {}}}),
    ("DEV-D1", "DevMachine", {"spec": {"backend": {"docker": None}}}, "spec|backend", {"docker": {}}),
    ("DEV-D1", "DevMachineTemplate", {"spec": {"template": {"spec": {"backend": {"docker": None}}}}}, f"{_TEMPLATE}|backend", {"docker": {}}),
    ("DEV-D2", "DevCluster", {}, "spec|controlPlaneEndpoint", {"port": 6443}),
    ("DEV-D2", "DevCluster", {"spec": {"controlPlaneEndpoint": {"port": 1}}}, "spec|controlPlaneEndpoint", {"port": 1}),
    ("DEV-D3", "DevCluster", {"spec": {"backend": {"docker": {"failureDomains": [{"name": "a"}, {"name": "b", "controlPlane": True}]}}}},
     "spec|backend|docker|failureDomains", [{"name": "a", "controlPlane": False}, {"name": "b", "controlPlane": True}]),
    ("CL-D1", "Cluster", {"spec": {"topology": {"version": "1.33.4"}}}, "spec|topology|version", "v1.33.4"),
    ("CL-D1", "Cluster", {"spec": {"topology": {"version": ""}}}, "spec|topology|version", "v"),
    ("CL-D3", "Cluster", {}, "spec|topology|version", "v1.33.4"),
    ("CL-D4", "Cluster", {"$facts": of_class(variables=variable({"type": "integer", "default": 3}))}, "spec|topology|variables", [{"name": "v", "value": 3}]),
    ("CL-D4", "Cluster", {"spec": {"topology": {"variables": [{"name": "v", "value": 1}]}}, "$facts": of_class(variables=variable({"type": "integer", "default": 3}))},
     "spec|topology|variables", [{"name": "v", "value": 1}]),
]  # fmt: skip
