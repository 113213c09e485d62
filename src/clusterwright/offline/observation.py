"""The parts of a bundle that are not objects: the time, requests that fail, and the state of workload clusters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from clusterwright.api.meta import ObjectKey
from clusterwright.offline.workings import Failing, Past, Queue

API_VERSION = "clusterwright.dev/v1alpha1"


class Target(msgspec.Struct, frozen=True):
    """Objects of one kind: all of them, or those of a namespace, or one."""

    kind: str
    namespace: str = ""
    name: str = ""
    error: str = ""

    def covers(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether this target includes the object."""
        return self.kind == kind and self.namespace in {"", namespace} and self.name in {"", name}


class Refusal(msgspec.Struct, frozen=True):
    """A write that fails: with a plain error, with the API error named by `error`, or with a whole Status."""

    verb: str
    kind: str
    namespace: str = ""
    name: str = ""
    error: str = ""
    status: Mapping[str, Any] = {}

    def covers(self, verb: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether this refusal applies to the write. `update` and `patch` count as the same verb."""
        same_verb = ("patch" if self.verb == "update" else self.verb) == verb
        return same_verb and self.kind == kind and self.namespace in {"", namespace} and self.name in {"", name}


class Member(msgspec.Struct, frozen=True, rename="camel"):
    """An etcd member."""

    name: str = ""
    id: str = ""
    is_learner: bool = False
    leader: bool = False
    alarms: tuple[str, ...] = ()


class EtcdErrors(msgspec.Struct, frozen=True, rename="camel"):
    """The errors of etcd calls; empty: the call succeeds."""

    connect: str = ""
    members: str = ""
    alarms: str = ""
    remove: str = ""
    move_leader: str = ""
    status: tuple[str, ...] = ()


class Faults(msgspec.Struct, frozen=True, rename="camel"):
    """Faults in reading and writing one cluster's objects."""

    unreadable: tuple[Target, ...] = ()
    unlistable: tuple[Target, ...] = ()
    unwritable: tuple[Refusal, ...] = ()


class WorkloadCluster(msgspec.Struct, frozen=True, rename="camel"):
    """The recorded state of one workload cluster."""

    connected: bool = False
    last_probe_success: datetime | None = None
    consecutive_failures: int = 0
    refusal: str = ""
    objects: tuple[dict[str, Any], ...] = ()
    unreadable: tuple[Target, ...] = ()
    unlistable: tuple[Target | str, ...] = ()
    unwritable: tuple[Refusal, ...] = ()
    etcd_members: tuple[Member, ...] | None = None
    etcd_errors: EtcdErrors = EtcdErrors()
    api_server_certificate_expiry: Mapping[str, datetime] = {}
    inspected: bool = False


class Registry(msgspec.Struct, frozen=True):
    """The state of the registry of runtime extensions."""

    ready: bool = True


class Canned(msgspec.Struct, frozen=True):
    """An answer of a runtime extension: a response, the bytes `text` with a status code, or a connection that fails with `error`."""

    response: Mapping[str, Any] | None = None
    error: str = ""
    code: int = 200
    text: str = ""


class Server(msgspec.Struct, frozen=True):
    """The answer to a POST to a URL: a body, the bytes `text`, or a connection that fails with `error`."""

    code: int = 200
    body: Any = None
    text: str | None = None
    error: str = ""


class Idle(msgspec.Struct, frozen=True):
    """A controller that does not run."""

    kind: str
    why: str


class Decided(msgspec.Struct, frozen=True):
    """The decisions of a controller about an object in some passes: the rows that fired, by table."""

    at: datetime
    kind: str
    name: str
    rows: Mapping[str, str]
    namespace: str = ""
    controller: str = ""
    until: datetime | None = None
    passes: int = 1

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)


class Running(msgspec.Struct, frozen=True):
    """The report of the process with the controllers on itself, if it could be asked."""

    controllers: Mapping[str, str] = {}
    """By name: the kind that it reconciles."""
    idle: Mapping[str, Idle] = {}
    """By name: the controllers that do not run, each with the reason."""
    watch_filter: str = msgspec.field(default="", name="watchFilter")
    """The value of the label that objects must have to be reconciled; empty: all are."""
    rights: tuple[str, ...] = ()
    """Rights that the controllers need and do not have."""
    traces: tuple[Decided, ...] = ()
    """Decisions about the objects of the namespace, oldest first."""
    features: Mapping[str, bool] = {}
    failures: tuple[Failing, ...] = ()
    """The objects whose last passes failed."""
    queues: tuple[Queue, ...] = ()
    """The queues of controllers that are not idle."""
    verdicts: Mapping[str, tuple[Past, ...]] = {}
    """By `namespace/name` of a Cluster: its earlier verdicts, oldest first."""

    def why_idle(self, kind: str) -> str:
        """Return why no controller reconciles a kind; empty: one does, or the reason is unknown."""
        return "" if kind in self.controllers.values() else next((i.why for i in self.idle.values() if i.kind == kind), "")


class Observation(msgspec.Struct, frozen=True, rename="camel"):
    """The one document of a bundle that is not an object. An absent field was unknown to the recorder."""

    now: datetime | None = None
    unreadable: tuple[Target, ...] = ()
    unlistable: tuple[Target | str, ...] = ()
    unwritable: tuple[Refusal, ...] = ()
    seen: tuple[str, ...] = ()
    """The kinds that the recorder has listed, even if there were no objects."""
    unseen: tuple[Target, ...] = ()
    """The kinds that it could not list, each with the reason. Controllers have rights of their own and may be able to."""
    unreachable: str = ""
    """Why the recorder could not read the workload cluster. Controllers may be able to."""
    workload_clusters: Mapping[str, WorkloadCluster] = {}
    features: Mapping[str, bool] = {}
    running: Running | None = None
    changed: Mapping[str, str] = {}
    """By `Kind/namespace/name`: the time of the spec's change, for objects whose status is older."""
    suspicions: Mapping[str, str] = {}
    """By `Kind/namespace/name`: the faults that the recorder found in contents that it did not keep."""
    runtime_registry: Registry = Registry()
    runtime_extensions: Mapping[str, Canned] = {}
    extension_servers: Mapping[str, Server] = {}


def faults(source: Observation | WorkloadCluster) -> Faults:
    """Return the faults of the management cluster, or of one workload cluster."""
    listed = tuple(Target(kind=t) if isinstance(t, str) else t for t in source.unlistable)
    return Faults(unreadable=source.unreadable, unlistable=listed, unwritable=source.unwritable)
