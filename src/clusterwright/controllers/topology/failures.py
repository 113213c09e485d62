"""How a pass over a topology fails."""

from __future__ import annotations

from clusterwright.api.meta import Json
from clusterwright.runtime.errors import ApiError


class TopologyFailed(ApiError):
    """The pass ends here; the text is what `TopologyReconciled` says.

    `patch` and `hook` name what is at fault, if one of them is; `details` is the whole cause where the text must not quote it.
    """

    def __init__(self, text: str, *, patch: str = "", hook: str = "", details: str = "") -> None:
        super().__init__(text)
        self.patch = patch
        self.hook = hook
        self.details = details

    def within(self, context: str) -> TopologyFailed:
        """The same failure, told from further outside."""
        wrapped = TopologyFailed(f"{context}: {self}", patch=self.patch, hook=self.hook, details=self.details)
        wrapped.__cause__ = self.__cause__ or self
        return wrapped


class ClassNotReady(TopologyFailed):
    """The class is not reconciled: its own event will wake us, trying again will not help."""


def shown(obj: Json) -> str:
    """An object as messages name it."""
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def creation_failure(obj: Json, error: ApiError) -> TopologyFailed:
    """Why an object could not be created, without its name, so that the text is the same in every pass."""
    details = error.status.get("details")
    if not isinstance(details, dict):
        text = f"failed to create {obj['kind']}.{obj['apiVersion'].rpartition('/')[0]}"
    else:
        text = f"failed to create {details.get('kind', '')}.{details.get('group', '')}"
        causes = [f"{c.get('reason', '')}: {c.get('field', '')}: {c.get('message', '')}" for c in details.get("causes") or ()]
        if causes:
            text += ": " + " ".join(causes)
    failed = TopologyFailed(text, details=f"{obj['kind']} {shown(obj)}: {error}")
    failed.__cause__ = error
    return failed
