"""The columns of tables of built-in kinds: for each kind the columns after Name, and a function that fills a row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.builtins.handler import Cells
from clusterwright.apiserver.encoding.printing import age
from clusterwright.apiserver.interfaces import Column
from clusterwright.apiserver.schema.customresource import AGE as _AGE_COLUMN

AGE: Final = Column("Age", "string", "", _AGE_COLUMN.description)
Table = tuple[Sequence[Column], Cells]


def _name(obj: Json) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))


def cell_age(obj: Json, now: datetime) -> str:
    """Return the age of an object."""
    return age((obj.get("metadata") or {}).get("creationTimestamp"), now)


def column(name: str, description: str = "", *, kind: str = "string", priority: int = 0) -> Column:
    """Return a column, of text by default."""
    return Column(name, kind, "", description or f"{name} of the object", priority)


def _simple(columns: Sequence[Column], *values: Any) -> Table:
    """Return a row with the values of these functions, and the age last."""

    def cells(obj: Json, now: datetime) -> list[Any]:
        return [_name(obj), *(v(obj) for v in values), cell_age(obj, now)]

    return (*columns, AGE), cells


def _at(obj: Json, *path: str) -> Any:
    value: Any = obj
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


CONFIG_MAP: Final = _simple(
    [
        column(
            "Data",
            "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or "
            "'.'. Values with non-UTF-8 "
            "byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, "
            "this is enforced during validation process.",
        )
    ],
    lambda o: len(o.get("data") or {}) + len(o.get("binaryData") or {}),
)
SECRET: Final = _simple(
    [
        column(
            "Type",
            "Used to facilitate programmatic handling of secret data. More info: "
            "https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
        ),
        column(
            "Data",
            "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The serialized form of the "
            "secret data is a base64 encoded string, representing the arbitrary (possibly non-string) data value here. Described in "
            "https://tools.ietf.org/html/rfc4648#section-4",
        ),
    ],
    lambda o: o.get("type") or "",
    lambda o: len(o.get("data") or {}),
)
NAMESPACE: Final = _simple([column("Status", "The status of the namespace")], lambda o: _at(o, "status", "phase") or "")
LEASE: Final = _simple(
    [
        column(
            "Holder",
            "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder "
            "identity must be equal to the elected LeaseCandidate.metadata.name field.",
        )
    ],
    lambda o: _at(o, "spec", "holderIdentity") or "",
)
PLAIN: Final = _simple([])
STORAGE_CLASS: Final = _simple(
    [column("Provisioner"), column("ReclaimPolicy"), column("VolumeBindingMode")],
    lambda o: o.get("provisioner") or "",
    lambda o: o.get("reclaimPolicy") or "Delete",
    lambda o: o.get("volumeBindingMode") or "Immediate",
)
VOLUME_ATTACHMENT: Final = _simple(
    [column("Attacher"), column("PV"), column("Node"), column("Attached", kind="boolean")],
    lambda o: _at(o, "spec", "attacher") or "",
    lambda o: _at(o, "spec", "source", "persistentVolumeName") or "",
    lambda o: _at(o, "spec", "nodeName") or "",
    lambda o: bool(_at(o, "status", "attached")),
)
PDB: Final = _simple(
    [column("Min Available"), column("Max Unavailable"), column("Allowed Disruptions", kind="integer")],
    lambda o: str(_at(o, "spec", "minAvailable")) if _at(o, "spec", "minAvailable") is not None else "N/A",
    lambda o: str(_at(o, "spec", "maxUnavailable")) if _at(o, "spec", "maxUnavailable") is not None else "N/A",
    lambda o: _at(o, "status", "disruptionsAllowed") or 0,
)
WEBHOOKS: Final = _simple([column("Webhooks", "Webhooks in the configuration", kind="integer")], lambda o: len(o.get("webhooks") or ()))
CLAIM: Final = _simple(
    [column("Status"), column("Volume"), column("Capacity"), column("Access Modes"), column("StorageClass")],
    lambda o: _at(o, "status", "phase") or "",
    lambda o: _at(o, "spec", "volumeName") or "",
    lambda o: _at(o, "status", "capacity", "storage") or "",
    lambda o: ",".join(_at(o, "status", "accessModes") or ()),
    lambda o: _at(o, "spec", "storageClassName") or "",
)


def _role_cells(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), (obj.get("metadata") or {}).get("creationTimestamp")]


CREATED: Final[Table] = ((Column("Created At", "date", "", _AGE_COLUMN.description),), _role_cells)


def _binding_cells(obj: Json, now: datetime) -> list[Any]:
    reference = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        name = subject.get("name") or ""
        kind = subject.get("kind")
        subjects.setdefault(str(kind), []).append(f"{subject.get('namespace') or ''}/{name}" if kind == "ServiceAccount" else name)
    shown = [", ".join(subjects[k]) for k in ("User", "Group", "ServiceAccount")]
    return [_name(obj), f"{reference.get('kind')}/{reference.get('name')}", cell_age(obj, now), *shown]


ROLE_BINDING: Final[Table] = (
    (column("Role", "The role that is bound"), AGE, *(column(n, priority=1) for n in ("Users", "Groups", "ServiceAccounts"))),
    _binding_cells,
)


# ---------------------------------------------------------------- pods


def _pod_cells(obj: Json, now: datetime) -> list[Any]:
    spec, status, meta = obj.get("spec") or {}, obj.get("status") or {}, obj.get("metadata") or {}
    containers = spec.get("containers") or []
    statuses = status.get("containerStatuses") or []
    ready = sum(1 for s in statuses if s.get("ready"))
    restarts = sum(s.get("restartCount") or 0 for s in statuses)
    reason = status.get("reason") or status.get("phase") or ""
    for s in statuses:
        state = s.get("state") or {}
        found = (state.get("waiting") or {}).get("reason") or (state.get("terminated") or {}).get("reason")
        reason = found or reason
    if meta.get("deletionTimestamp"):
        reason = "Terminating"
    ips = [i.get("ip") for i in status.get("podIPs") or () if i.get("ip")]
    return [
        _name(obj),
        f"{ready}/{len(containers)}",
        reason,
        str(restarts),
        cell_age(obj, now),
        (ips[0] if ips else status.get("podIP")) or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


POD: Final[Table] = (
    (
        column("Ready", "Containers that are ready, of all"),
        column("Status", "What state the Pod is in"),
        column("Restarts", "How often its containers were started again"),
        AGE,
        column("IP", "Its address", priority=1),
        column("Node", "Where it runs", priority=1),
        column("Nominated Node", "Where it may run soon", priority=1),
        column("Readiness Gates", "Gates that are passed, of all", priority=1),
    ),
    _pod_cells,
)

# ---------------------------------------------------------------- nodes


def _node_cells(obj: Json, now: datetime) -> list[Any]:
    status, meta = obj.get("status") or {}, obj.get("metadata") or {}
    ready = next((c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    shown = [{"True": "Ready", None: "Unknown"}.get(ready, "NotReady")]
    if (obj.get("spec") or {}).get("unschedulable"):
        shown.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    labels = meta.get("labels") or {}
    roles = sorted(
        {k.removeprefix(prefix) for k in labels if k.startswith(prefix)}
        | ({labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set())
    )
    addresses = {a.get("type"): a.get("address") for a in reversed(status.get("addresses") or ())}
    info = status.get("nodeInfo") or {}
    return [
        _name(obj),
        ",".join(shown),
        ",".join(r for r in roles if r) or "<none>",
        cell_age(obj, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or "<none>",
        addresses.get("ExternalIP") or "<none>",
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


NODE: Final[Table] = (
    (
        column("Status", "Whether the node is ready"),
        column("Roles", "What the node is for"),
        AGE,
        column("Version", "Its kubelet's version"),
        *(column(n, priority=1) for n in ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")),
    ),
    _node_cells,
)

# ---------------------------------------------------------------- workloads


def template_cells(obj: Json) -> list[Any]:
    """Return names and images of the containers of a Pod template, and the selector."""
    containers = _at(obj, "spec", "template", "spec", "containers") or []
    labels = _at(obj, "spec", "selector", "matchLabels") or {}
    return [
        ",".join(c.get("name") or "" for c in containers),
        ",".join(c.get("image") or "" for c in containers),
        ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or "<none>",
    ]


WIDE: Final = tuple(column(n, priority=1) for n in ("Containers", "Images", "Selector"))


def _deployment_cells(obj: Json, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    wanted = _at(obj, "spec", "replicas")
    return [
        _name(obj),
        f"{status.get('readyReplicas') or 0}/{wanted if wanted is not None else 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        cell_age(obj, now),
        *template_cells(obj),
    ]


DEPLOYMENT: Final[Table] = (
    (column("Ready"), column("Up-to-date"), column("Available"), AGE, *WIDE),
    _deployment_cells,
)


def _daemon_set_cells(obj: Json, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    numbers = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    selector = _at(obj, "spec", "template", "spec", "nodeSelector") or {}
    shown = ",".join(f"{k}={v}" for k, v in sorted(selector.items())) or "<none>"
    return [_name(obj), *(status.get(n) or 0 for n in numbers), shown, cell_age(obj, now), *template_cells(obj)]


DAEMON_SET: Final[Table] = (
    (
        *(column(n, kind="integer") for n in ("Desired", "Current", "Ready", "Up-to-date", "Available")),
        column("Node Selector"),
        AGE,
        *WIDE,
    ),
    _daemon_set_cells,
)


def _replica_set_cells(obj: Json, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    return [
        _name(obj),
        _at(obj, "spec", "replicas") or 0,
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        cell_age(obj, now),
        *template_cells(obj),
    ]


REPLICA_SET: Final[Table] = ((*(column(n, kind="integer") for n in ("Desired", "Current", "Ready")), AGE, *WIDE), _replica_set_cells)


def _stateful_set_cells(obj: Json, now: datetime) -> list[Any]:
    ready = (obj.get("status") or {}).get("readyReplicas") or 0
    return [_name(obj), f"{ready}/{_at(obj, 'spec', 'replicas') or 0}", cell_age(obj, now), *template_cells(obj)[:2]]


STATEFUL_SET: Final[Table] = ((column("Ready"), AGE, *WIDE[:2]), _stateful_set_cells)


def _service_cells(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    ports = ",".join(
        f"{p.get('port')}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p.get('protocol')}" for p in spec.get("ports") or ()
    )
    selector = ",".join(f"{k}={v}" for k, v in sorted((spec.get("selector") or {}).items()))
    return [
        _name(obj),
        spec.get("type") or "",
        spec.get("clusterIP") or "<none>",
        ",".join(spec.get("externalIPs") or ()) or spec.get("externalName") or "<none>",
        ports or "<none>",
        cell_age(obj, now),
        selector or "<none>",
    ]


SERVICE: Final[Table] = (
    (column("Type"), column("Cluster-IP"), column("External-IP"), column("Port(s)"), AGE, column("Selector", priority=1)),
    _service_cells,
)


def _event_cells(obj: Json, now: datetime) -> list[Any]:
    involved = obj.get("involvedObject") or obj.get("regarding") or {}
    last = (
        obj.get("lastTimestamp")
        or obj.get("deprecatedLastTimestamp")
        or (obj.get("series") or {}).get("lastObservedTime")
        or obj.get("eventTime")
    )
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    count = obj.get("count") or obj.get("deprecatedCount") or (obj.get("series") or {}).get("count") or 1
    return [
        age(last, now) if last else "<unknown>",
        obj.get("type") or "",
        obj.get("reason") or "",
        f"{str(involved.get('kind') or '').lower()}/{involved.get('name') or ''}",
        involved.get("fieldPath") or "",
        component,
        (obj.get("message") or obj.get("note") or "").strip(),
        age(first, now) if first else "<unknown>",
        count,
        _name(obj),
    ]


EVENT: Final[Table] = (
    (
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        column("Subobject", priority=1),
        column("Source", priority=1),
        column("Message"),
        column("First Seen", priority=1),
        column("Count", priority=1),
        Column("Name", "string", "name", "Name of the event", 1),
    ),
    _event_cells,
)
"""The columns of Events. They have no Name column in front: it is the last."""
