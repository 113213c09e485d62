"""Which controller reconciles which kind."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from clusterwright.controllers.wiring import ControllerDefinition

# Kind -> the package of its controller; each package's build module has a CONTROLLER.
PACKAGES = {
    "Cluster": "cluster",
    "Machine": "machine",
    "KubeadmConfig": "kubeadmconfig",
    "KubeadmControlPlane": "kubeadmcontrolplane",
}


@cache
def controller(kind: str) -> ControllerDefinition | None:
    """The controller of a kind, or None where we have none."""
    if kind not in PACKAGES:
        return None
    definition: ControllerDefinition = import_module(f"clusterwright.controllers.{PACKAGES[kind]}.build").CONTROLLER
    return definition
