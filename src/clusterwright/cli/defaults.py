"""Defaults of commands. The module imports nothing, because help texts show them."""

from __future__ import annotations

from pathlib import Path

LOCAL = Path(".clusterwright") / "kubeconfig"
"""Where `clusterwright up` leaves the admin kubeconfig unless told otherwise."""
KUBERNETES_VERSION = "v1.34.1"
"""Of new clusters."""
WAIT_SECONDS = 600.0
"""How long commands wait for a cluster."""
