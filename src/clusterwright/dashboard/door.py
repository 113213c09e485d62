"""Sessions of the web view: a token in a link opens a session once. Sessions survive a restart where there is a file for them."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from clusterwright.apiserver.serving.tls import write_private

LASTING: Final = 12 * 3600.0
"""Seconds that a session lasts."""
MOST: Final = 16
"""The most sessions at a time, and the most invitations; the oldest one ends when there is another."""
INVITATION: Final = 60.0
"""Seconds in which an invitation must be used."""


class Door:
    """One token that was printed, further ones for those who may ask for one, and the sessions that they opened."""

    def __init__(self, random: Random, now: Callable[[], float], told: Callable[[str], None], kept: Path | None = None) -> None:
        """`random` must be a source of secrets. `now` returns seconds since 1970. `told` is called with each new printed token.

        `kept`: a file for the sessions, which holds their hashes and ends.
        """
        self._random = random
        self._now = now
        self._told = told
        self._kept = kept
        self._sessions: dict[str, float] = {}
        """The end of each session, by its hash."""
        self._invitations: dict[str, float] = {}
        """The end of each invitation, by the hash of its token."""
        if kept is not None:
            with suppress(OSError, msgspec.MsgspecError):  # without it, people open a new link
                self._sessions = msgspec.json.decode(kept.read_bytes(), type=dict[str, float])
        self._token = ""
        self._renew()

    def _secret(self) -> str:
        return urlsafe_b64encode(self._random.randbytes(32)).decode().rstrip("=")

    def _renew(self) -> None:
        self._token = self._secret()
        self._told(self._token)

    def invite(self) -> str:
        """Return a token that opens one session soon. It is not printed."""
        token = self._secret()
        self._invitations[_hash(token)] = self._now() + INVITATION
        _limit(self._invitations)
        return token

    def enter(self, token: str) -> str | None:
        """Return a new session for a token, or None for any other text. The token is used up."""
        is_printed = compare_digest(token.encode("utf-8", "replace"), self._token.encode())
        if not is_printed:
            end = self._invitations.pop(_hash(token), None)
            if end is None or end < self._now():
                return None
        session = self._secret()
        self._sessions[_hash(session)] = self._now() + LASTING
        _limit(self._sessions)
        if self._kept is not None:
            with suppress(OSError):  # a full disk: this session lasts until the next restart
                write_private(self._kept, msgspec.json.encode(self._sessions))
        if is_printed:
            self._renew()
        return session

    def knows(self, session: str) -> bool:
        """Return whether the session was opened here and has not ended."""
        # a hash is looked up, so that the time of an answer says nothing about the sessions
        end = self._sessions.get(_hash(session))
        return end is not None and self._now() < end <= self._now() + LASTING


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _limit(ends: dict[str, float]) -> None:
    while len(ends) > MOST:
        del ends[next(iter(ends))]
