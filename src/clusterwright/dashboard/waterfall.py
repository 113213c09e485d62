"""How long each step of provisioning took, as far as conditions tell: from the creation of an object to each that became True. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.offline.kinship import name_of
from clusterwright.offline.timeline import conditions_shown

STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Cluster": ("InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable"),
    "Machine": ("BootstrapConfigReady", "InfrastructureReady", "NodeReady", "Ready"),
}
"""The conditions that mark the way of each kind."""


def waterfall(objects: Iterable[Unstructured]) -> Iterator[tuple[str, Json]]:
    """By object: its steps in the order in which they ended, each beginning where the one before ended; open ones last, without end."""
    for obj in objects:
        steps, made = STEPS.get(obj.kind), obj.metadata.creation_timestamp
        if steps is None or made is None:
            continue
        said = {c.type: c for c in conditions_shown(obj)}
        found = [said[s] for s in steps if s in said]
        done = sorted(((at, c.type) for c in found if c.status == "True" and (at := c.last_transition_time) is not None))
        shown: list[Json] = []
        begun = made
        for at, type_ in done:
            end = max(at, begun)
            shown.append({"step": type_, "from": f"{begun:%Y-%m-%dT%H:%M:%SZ}", "to": f"{end:%Y-%m-%dT%H:%M:%SZ}", "why": ""})
            begun = end
        waiting = [c for c in found if c.status != "True"]
        if waiting:
            first = waiting[0]
            shown.append({"step": first.type, "from": f"{begun:%Y-%m-%dT%H:%M:%SZ}", "to": None, "why": first.reason})
        yield name_of(obj.kind, *obj.key), {"created": f"{made:%Y-%m-%dT%H:%M:%SZ}", "kind": obj.kind, "name": obj.key.name, "steps": shown}
