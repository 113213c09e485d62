"""Turn an error into one line and an exit status. This is the only place where commands fail."""

from __future__ import annotations

from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.cli.subjects import BadSubject
from clusterwright.runtime.errors import ApiError


class Usage(Exception):
    """The user called the command wrongly; the text says how."""


class Failed(Exception):
    """The command could not do its work; the text says why."""


def told(error: Exception) -> tuple[str, int] | None:
    """Return the line and the exit status (2: wrong call, 1: failure); None for a defect of ours, which needs its traceback."""
    if isinstance(error, Usage | BadSubject):
        return str(error), 2
    if isinstance(error, Failed):
        return str(error), 1
    if isinstance(error, InvalidKubeconfig | ApiError):
        return " ".join(str(error).split()) if isinstance(error, InvalidKubeconfig) else str(error), 1
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1
    return None
