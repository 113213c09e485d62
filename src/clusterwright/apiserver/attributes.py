"""Admission: a write as its links see it, and what a link does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from clusterwright.api.meta import Json
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.interfaces import Resource

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True, kw_only=True)
class Attributes:
    """A write as admission sees it. `object` may be changed (or replaced) by `mutate`; None on delete."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    object: Json | None
    old_object: Json | None
    user: User
    dry_run: bool
    options: Json = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    server: Any = None


class Admission(Protocol):
    """One link of the chain. Refusals are StatusErrors."""

    async def mutate(self, attributes: Attributes) -> None:
        """Change the object, or refuse."""

    async def validate(self, attributes: Attributes) -> None:
        """Refuse the write, or do nothing."""
