"""Defaults of commands. It imports next to nothing, because help texts show them."""

from __future__ import annotations

from pathlib import Path

from clusterwright.simulation.defaults import KUBERNETES_VERSION

__all__ = ["KUBERNETES_VERSION", "LOCAL", "WAIT_SECONDS"]

LOCAL = Path(".clusterwright") / "kubeconfig"
"""Where `clusterwright up` leaves the admin kubeconfig unless told otherwise."""
WAIT_SECONDS = 600.0
"""How long commands wait for a cluster."""
