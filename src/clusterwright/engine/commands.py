"""Run commands inside containers: input goes in, output comes back in frames with the number of their stream."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clusterwright.engine.connection import Connection, closed
from clusterwright.engine.errors import Slow, Unreachable

MOST_OUTPUT = 1 << 20
"""How many bytes of output are kept: its end, where errors are."""
_STEP = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The result of a command."""

    code: int
    output: bytes
    """Standard output and error, in the order of writing; only the end if there is too much."""

    @property
    def text(self) -> str:
        """The output as text."""
        return self.output.decode("utf-8", "replace")


async def attached(connection: Connection, path: str, input: bytes | Path, *, timeout: float, most: int) -> bytes:
    """Start a created command, send its input, and return its output at the end. Raises EngineError."""
    reader, writer = await connection.upgrade("POST", path, {"Detach": False, "Tty": False})
    try:
        async with asyncio.timeout(timeout):
            feeding = asyncio.create_task(_feed(writer, input))
            try:
                return await _frames(reader, most)
            finally:
                feeding.cancel()
                with suppress(asyncio.CancelledError):
                    await feeding
    except TimeoutError as error:
        raise Slow(f"the command did not end within {timeout:.0f} s") from error
    except (OSError, asyncio.IncompleteReadError) as error:
        raise Unreachable("the connection to a command in a container broke") from error
    finally:
        await closed(writer)


async def _feed(writer: asyncio.StreamWriter, input: bytes | Path) -> None:
    """Write the input, then end it; a command that reads no input may end earlier."""
    if not input:
        return
    source = await asyncio.to_thread(input.open, "rb") if isinstance(input, Path) else io.BytesIO(input)
    with source, suppress(OSError):
        while chunk := await asyncio.to_thread(source.read, _STEP) if isinstance(input, Path) else source.read(_STEP):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def _frames(reader: asyncio.StreamReader, most: int) -> bytes:
    """Read frames until the end: one byte of stream number, three of nothing, four of length, then the bytes."""
    kept = bytearray()
    while True:
        try:
            head = await reader.readexactly(8)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return bytes(kept)
        except (
            ConnectionResetError,
            BrokenPipeError,
        ):  # Podman's way to end a command that has left input unread; its exit code is known all the same
            return bytes(kept)
        left = int.from_bytes(head[4:], "big")
        while left:
            chunk = await reader.read(min(left, _STEP))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(chunk)
            kept += chunk
            if len(kept) > 2 * most:
                del kept[:-most]
        if len(kept) > most:
            del kept[:-most]
