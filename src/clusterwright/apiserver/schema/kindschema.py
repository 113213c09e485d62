"""The `schema` of a handler: a kind for merging, patching and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterwright.apiserver.schema.gotypes import struct
from clusterwright.apiserver.schema.mergetypes import MergeType, of_kind, of_schema
from clusterwright.apiserver.schema.structural import Node


class KindSchema:
    """The schema of a custom resource (`node`) or of a built-in (`go_type`)."""

    __slots__ = ("_merge_type", "go_type", "node", "source")

    def __init__(self, *, node: Node | None = None, go_type: str = "") -> None:
        self.node = node
        self.go_type = go_type
        self.source: Mapping[str, Any] = node.source if node is not None else {}
        self._merge_type: MergeType | None = None

    @property
    def merge_type(self) -> MergeType:
        """The merge type of the kind's objects."""
        if self._merge_type is None:
            self._merge_type = of_schema(self.node, root=True) if self.node is not None else of_kind(self.go_type)
        return self._merge_type

    def zero(self) -> dict[str, Any]:
        """Return an empty object of the kind, to which a create is compared."""
        return struct(self.go_type).zero() if self.go_type else {}
