"""The dependencies of a controller, and the data that declares it. The composition root wires them; nothing here is global."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple, Protocol

from clusterwright.api.meta import GroupVersionKind, Object, ObjectKey, Unstructured
from clusterwright.runtime.client import Client
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.keys import KeySource
from clusterwright.runtime.reconcile import Mapper, Reconciler, Watch
from clusterwright.runtime.reports import Reports
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.topology.extensions import Extensions, NoExtensions
from clusterwright.workload.access import WorkloadClusters


class EventRecorder(Protocol):
    """Records Kubernetes Events; never blocks and never fails its caller."""

    def record(self, obj: Object | Unstructured, type: str, reason: str, message: str) -> None:
        """Record an Event; `type` is Normal or Warning."""


class NoEvents:
    """Records nothing."""

    def record(self, obj: Object | Unstructured, type: str, reason: str, message: str) -> None:
        """Drop the Event."""


class DynamicWatches(Protocol):
    """Watches on kinds learned at run time; changes requeue this controller's key found in the ownerReferences."""

    async def ensure(self, kind: GroupVersionKind, also: Mapper | None = None, *, lasting: bool = False) -> None:
        """Watch the kind from now on; idempotent and cheap when it is watched already. Changes also requeue the keys that `also` returns.

        `lasting`: creation and deletion do not requeue owners, which may have caused them.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTools:
    """The dependencies that every pass needs. `Dependencies` add more."""

    client: Client
    clock: Clock
    random: Random
    events: EventRecorder
    reports: Reports
    """Takes the delayed writes of a pass; the controller sends them."""
    trace: Callable[[ObjectKey, Mapping[str, str]], None] = lambda _key, _rows: None
    """Records which row of which table fired for an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies(PassTools):
    """Everything a reconciler may use. Time, entropy and keys come from here and from nowhere else."""

    keys: KeySource
    workload: WorkloadClusters
    dynamic: DynamicWatches
    features: Mapping[str, bool]
    enqueue: Callable[[ObjectKey, str], None]
    """Requeue a key of this controller, with a reason for traces."""
    extensions: Extensions = field(default_factory=NoExtensions)
    """The runtime extensions; without the feature gate RuntimeSDK they are not used."""
    runtime: RuntimeClient | None = None
    """The runtime extensions for the controller that discovers and registers them; None: there are none."""
    enqueue_after: Callable[[ObjectKey, timedelta, str], None] = lambda _key, _delay, _reason: None
    """Requeue a key after a while: for changes by time alone, when the pass itself does not wait."""
    options: Mapping[str, Any]
    """Flags by name, for example `watch-filter` or `remote-conditions-grace-period`; absent means the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadWake:
    """Requeue keys when a workload cluster connects, disconnects, or its probe has failed for `failing_for`.

    `map` is called with the Cluster.
    """

    map: Mapper
    failing_for: timedelta | None = None


class Access(NamedTuple):
    """The access of a controller to a resource of the management cluster."""

    resource: str
    """The resource: `machines.cluster.x-k8s.io/status`; `*.infrastructure.cluster.x-k8s.io`: every resource of a group."""
    verbs: str
    """The verbs, separated by spaces."""
    names: tuple[str, ...] = ()
    """The names of the objects; empty: any."""


def providers(verbs: str, *groups: str) -> tuple[Access, ...]:
    """Return access to provider objects of any kind in the groups `infrastructure`, `bootstrap` or `controlplane`, with watches."""
    return tuple(Access(f"*.{group}.cluster.x-k8s.io", f"get list watch {verbs}".rstrip()) for group in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDefinition:
    """A controller as data. Each `controllers/<kind>/build.py` defines one, called CONTROLLER."""

    name: str
    kind: type[Object]
    watches: tuple[Watch, ...]
    make: Callable[[Dependencies], Reconciler]
    workload_wake: WorkloadWake | None = None
    concurrency: int = 10
    look: float = 0.0
    """Seconds after which an object is reconciled again, if it depends on facts without a watch; 0: only by the resync."""
    access: tuple[Access, ...] = ()
    """The access beyond watching `kind` and the kinds of `watches`, and writing objects of `kind` with their status."""
    is_provider: bool = False
    """Whether it creates infrastructure, and reaches no workload cluster as others do."""
    gate: str = ""
    """The feature gate without which the controller does not run."""
