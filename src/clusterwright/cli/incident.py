"""`clusterwright incident list|replay`: public incidents by number, played in virtual time with the controllers of this version."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterator

from clusterwright.api.meta import Json
from clusterwright.cli.errors import Usage
from clusterwright.cli.tabular import table
from clusterwright.cli.timeline import Style, as_text, selected
from clusterwright.simulation.incidents.catalogue import FAMILIES, UnknownIncident, find
from clusterwright.simulation.incidents.incident import Incident
from clusterwright.simulation.incidents.notplayed import NOT_PLAYED
from clusterwright.simulation.incidents.replay import Replay, replay


def run(arguments: argparse.Namespace) -> int:
    """List the incidents, or play one. 3: the incident did not end as it must."""
    if arguments.action == "list":
        _list(as_json=arguments.output == "json")
        return 0
    try:
        incident = find(arguments.number)
    except UnknownIncident as error:
        raise Usage(str(error)) from None
    logging.disable(logging.CRITICAL)  # passes that fail are part of it, and the timeline has them
    try:
        done = replay(incident, arguments.seed)
    finally:
        logging.disable(logging.NOTSET)
    if arguments.output == "json":
        print(json.dumps(_as_json(incident, done), indent=2))
    else:
        print(*_as_text(incident, done, everything=arguments.all), sep="\n")
    return 3 if done.violation else 0


def _list(*, as_json: bool) -> None:
    if as_json:
        played = [{**_described(i), "family": family, "played": True} for family, group in FAMILIES.items() for i in group]
        left_out = [{"name": i.name, "project": i.project, "title": i.title, "played": False, "reason": i.reason} for i in NOT_PLAYED]
        print(json.dumps([*played, *left_out], indent=2))
        return
    rows = [["INCIDENT", "FAMILY", "TITLE"]]
    rows += [[i.name, family, i.title] for family, group in FAMILIES.items() for i in group]
    rows += [[i.name, "(not played)", i.title] for i in NOT_PLAYED]
    print(table(rows))


def _described(incident: Incident) -> Json:
    return {
        "name": incident.name,
        "project": incident.project,
        "number": incident.number,
        "also": list(incident.also),
        "title": incident.title,
        "there": incident.there,
        "here": incident.here,
        "adversary": incident.adversary,
        "stage": incident.stage.text,
    }


def _as_json(incident: Incident, done: Replay) -> Json:
    return {
        "incident": _described(incident),
        "seed": done.seed,
        "began": f"{done.began:%Y-%m-%dT%H:%M:%SZ}",
        "done": [{"at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "text": text} for at, text in done.notes],
        "timeline": [moment.to_json() for moment in done.moments],
        "virtualSeconds": round(done.virtual_seconds, 3),
        "requests": done.requests,
        "held": not done.violation,
        "violation": done.violation,
    }


def _as_text(incident: Incident, done: Replay, *, everything: bool) -> Iterator[str]:
    yield f"{incident.name}  {incident.title}"
    yield f"There:      {incident.there}"
    yield f"Here:       {incident.here}"
    yield f"Adversary:  {incident.adversary}"
    yield f"Start:      {incident.stage.text}"
    yield ""
    yield "Actions"
    for at, text in done.notes:
        yield f"{at:%H:%M:%S}  {text}"
    yield ""
    yield "Timeline" if everything else "Timeline since the stage was ready"
    is_terminal = sys.stdout.isatty()
    style = Style(day="" if is_terminal else None, is_coloured=is_terminal and not os.environ.get("NO_COLOR"))
    yield from as_text(selected(done.moments, done.began, since="" if everything else done.began.isoformat(), everything=everything), style)
    yield ""
    yield f"Seed {done.seed}: {done.virtual_seconds:.0f} s of virtual time, {done.requests} requests."
    yield f"The incident did NOT end as required: {done.violation}" if done.violation else "The incident ended as required."
