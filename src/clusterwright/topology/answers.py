"""Answers of hooks, and their validity."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a hook: it blocks for `retry_after` seconds, if that is not 0."""

    retry_after: int = 0
    message: str = ""

    @classmethod
    def of(cls, response: Mapping[str, Any]) -> Answer:
        """Return the answer in a response."""
        return cls(int(response.get("retryAfterSeconds") or 0), str(response.get("message") or ""))

    @property
    def is_blocking(self) -> bool:
        """Whether the hook blocks."""
        return self.retry_after != 0


class StandingAnswers:
    """Blocking answers that are still valid; a hook is not called again before they expire."""

    def __init__(self) -> None:
        self._until: dict[Hashable, tuple[datetime, str]] = {}

    def of(self, key: Hashable, now: datetime) -> Answer | None:
        """Return the answer with its remaining time; None: call the hook."""
        kept = self._until.get(key)
        if kept is None or kept[0] <= now:
            return None
        return Answer(max(1, round((kept[0] - now).total_seconds())), kept[1])

    def keep(self, key: Hashable, answer: Answer, now: datetime) -> None:
        """Keep an answer, if it blocks."""
        if answer.is_blocking:
            self._until = {k: v for k, v in self._until.items() if v[0] > now}
            self._until[key] = (now + timedelta(seconds=answer.retry_after), answer.message)
