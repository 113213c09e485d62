"""A peer that has its say and hangs up."""

from __future__ import annotations


class Said:
    """A stream that says one thing and ends."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    async def send(self, data: bytes) -> None:
        pass

    async def receive(self) -> bytes:
        said, self._text = self._text, b""
        return said

    async def close(self) -> None:
        pass
