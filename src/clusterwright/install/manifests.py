"""All objects that a cluster needs to run us. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.wiring import Access, ControllerDefinition
from clusterwright.install import rights
from clusterwright.webhooks.configurations import SERVICE, Target, configurations, definitions

NAME: Final = "clusterwright-manager"
LABELS: Final = {"app.kubernetes.io/name": "clusterwright", "app.kubernetes.io/component": "manager"}
WEBHOOK_PORT, HEALTH_PORT, METRICS_PORT = 9443, 9440, 8443
METRICS_READER: Final = "clusterwright-metrics-reader"
AGGREGATE: Final = {"cluster.x-k8s.io/aggregate-to-manager": "true"}
"""The label of roles with which other providers grant managers access to their kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of an installation. Texts may be placeholders."""

    namespace: str = SERVICE.namespace
    image: str = "clusterwright:latest"
    replicas: Any = 2
    shard: bool = False
    """Whether replicas share the work; otherwise one leads and the others wait."""
    watch_namespace: str = ""
    """The only namespace to act in, with a Role there instead of a ClusterRole."""
    controllers: str = "*,-dev*,-docker*,crdmigrator"
    arguments: tuple[str, ...] = ()
    """Further flags of the manager."""
    webhooks: bool = True
    resources: Any = None


RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


def manifests(settings: Settings, controllers: Sequence[ControllerDefinition], *, migrates: bool = True) -> list[Json]:
    """Return all objects, in the order of creation. `controllers` are those that will run."""
    target = Target(service=ObjectKey(settings.namespace, SERVICE.name))
    objects: list[Json] = [_object("v1", "Namespace", settings.namespace, namespace="")]
    if settings.webhooks:
        objects += definitions(target, b"")
    else:
        objects += _unconverted(target)
    objects += _identity(settings, controllers, migrates=migrates)
    objects.append(_deployment(settings))
    objects.append(_disruption_budget(settings))
    metrics = [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]
    objects.append(_service(settings, f"{NAME}-metrics", metrics))
    if settings.webhooks:
        objects.append(_service(settings, SERVICE.name, [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}]))
        objects += configurations(target, b"")
    return objects


def _unconverted(target: Target) -> list[Json]:
    """Return our CRDs without a conversion webhook: only in their stored version."""
    found = []
    for crd in definitions(target, b""):
        crd["spec"]["versions"] = [version for version in crd["spec"]["versions"] if version.get("storage")]
        crd["spec"]["conversion"] = {"strategy": "None"}
        found.append(crd)
    return found


def _object(api_version: str, kind: str, name: str, *, namespace: str, **fields: Any) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **where, "labels": dict(LABELS)}, **fields}


# ------------------------------------------------------------------------------------------------------------ who we are


def accesses(controllers: Sequence[ControllerDefinition], *, migrates: bool, webhooks: bool) -> list[Access]:
    """Return all accesses of the process in its watched namespaces, and to objects without a namespace."""
    found = [*rights.EVENTS, *rights.CALLERS, *(access for controller in controllers for access in rights.declared(controller))]
    if any(not controller.is_provider for controller in controllers):
        found += rights.CONNECTIONS
    if migrates:
        found += rights.MIGRATION
    if webhooks:
        found += rights.WEBHOOKS
    return found


def _identity(settings: Settings, controllers: Sequence[ControllerDefinition], *, migrates: bool) -> list[Json]:
    found = accesses(controllers, migrates=migrates, webhooks=settings.webhooks)
    inside, outside = rights.scoped(found)
    own = [*rights.LEASES, *rights.EVENTS, *(rights.CERTIFICATE if settings.webhooks else ())]
    account = _object("v1", "ServiceAccount", NAME, namespace=settings.namespace)
    objects = [account]
    if settings.watch_namespace:
        objects += _role(settings, "ClusterRole", NAME, outside)
        objects += _role(settings, "Role", NAME, inside, namespace=settings.watch_namespace)
        objects += _role(settings, "Role", f"{NAME}-own", own, namespace=settings.namespace)
    else:
        objects += _role(settings, "ClusterRole", NAME, [*inside, *outside])
        objects += _role(settings, "Role", f"{NAME}-own", own, namespace=settings.namespace)
    aggregated = _object(_RBAC, "ClusterRole", f"{NAME}-providers", namespace="", rules=[])
    aggregated["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": dict(AGGREGATE)}]}
    objects += [aggregated, _binding(settings, "ClusterRole", f"{NAME}-providers", settings.watch_namespace)]
    reading = [{"nonResourceURLs": ["/metrics", "/traces"], "verbs": ["get"]}]
    objects.append(_object(_RBAC, "ClusterRole", METRICS_READER, namespace="", rules=reading))
    return objects


_RBAC: Final = "rbac.authorization.k8s.io/v1"


def _role(settings: Settings, kind: str, name: str, given: Sequence[Access], namespace: str = "") -> list[Json]:
    role = _object(_RBAC, kind, name, namespace=namespace, rules=rights.rules(given))
    return [role, _binding(settings, kind, name, namespace)]


def _binding(settings: Settings, kind: str, name: str, namespace: str) -> Json:
    return _object(
        _RBAC,
        "RoleBinding" if namespace else "ClusterRoleBinding",
        name,
        namespace=namespace,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}],
    )


# ------------------------------------------------------------------------------------------------------------- what runs


def arguments(settings: Settings) -> list[str]:
    """Return the command line of the manager."""
    found = [
        "manager",
        f"--controllers={settings.controllers}",
        "--shard" if settings.shard else "--leader-elect",
        f"--health-probe-bind-address=:{HEALTH_PORT}",
        f"--metrics-bind-address=:{METRICS_PORT}",
        "--log-format=json",
        "--log-level=info",
    ]
    if settings.webhooks:
        found.append(f"--webhook-port={WEBHOOK_PORT}")
    if settings.watch_namespace:
        found.append(f"--namespace={settings.watch_namespace}")
    return [*found, *settings.arguments]


def _deployment(settings: Settings) -> Json:
    ports = {"healthz": HEALTH_PORT, "metrics": METRICS_PORT, **({"webhooks": WEBHOOK_PORT} if settings.webhooks else {})}
    container = {
        "name": "manager",
        "image": settings.image,
        "args": arguments(settings),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "healthz"}, "periodSeconds": 5},
        "startupProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}, "periodSeconds": 2, "failureThreshold": 60},
        "resources": settings.resources if settings.resources is not None else RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
        # private keys are handed to the TLS library by files, which last for a moment
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod = {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": dict(LABELS)},
            }
        ],
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    }
    spec = {
        "replicas": settings.replicas,
        "selector": {"matchLabels": dict(LABELS)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {"metadata": {"labels": dict(LABELS)}, "spec": pod},
    }
    return _object("apps/v1", "Deployment", NAME, namespace=settings.namespace, spec=spec)


def _disruption_budget(settings: Settings) -> Json:
    # not minAvailable: with one replica that would keep its node from being drained forever
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(LABELS)}}
    return _object("policy/v1", "PodDisruptionBudget", NAME, namespace=settings.namespace, spec=spec)


def _service(settings: Settings, name: str, ports: list[Json]) -> Json:
    spec = {"selector": dict(LABELS), "ports": [{**port, "protocol": "TCP"} for port in ports]}
    return _object("v1", "Service", name, namespace=settings.namespace, spec=spec)
