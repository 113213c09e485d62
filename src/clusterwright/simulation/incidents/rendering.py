"""The page of all incidents, as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from clusterwright.simulation.incidents.catalogue import FAMILIES, INCIDENTS
from clusterwright.simulation.incidents.incident import Incident, NotPlayed
from clusterwright.simulation.incidents.notplayed import NOT_PLAYED

_HEAD = """# Incidents by number

Rendered from the code by `make docs`; do not edit.

These are public incidents of Cluster API and of projects around it. Each one is a scenario that plays with the production controllers in
virtual time, with the adversary that triggers it. `make test` runs all of them, and runs each a second time with our defence taken
out: then the scenario must fail. `clusterwright incident replay NUMBER` plays one and shows what was done, the timeline and the verdict;
`--seed N` varies times and victims.
"""


def as_markdown() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield f"{len(INCIDENTS)} incidents are played."
    for family, incidents in FAMILIES.items():
        yield f"\n## {family[0].upper()}{family[1:]}\n"
        yield "| Incident | There | Here | Replay |"
        yield "|---|---|---|---|"
        for incident in incidents:
            also = f" (also {', '.join(_link(*_parted(incident, other)) for other in incident.also)})" if incident.also else ""
            title = f"**{_cell(incident.title)}**<br>{_link(incident.project, incident.number)}{also}"
            here = f"{_cell(incident.here)}<br>*Adversary: {_cell(incident.adversary)}.*"
            yield f"| {title} | {_cell(incident.there)} | {here} | `clusterwright incident replay {_shortest(incident)}` |"
    yield "\n## Not played\n"
    yield "| Incident | Why no scenario plays it |"
    yield "|---|---|"
    for left_out in NOT_PLAYED:
        yield f"| **{_cell(left_out.title)}**<br>{_link(left_out.project, left_out.number)} | {_cell(left_out.reason)} |"


def _parted(incident: Incident, other: str) -> tuple[str, int]:
    project, _, number = other.rpartition("#")
    return project or incident.project, int(number)


def _link(project: str, number: int) -> str:
    return f"[{project.rpartition('/')[2]}#{number}](https://github.com/{project}/issues/{number})"


def _shortest(incident: Incident) -> str:
    """Return the number, with the project where another incident has the same."""
    everybody: tuple[Incident | NotPlayed, ...] = (*INCIDENTS, *NOT_PLAYED)
    return str(incident.number) if sum(i.number == incident.number for i in everybody) == 1 else incident.name


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
