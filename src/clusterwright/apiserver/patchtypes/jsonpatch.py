"""JSON patch (RFC 6902) with kube-apiserver's behaviour."""

from __future__ import annotations

from typing import Any

from clusterwright.apiserver.schema.goscalars import json_type
from clusterwright.apiserver.status import bad_request, failure
from clusterwright.golang.jsonpatch import PatchFailed, apply_in_place

_MEMBERS = frozenset({"op", "path", "from", "value"})
_MAXIMUM = 10_000


def json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch to `target`, in place where possible.

    Raises StatusError: 400 if it is malformed, 422 if it does not apply.
    """
    if operations is None:
        return target
    if not isinstance(operations, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(operations)} into Go value of type []handlers.jsonPatchOp"
        )
    wrong = next((o for o in operations if not isinstance(o, dict)), None)
    if wrong is not None:
        raise bad_request(f"error decoding patch: json: cannot unmarshal {json_type(wrong)} into Go value of type handlers.jsonPatchOp")
    if len(operations) > _MAXIMUM:
        text = f"The allowed maximum operations in a JSON patch is {_MAXIMUM}, got {len(operations)}"
        raise failure(413, "RequestEntityTooLarge", f"Request entity too large: {text}")
    try:
        return apply_in_place(target, operations, strict=False)
    except PatchFailed as e:
        raise failure(422, "Invalid", "the server rejected our request due to an error in our request", {}) from e


def unknown_members(operations: Any) -> list[str]:
    """Return an error for each unknown member of a JSON patch operation."""
    return [
        f'unknown field "[{index}].{member}"'
        for index, operation in enumerate(operations if isinstance(operations, list) else ())
        if isinstance(operation, dict)
        for member in operation
        if member not in _MEMBERS
    ]
