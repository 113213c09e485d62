"""Sessions of the web view: a token on the terminal opens one session, and is invalid afterwards."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hmac import compare_digest
from random import Random
from typing import Final

LASTING: Final = 12 * 3600.0
"""The duration of a session, in seconds."""
MOST: Final = 16
"""The most sessions at a time; a new one replaces the oldest."""


class Door:
    """One token, for one use; after its use the next one is created, and reported."""

    def __init__(self, random: Random, monotonic: Callable[[], float], told: Callable[[str], None]) -> None:
        """Create the first token. `random` must be a secure source; `told` is called with each new token."""
        self._random = random
        self._monotonic = monotonic
        self._told = told
        self._sessions: dict[str, float] = {}
        self._token = ""
        self._renew()

    def _secret(self) -> str:
        return urlsafe_b64encode(self._random.randbytes(32)).decode().rstrip("=")

    def _renew(self) -> None:
        self._token = self._secret()
        self._told(self._token)

    def enter(self, token: str) -> str | None:
        """Return a new session for the token; None for a wrong one."""
        if not _equal(token, self._token):
            return None
        session = self._secret()
        self._sessions[session] = self._monotonic() + LASTING
        while len(self._sessions) > MOST:
            del self._sessions[next(iter(self._sessions))]
        self._renew()
        return session

    def knows(self, session: str) -> bool:
        """Return whether the session is valid."""
        now = self._monotonic()
        self._sessions = {known: until for known, until in self._sessions.items() if until > now}
        # every one is compared, in a time that tells nothing
        return any([_equal(session, known) for known in self._sessions])  # noqa: C419


def _equal(given: str, known: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), known.encode())
