"""Host and port in Kubernetes' notation."""

from __future__ import annotations


def host_port(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host or "%" in host else f"{host}:{port}"
