"""The query options of writes."""

from __future__ import annotations

from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding.negotiation import APPLY_PATCH
from clusterwright.apiserver.status import FieldError, forbidden, invalid, invalid_error, not_supported, required, too_long


def write_options(call: Call, kind: str) -> bool:
    """Check dryRun, fieldManager, fieldValidation and force; return whether this is a dry run. Raises StatusError."""
    query = call.query
    if not call.request.query and kind != "PatchOptions":
        return False
    errors: list[FieldError] = []
    dry = [v for k, v in call.request.query if k == "dryRun"]
    if dry and any(v != "All" for v in dry):
        errors.append(not_supported("dryRun", dry, ["All"]))
    directive = query.get("fieldValidation", "")
    manager = query.get("fieldManager", "")
    if len(manager) > 128:
        errors.append(too_long("fieldManager", 128))
    if not manager.isprintable():
        index, char = next((i, c) for i, c in enumerate(manager) if not c.isprintable())
        errors.append(invalid("fieldManager", manager, f"invalid character U+{ord(char):04X} (at position {index})"))
    if kind == "PatchOptions":
        applying = call.patch_media == APPLY_PATCH
        if applying and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        elif not applying and "force" in query:
            errors.append(forbidden("force", "may not be specified for non-apply patch"))
    if directive not in {"", "Ignore", "Warn", "Strict"}:
        errors.append(not_supported("fieldValidation", directive, ["", "Ignore", "Strict", "Warn"]))
    if errors:
        raise invalid_error("meta.k8s.io", kind, "", errors)
    return bool(dry)
