"""The list of controllers. A kind may have several, for example `cluster` and `topology/cluster`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from clusterwright.controllers.wiring import ControllerDefinition


@dataclass(frozen=True, slots=True)
class Entry:
    """A controller: its name, the kind that it reconciles, and the package whose build module defines CONTROLLER."""

    name: str
    kind: str
    package: str


# The first controller of a kind is the one that is meant where none is named.
ENTRIES: tuple[Entry, ...] = (
    Entry("cluster", "Cluster", "cluster"),
    Entry("machine", "Machine", "machine"),
    Entry("machinehealthcheck", "MachineHealthCheck", "machinehealthcheck"),
    Entry("machinepool", "MachinePool", "machinepool"),
    Entry("machineset", "MachineSet", "machineset"),
    Entry("machinedeployment", "MachineDeployment", "machinedeployment"),
    Entry("kubeadmconfig", "KubeadmConfig", "kubeadmconfig"),
    Entry("kubeadmcontrolplane", "KubeadmControlPlane", "kubeadmcontrolplane"),
    Entry("clusterresourceset", "ClusterResourceSet", "clusterresourceset"),
    Entry("clusterresourcesetbinding", "ClusterResourceSetBinding", "clusterresourcesetbinding"),
    Entry("extensionconfig", "ExtensionConfig", "extensionconfig"),
    Entry("clusterclass", "ClusterClass", "clusterclass"),
    Entry("topology/cluster", "Cluster", "topology"),
    Entry("topology/machinedeployment", "MachineDeployment", "templates.machinedeployment"),
    Entry("topology/machineset", "MachineSet", "templates.machineset"),
)
KINDS: tuple[str, ...] = tuple(dict.fromkeys(e.kind for e in ENTRIES))
"""The kinds that have a controller."""


def find(kind: str, name: str = "") -> Entry | None:
    """Return the entry of the controller of this name and kind, or of the kind's first; None if there is none."""
    return next((e for e in ENTRIES if e.kind == kind and name in {"", e.name}), None)


@cache
def definition(entry: Entry) -> ControllerDefinition:
    """Return the controller's definition, importing its package now."""
    found: ControllerDefinition = import_module(f"clusterwright.controllers.{entry.package}.build").CONTROLLER
    return found


def controllers() -> tuple[ControllerDefinition, ...]:
    """Return the definitions of all controllers."""
    return tuple(definition(entry) for entry in ENTRIES)
