"""The outcome of a pass over an ExtensionConfig. It reads only the config before it acts."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.runtime import ExtensionConfig
from clusterwright.controllers.kit.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionConfigDone(Snapshot[ExtensionConfig]):
    """The config at the end of the pass, and why discovery failed; empty: it succeeded."""

    error: str = ""
