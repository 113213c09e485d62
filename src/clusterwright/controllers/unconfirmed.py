"""Remember the names of Machines whose creation ended without an answer.

A create whose connection broke may still take effect later, after any number of passes. Until an answer is known, its name counts as
taken up: the next pass creates under the same name again instead of choosing another, and nothing that was cloned for it is deleted.
Server-side apply makes the repetition harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clusterwright.api.meta import ObjectKey
from clusterwright.controllers.refusals import may_have_taken_effect


class Unconfirmed:
    """Remembers, for each owner, the names sent to the API server without an answer. A restart loses them."""

    def __init__(self) -> None:
        self._names: dict[ObjectKey, dict[str, None]] = {}

    def names(self, owner: ObjectKey) -> tuple[str, ...]:
        """Return the unanswered names of an owner, oldest first."""
        return tuple(self._names.get(owner, ()))

    @contextmanager
    def creating(self, owner: ObjectKey, name: str) -> Iterator[None]:
        """Keep the name if the block ends in an error after which the Machine may or may not exist."""
        names = self._names.setdefault(owner, {})
        names[name] = None
        try:
            yield
        except Exception as error:
            if not may_have_taken_effect(error):
                names.pop(name, None)
            raise
        names.pop(name, None)

    def confirm(self, owner: ObjectKey, name: str) -> None:
        """Drop a name that was seen on the API server."""
        self._names.get(owner, {}).pop(name, None)

    def forget(self, owner: ObjectKey) -> None:
        """Forget an owner that is gone."""
        self._names.pop(owner, None)
