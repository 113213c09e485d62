"""Check changes of an object's identity: a class may not change its kind. Pure."""

from __future__ import annotations

from clusterwright.api.meta import Json
from clusterwright.controllers.topology.failures import TopologyFailed
from clusterwright.topology.objects import group_of


def check_compatible(current: Json, desired: Json, *, strictly: bool, any_kind: bool = False) -> None:
    """Refuse another namespace; unless `any_kind`, another group or kind; and `strictly`, another name. Raises TopologyFailed."""
    own = f"{current['kind']}.{group_of(current)}/{current['metadata']['name']}"
    problems = []

    def compare(path: str, what: str, before: str, after: str, why: str) -> None:
        if before != after:
            problems.append(f'{path}: Forbidden: {what} of {own} cannot be changed from "{before}" to "{after}" {why}')

    cluster = "to prevent incompatible changes in the Cluster"
    if strictly:
        compare("metadata.name", "metadata.name", current["metadata"]["name"], desired["metadata"]["name"], cluster)
    if not any_kind:
        compare("metadata.apiVersion", "apiVersion.group", group_of(current), group_of(desired), cluster)
        compare("metadata.kind", "apiVersion.kind", current["kind"], desired["kind"], cluster)
    compare(
        "metadata.namespace",
        "metadata.namespace",
        current["metadata"].get("namespace", ""),
        desired["metadata"].get("namespace", ""),
        "because templates must be in the same namespace as the Cluster",
    )
    if problems:
        raise TopologyFailed(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
