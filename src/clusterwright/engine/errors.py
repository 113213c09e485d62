"""The errors of an engine, each with one sentence that says what to do. Pure.

EngineError
    Unreachable    nothing answers on the socket
    Denied         the socket may not be opened
    Slow           no answer in time
    Full           the engine has no space left
    Unsupported    the engine, or its host, cannot do what was asked for
    Missing        the container, image, network, volume or path does not exist
    Conflict       the name is taken, or the state does not allow it
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence

MOST_TEXT = 600
"""The most characters of an engine's message that are repeated."""


class EngineError(Exception):
    """The engine refused a request, or could not be reached."""


class Unreachable(EngineError): ...


class Denied(EngineError): ...


class Slow(EngineError): ...


class Full(EngineError): ...


class Unsupported(EngineError): ...


class Missing(EngineError): ...


class Conflict(EngineError): ...


_HINTS: Sequence[tuple[str, type[EngineError], str]] = (
    (r"no space left on device|disk quota exceeded", Full, "free space for the engine (docker system prune), then it is tried again"),
    (
        r"unable to apply caps|error setting rlimit|oom_score_adj.*permission denied",
        Unsupported,
        "the host does not grant all capabilities, often CAP_SYS_RESOURCE: use a host that does, or a runtime that leaves them out",
    ),
    (r"too many open files|inotify", Full, "raise fs.inotify.max_user_instances (1024) and fs.inotify.max_user_watches on the host"),
    (r"pool.*(overlap|exhausted)|non-overlapping IPv4", Full, "remove networks that nothing uses (docker network prune)"),
    (r"port is already allocated|address already in use", Conflict, "choose another port, or stop what listens there"),
    (r"already (exists|in use|has active endpoints)", Conflict, ""),
    (r"toomanyrequests|rate limit", Slow, "the registry limits pulls: log in, wait, or load the image with `clusterwright load image`"),
    (
        r"no such host|connection refused|i/o timeout|tls: |TLS handshake",
        Unreachable,
        "the registry cannot be reached: check the network, or load the image into the engine",
    ),
)
_STATUSES: dict[int, type[EngineError]] = {401: Denied, 403: Denied, 404: Missing, 409: Conflict, 507: Full}


def refused(what: str, status: int, message: str) -> EngineError:
    """Return the error for an engine's answer: its words, and the next step if known."""
    text = " ".join(message.split())[:MOST_TEXT] or f"the engine answered {status}"
    for pattern, kind, hint in _HINTS:
        if re.search(pattern, text, re.IGNORECASE):
            return (Missing if status == 404 and kind is Unreachable else kind)(f"{what}: {text}{f' ({hint})' if hint else ''}")
    return _STATUSES.get(status, EngineError)(f"{what}: {text}")


def unopened(socket: str, error: OSError) -> EngineError:
    """Return the error for a socket that cannot be opened."""
    if error.errno in {errno.EACCES, errno.EPERM}:
        return Denied(
            f"no permission to open {socket}: add your user to the group that owns it (often `docker`), or name a socket of your own"
        )
    if error.errno == errno.ENOENT:
        return Unreachable(f"no container engine at {socket}: start Docker or Podman, or name its socket with --engine unix:///PATH")
    if error.errno == errno.ECONNREFUSED:
        return Unreachable(f"no container engine answers at {socket}: it is stopped; start Docker or Podman")
    return Unreachable(f"the container engine at {socket} cannot be reached: {error.strerror or type(error).__name__}")
