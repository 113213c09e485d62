"""Defaults of commands. It imports next to nothing, because help texts show them."""

from __future__ import annotations

from pathlib import Path

from clusterwright.simulation.defaults import KUBERNETES_VERSION

__all__ = ["KUBERNETES_VERSION", "LOCAL", "WAIT_SECONDS"]

LOCAL = Path(".clusterwright") / "kubeconfig"
"""The file to which `clusterwright up` writes the admin kubeconfig by default."""
WAIT_SECONDS = 600.0
"""How many seconds commands wait for a cluster."""
