"""The built-in kinds that are served: their rules, defaults and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterwright.apiserver.interfaces import Resource

__all__ = ["resources"]


def resources() -> Sequence[Resource]:
    """Every built-in that is served, with its handler."""
    from clusterwright.apiserver.builtins.kinds import RESOURCES

    return RESOURCES
