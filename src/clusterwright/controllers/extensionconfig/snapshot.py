"""The outcome of a pass over an ExtensionConfig. It reads nothing but the config before it acts."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.runtime import ExtensionConfig
from clusterwright.controllers.kit.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionConfigDone(Snapshot[ExtensionConfig]):
    """The config as this pass leaves it, and why its extension could not be discovered; empty: it was."""

    error: str = ""
