"""Turn an error into one line and an exit status. Commands fail in this place only."""

from __future__ import annotations

from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.cli.subjects import BadSubject
from clusterwright.runtime.errors import ApiError


class Usage(Exception):
    """The command was called wrongly; the text says how."""


class Failed(Exception):
    """The command could not do its work; the text says why."""


def told(error: Exception) -> tuple[str, int] | None:
    """Return the line and the exit status (2: called wrongly, 1: failed); None: a defect of ours, whose traceback is wanted."""
    if isinstance(error, Usage | BadSubject):
        return str(error), 2
    if isinstance(error, Failed):
        return str(error), 1
    if isinstance(error, InvalidKubeconfig | ApiError):
        return " ".join(str(error).split()) if isinstance(error, InvalidKubeconfig) else str(error), 1
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1
    return None
