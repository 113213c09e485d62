"""All incidents, and the search for one by its number."""

from __future__ import annotations

from collections import Counter
from typing import Final

from clusterwright.simulation.incidents.controlplane import CONTROL_PLANE
from clusterwright.simulation.incidents.etcd import ETCD
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.machines import MACHINES
from clusterwright.simulation.incidents.moves import MOVES
from clusterwright.simulation.incidents.notplayed import NOT_PLAYED
from clusterwright.simulation.incidents.resourcesets import RESOURCE_SETS
from clusterwright.simulation.incidents.runtime import RUNTIME
from clusterwright.simulation.incidents.topology import TOPOLOGIES
from clusterwright.simulation.incidents.workers import WORKER_INCIDENTS

FAMILIES: Final[dict[str, tuple[Incident, ...]]] = {
    "etcd": ETCD,
    "control planes": CONTROL_PLANE,
    "machines": MACHINES,
    "workers": WORKER_INCIDENTS,
    "topologies and updates": TOPOLOGIES,
    "resource sets": RESOURCE_SETS,
    "moves": MOVES,
    "runtime": RUNTIME,
}
INCIDENTS: Final = tuple(incident for family in FAMILIES.values() for incident in family)


class UnknownIncident(LookupError):
    """No incident has this number, or several have it; the text names similar ones."""


def find(text: str) -> Incident:
    """Return the incident that `14197`, `#14197` or `cluster-api#14197` names; raises UnknownIncident."""
    wanted = text.strip().rpartition("/")[2] or text
    exact = [i for i in INCIDENTS if wanted in _names(i)]
    found = exact or [i for i in INCIDENTS if wanted.lstrip("#") in {n.rpartition("#")[2] for n in _names(i)}]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownIncident(f"several incidents have the number {text}: name one of {', '.join(i.name for i in found)}")
    left_out = next((i for i in NOT_PLAYED if wanted in {i.name, str(i.number), f"#{i.number}"}), None)
    if left_out is not None:
        raise UnknownIncident(f"incident {left_out.name} ({left_out.title}) is not played: {left_out.reason}")
    near = sorted(INCIDENTS, key=lambda i: (-_likeness(wanted, i), i.number))[:3]
    raise UnknownIncident(
        f"no incident {text!r} is known; near: {', '.join(i.name for i in near)}; `clusterwright incident list` names all"
    )


def _names(incident: Incident) -> set[str]:
    """Return the full names of an incident: its own, and those of issues about the same fault."""
    project = incident.project.rpartition("/")[2]
    others = {f"{project}{other}" if other.startswith("#") else other.rpartition("/")[2] for other in incident.also}
    return {incident.name, *others}


def _likeness(text: str, incident: Incident) -> int:
    """Return the number of characters that two names share; equal digits in the same place count most."""
    number = text.rpartition("#")[2]
    same = sum(a == b for a, b in zip(number, str(incident.number), strict=False))
    shared = sum((Counter(text.lower()) & Counter(incident.name.lower())).values())
    return 10 * same * (len(number) == len(str(incident.number))) + shared
