"""What a pass over an ExtensionConfig has found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterwright.api.runtime import ExtensionConfig


@dataclass(frozen=True, slots=True)
class ExtensionConfigSnapshot:
    """The config as this pass leaves it so far, and why its extension could not be discovered; empty: it was."""

    object: ExtensionConfig
    now: datetime
    error: str = ""
