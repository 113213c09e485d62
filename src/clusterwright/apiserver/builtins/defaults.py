"""Defaults of the built-in kinds. Each function changes the object in place and keeps existing values."""

from __future__ import annotations

from typing import Any

from clusterwright.api.meta import Json


def fill(target: Json, **values: Any) -> None:
    """Set absent fields (null and empty text count as absent)."""
    for key, value in values.items():
        if target.get(key) in (None, ""):
            target[key] = value


def namespace(obj: Json) -> None:
    """Set the label with the namespace's name."""
    meta = obj.setdefault("metadata", {})
    name = meta.get("name")
    if name:
        labels = dict(meta.get("labels") or {})
        labels["kubernetes.io/metadata.name"] = name
        meta["labels"] = labels


def secret(obj: Json) -> None:
    """Set the type Opaque."""
    fill(obj, type="Opaque")


def pod(obj: Json) -> None:
    """Set the defaults of a Pod."""
    pod_spec(obj.setdefault("spec", {}), pod=True)


def pod_spec(spec: Json, *, pod: bool = False) -> None:
    """Set the defaults of the spec of a Pod or Pod template."""
    fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    if pod:
        fill(spec, enableServiceLinks=True)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    host = bool(spec.get("hostNetwork"))
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            _container(container, host=host, pod=pod)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _container(container: Json, *, host: bool, pod: bool) -> None:
    image = container.get("image") or ""
    if not container.get("imagePullPolicy"):
        name = image.rsplit("/", 1)[-1].split("@")[0]
        tag = name.split(":", 1)[1] if ":" in name else ("" if "@" in image else "latest")
        container["imagePullPolicy"] = "Always" if tag == "latest" else "IfNotPresent"
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    resources = container.setdefault("resources", {})
    limits = resources.get("limits")
    if limits and pod:  # templates keep what was written
        requests = resources.setdefault("requests", {})
        for key, value in limits.items():
            requests.setdefault(key, value)
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
        if host and pod and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _probe(container[probe])
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict) and isinstance(handler.get("httpGet"), dict):
            fill(handler["httpGet"], path="/", scheme="HTTP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            fill(reference, apiVersion="v1")


def _probe(probe: Json) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(key):
            probe[key] = value
    if isinstance(probe.get("httpGet"), dict):
        fill(probe["httpGet"], path="/", scheme="HTTP")
    if isinstance(probe.get("grpc"), dict) and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _volume(volume: Json) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(kind), dict):
            fill(volume[kind], defaultMode=420)
    if isinstance(volume.get("hostPath"), dict) and volume["hostPath"].get("type") is None:
        volume["hostPath"]["type"] = ""
    for source in (volume.get("projected") or {}).get("sources") or ():
        if isinstance(source.get("serviceAccountToken"), dict):
            fill(source["serviceAccountToken"], expirationSeconds=3600)


def service(obj: Json) -> None:
    """Set ClusterIP and TCP."""
    spec = obj.setdefault("spec", {})
    fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP" and not (spec.get("sessionAffinityConfig") or {}).get("clientIP"):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    for port in spec.get("ports") or ():
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")


def deployment(obj: Json) -> None:
    """Set one replica, and rolling updates by a quarter."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _template(spec: Json) -> None:
    template = spec.get("template")
    if isinstance(template, dict):
        pod_spec(template.setdefault("spec", {}))


def daemon_set(obj: Json) -> None:
    """Set rolling updates one by one."""
    annotations = obj.setdefault("metadata", {}).setdefault("annotations", {})
    annotations.setdefault("deprecated.daemonset.template.generation", "1")
    spec = obj.setdefault("spec", {})
    fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        fill(rolling, maxUnavailable=1)
        if rolling.get("maxSurge") is None:
            rolling["maxSurge"] = 0
    _template(spec)


def replica_set(obj: Json) -> None:
    """Set one replica."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1)
    _template(spec)


def stateful_set(obj: Json) -> None:
    """Set one replica, ordered Pods, rolling updates."""
    spec = obj.setdefault("spec", {})
    fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.setdefault("rollingUpdate", {}).get("partition") is None:
        strategy["rollingUpdate"]["partition"] = 0
    _template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        persistent_volume_claim(claim)
        claim["status"] = {"phase": "Pending"}


def persistent_volume_claim(obj: Json) -> None:
    """Set the file system mode, and the phase Pending."""
    fill(obj.setdefault("spec", {}), volumeMode="Filesystem")


def persistent_volume(obj: Json) -> None:
    """Set the file system mode, and the policy Retain."""
    fill(obj.setdefault("spec", {}), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")


def role_binding(obj: Json) -> None:
    """Set the API groups of the role and of users and groups."""
    group = "rbac.authorization.k8s.io"
    fill(obj.setdefault("roleRef", {}), apiGroup=group)
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup=group)


def webhook_configuration(obj: Json, *, mutating: bool) -> None:
    """Set failure policy Fail, equivalent matches, empty selectors, ten seconds."""
    for hook in obj.get("webhooks") or ():
        fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10, namespaceSelector={}, objectSelector={})
        if mutating:
            fill(hook, reinvocationPolicy="Never")
        reference = (hook.get("clientConfig") or {}).get("service")
        if isinstance(reference, dict):
            fill(reference, port=443)
        for rule in hook.get("rules") or ():
            fill(rule, scope="*")


def storage_class(obj: Json) -> None:
    """Set reclaim policy Delete and immediate binding."""
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def csi_driver(obj: Json) -> None:
    """Set that the driver attaches volumes."""
    spec = obj.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        if spec.get(key) is None:
            spec[key] = value
    fill(spec, fsGroupPolicy="ReadWriteOnceWithFSType", volumeLifecycleModes=["Persistent"])


def custom_resource_definition(obj: Json) -> None:
    """Set derived names, no conversion, and the storage version in the status."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if kind:
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
    conversion = spec.get("conversion")
    if not conversion:
        spec["conversion"] = {"strategy": "None"}
    else:
        client = (conversion.get("webhook") or {}).get("clientConfig") or {}
        if isinstance(client.get("service"), dict):
            fill(client["service"], port=443)
    status = obj.setdefault("status", {})
    stored = [version.get("name") for version in spec.get("versions") or () if version.get("storage")][:1]
    status["storedVersions"] = status.get("storedVersions") or stored or None
