"""The errors of a pass over a topology."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clusterwright.api.meta import Json
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.runtime.errors import ApiError


class TopologyFailed(PassFailed):
    """A step of the pass failed; the text is the message of `TopologyReconciled`.

    `details` names the object and quotes the answer where the message must be the same in every pass; an Event shows them.
    """

    def __init__(self, text: str, *, details: str = "") -> None:
        super().__init__(text)
        self.details = details


class ClassNotReady(TopologyFailed):
    """The class is not reconciled. Its own change starts the next pass; a retry does not help."""


@contextmanager
def failing(context: str) -> Iterator[None]:
    """Turn an ApiError of the block into a TopologyFailed whose text begins with the context."""
    try:
        yield
    except ApiError as error:
        known = isinstance(error, TopologyFailed)
        details = error.details if isinstance(error, TopologyFailed) else ""
        raise TopologyFailed(f"{context}: {error}", details=details) from (error.__cause__ if known and error.__cause__ else error)


def shown(obj: Json) -> str:
    """Return an object's name for messages."""
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def creation_failure(obj: Json, error: ApiError) -> TopologyFailed:
    """Return why an object could not be created, without its name, so that the text is the same in every pass."""
    details = error.status.get("details")
    if not isinstance(details, dict):
        text = f"failed to create {obj['kind']}.{obj['apiVersion'].rpartition('/')[0]}"
    else:
        text = f"failed to create {details.get('kind', '')}.{details.get('group', '')}"
        causes = [f"{c.get('reason', '')}: {c.get('field', '')}: {c.get('message', '')}" for c in details.get("causes") or ()]
        if causes:
            text += ": " + " ".join(causes)
    return TopologyFailed(text, details=f"{obj['kind']} {shown(obj)}: {error}")
