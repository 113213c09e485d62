"""Situations on which the verdict is not the truth yet: each must fail, so that the list only gets shorter."""

from __future__ import annotations

from typing import Final

STILL_WRONG: Final = frozenset(
    {
        "bootstrap config in the place of its template",
        "condition of a failure that is true",
        "degraded condition that is true",
        "deployment of a misspelt Cluster beside one that is well",
        "deployment of no Cluster",
        "error condition that is true",
        "health check of a Cluster that never was",
        "machine of a Cluster that never was",
        "pre-terminate hook of a leader",
        "provider machine that is just being made",
        "resource set applies an unknown kind",
        "worker template is a machine and no template",
    }
)
