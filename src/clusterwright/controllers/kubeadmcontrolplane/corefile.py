"""Placeholder of this commit: see the next."""

from __future__ import annotations

from clusterwright.kubeadm.versions import Version


def check_upgrade(from_version: Version, to_version: Version) -> None:
    """Raise ValueError unless CoreDNS can be upgraded so."""


def migrate(text: str, from_version: Version, to_version: Version) -> str:
    """The Corefile for the new version."""
    return text
