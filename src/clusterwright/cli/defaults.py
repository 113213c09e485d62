"""Defaults of commands. It imports next to nothing, because help texts show them."""

from __future__ import annotations

from pathlib import Path

LOCAL = Path(".clusterwright") / "kubeconfig"
"""The file to which `clusterwright up` writes the admin kubeconfig by default."""
WAIT_SECONDS = 600.0
"""How many seconds commands wait for a cluster."""
