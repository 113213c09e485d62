"""What a controller is given, and how it declares itself. The composition root wires; nothing here is global."""

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
    """Records Kubernetes Events; never blocks, never fails the caller."""

    def record(self, obj: Object | Unstructured, type: str, reason: str, message: str) -> None:
        """`type` is Normal or Warning."""


class NoEvents:
    """Records nothing."""

    def record(self, obj: Object | Unstructured, type: str, reason: str, message: str) -> None:
        """Drop the Event."""


class DynamicWatches(Protocol):
    """Watches on kinds learned at run time; changes wake this controller's key found in the ownerReferences."""

    async def ensure(self, kind: GroupVersionKind, also: Mapper | None = None, *, lasting: bool = False) -> None:
        """Watch the kind from now on; idempotent and cheap when it is watched already. Changes wake the keys that `also` names, too.

        `lasting`: owners are not woken by objects that come or go, which they may have made and taken back themselves.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTools:
    """The tools that every pass needs. `Dependencies` add more."""

    client: Client
    clock: Clock
    random: Random
    events: EventRecorder
    reports: Reports
    """Takes the writes that a pass leaves for a moment; the controller sends them."""
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
    """Wake a key of this controller, with a reason for traces."""
    extensions: Extensions = field(default_factory=NoExtensions)
    """Runtime extensions; who may not use them (feature gate RuntimeSDK) does not ask."""
    runtime: RuntimeClient | None = None
    """The same, as who discovers and registers them sees it; None: there is none."""
    enqueue_after: Callable[[ObjectKey, timedelta, str], None] = lambda _key, _delay, _reason: None
    """Wake a key after a while: to tell what time alone changes, where the pass itself waits for nothing."""
    options: Mapping[str, Any]
    """Flags by name, e.g. `watch-filter`, `remote-conditions-grace-period`; absent means the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadWake:
    """Wake keys when a workload cluster connects, disconnects, or its probe has failed for `failing_for`.

    `map` is called with the Cluster.
    """

    map: Mapper
    failing_for: timedelta | None = None


class Access(NamedTuple):
    """What a controller does with a resource of the management cluster."""

    resource: str
    """`machines.cluster.x-k8s.io/status`; `*.infrastructure.cluster.x-k8s.io`: every resource of a group."""
    verbs: str
    """Separated by spaces."""
    names: tuple[str, ...] = ()
    """Only objects of these names; empty: any."""


def providers(verbs: str, *groups: str) -> tuple[Access, ...]:
    """Access to objects of providers, of any kind in the groups `infrastructure`, `bootstrap` or `controlplane`; they are watched, too."""
    return tuple(Access(f"*.{group}.cluster.x-k8s.io", f"get list watch {verbs}".rstrip()) for group in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDefinition:
    """A controller as data. Each `controllers/<kind>/build.py` has one, called CONTROLLER."""

    name: str
    kind: type[Object]
    watches: tuple[Watch, ...]
    make: Callable[[Dependencies], Reconciler]
    workload_wake: WorkloadWake | None = None
    concurrency: int = 10
    look: float = 0.0
    """Seconds after which an object is looked at again, where facts matter that no watch reports; 0: only by the resync."""
    access: tuple[Access, ...] = ()
    """What it does beside watching `kind` and the kinds of `watches`, and writing objects of `kind` with their status."""
    is_provider: bool = False
    """Whether it makes infrastructure, and reaches no workload cluster as others do."""
    gate: str = ""
    """The feature gate without which the controller does not run."""
