"""Whether a pass over an ExtensionConfig may begin. Pure."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final

from clusterwright.runtimesdk.registry import Registry
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard

COLD: Final = timedelta(seconds=10)


class Begin(Enum):
    """Whether a pass may begin."""

    WAIT = "wait until the registry knows all ExtensionConfigs"
    GO_ON = "go on"


@guard("the registry knows all ExtensionConfigs")
def ready(registry: Registry) -> bool:
    return registry.is_ready


REGISTRY: Table[Registry] = Table(
    "Registry",
    Row("cold", ~ready, KEEP, requeue=COLD, act=Begin.WAIT),
    Row("ready", OTHERWISE, KEEP, act=Begin.GO_ON),
    about="Evaluated before the pass begins: a registry that is not ready can neither add nor remove handlers.",
)
