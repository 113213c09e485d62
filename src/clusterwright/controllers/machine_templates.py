"""Read the templates of Machines, watch them, and make the Cluster their owner."""

from __future__ import annotations

from dataclasses import dataclass

from clusterwright.api.core.machine import MachineSpec
from clusterwright.api.meta import ObjectKey, OwnerReference
from clusterwright.controllers.kit.adopt import Providers, owned_metadata
from clusterwright.controllers.kit.lookup import Missing, Unreadable
from clusterwright.controllers.kit.passing import PassFailed


@dataclass(frozen=True, slots=True)
class Templates:
    """The kinds of missing templates, bootstrap first; their names; and the errors."""

    missing: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    failures: tuple[PassFailed, ...] = ()


async def look_at_templates(
    providers: Providers, referrer: ObjectKey, spec: MachineSpec, owner: OwnerReference, *, all_of_them: bool
) -> Templates:
    """Read infrastructure and bootstrap template, and make `owner`, the Cluster, their owner. Skip references to other kinds.

    `all_of_them`: read the second even if the first cannot be read.
    """
    missing: list[str] = []
    names: list[str] = []
    failures: list[PassFailed] = []
    for reference in (spec.infrastructure_ref, spec.bootstrap.config_ref):
        if reference is None or not reference.kind.endswith("Template") or (failures and not all_of_them):
            continue
        found = await providers.look_up(referrer, reference, lambda obj: owned_metadata(obj, owner, {}))
        if isinstance(found, Unreadable):
            failures.append(failed(found.error, found.cause))
        elif isinstance(found, Missing):
            missing.insert(0, reference.kind)
            names.insert(0, f"{reference.kind} {referrer.namespace}/{reference.name}")
    return Templates(tuple(missing), tuple(names), tuple(failures))


def failed(text: str, cause: Exception | None = None) -> PassFailed:
    """Return a failure with its cause."""
    error = PassFailed(text)
    error.__cause__ = cause
    return error
