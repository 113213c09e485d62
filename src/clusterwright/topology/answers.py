"""What lifecycle hooks answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook answered: it blocks for `retry_after` seconds, if that is not 0."""

    retry_after: int = 0
    message: str = ""

    @property
    def is_blocking(self) -> bool:
        """Whether to wait."""
        return self.retry_after != 0
