"""Structural schemas: pruning, defaulting, validation, and the handlers made of CRDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.api.meta import Json

if TYPE_CHECKING:
    from clusterwright.apiserver.interfaces import KindHandler

__all__ = ["compile_crd"]


def compile_crd(crd: Json, version: str) -> KindHandler:
    """The handler of one version of a CRD, which must be valid."""
    from clusterwright.apiserver.schema import customresource

    return customresource.compile_crd(crd, version)
