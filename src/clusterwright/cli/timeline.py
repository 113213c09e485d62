"""`clusterwright timeline cluster/NAME`: print a cluster's history: conditions, Events, and decisions of controllers."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.cli import connect, subjects
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_bundle
from clusterwright.cli.record import gather
from clusterwright.cli.upflags import duration
from clusterwright.offline.bundle import Bundle, assemble
from clusterwright.offline.ownership import name_of
from clusterwright.offline.timeline import Moment, Sort, timeline
from clusterwright.offline.verdict_times import moments
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.following import changes, of_cluster

_CALM: Final = frozenset({"Deleting", "Paused", "Remediating", "RollingOut", "ScalingUp", "ScalingDown", "Updating"})
"""Conditions that are normal while they are not True."""


def run(arguments: argparse.Namespace) -> int:
    """Print the moments, oldest first; with --watch continue with new ones. Return 1 if the cluster does not exist."""
    subject = subjects.parse_cluster(arguments.words)
    arguments.namespace = subject.namespace or arguments.namespace
    arguments.day = ""  # none was shown yet
    _moment(arguments.since, SystemClock().now())  # what cannot be understood is told before anything is read
    if arguments.source:
        if arguments.watch:
            raise Usage("--from and --watch cannot be combined: a file does not change")
        bundle = read_bundle(arguments.source)
        _tell(arguments, _selected(arguments, moments_of(bundle, subject.name), bundle.moment()))
        return 0
    return asyncio.run(_run(arguments, subject))


def moments_of(bundle: Bundle, name: str) -> list[Moment]:
    """Return the changes, Events, decisions and verdicts in a bundle; raises Failed if the Cluster is not in it."""
    cluster = next((o for o in bundle.objects if o["kind"] == "Cluster" and o["metadata"]["name"] == name), None)
    if cluster is None:
        raise Failed(f"cluster {name!r} not found in the file")
    events = [o for o in bundle.objects if o["kind"] == "Event"]
    objects = [Unstructured(o) for o in bundle.objects if o["kind"] != "Event"]
    known = {(o.kind, o.key) for o in objects}
    running = bundle.observation.running
    if running is None:
        return timeline(objects, events)
    key = Unstructured(cluster).key
    past = moments(name_of("Cluster", *key), running.verdicts.get(str(key), ()))
    return sorted([*timeline(objects, events, [d for d in running.traces if (d.kind, d.key) in known]), *past])


def selected(
    found: Iterable[Moment], now: datetime, *, since: str = "", kinds: str = "", decisions: bool = False, everything: bool = False
) -> list[Moment]:
    """Return the selected moments of a timeline; raises Usage if `since` is neither a duration nor a time."""
    oldest = _moment(since, now)
    wanted = {subjects.kind_of(kind) for kind in kinds.split(",") if kind}
    return [
        moment
        for moment in found
        if moment.at >= oldest
        and (not wanted or moment.object.partition("/")[0] in wanted)
        and (everything or decisions or moment.sort is not Sort.DECISION)
        and (everything or not _is_calm(moment))
    ]


def _is_calm(moment: Moment) -> bool:
    return moment.sort is Sort.CONDITION and moment.about in _CALM and not moment.text.startswith("became True")


def _moment(since: str, now: datetime) -> str:
    """Return a time, or a duration before now, in the format of moments; empty for none."""
    if not since:
        return ""
    try:
        given = datetime.fromisoformat(since)
    except ValueError:
        try:
            given = now - duration(since)
        except argparse.ArgumentTypeError as error:
            raise Usage(f"--since {since}: a duration such as 30m or a time in RFC 3339 is expected ({error})") from None
    return f"{given.astimezone(UTC) if given.tzinfo else given:%Y-%m-%dT%H:%M:%SZ}"


def _selected(arguments: argparse.Namespace, found: Iterable[Moment], now: datetime) -> list[Moment]:
    asked = {"since": arguments.since, "kinds": arguments.kind, "decisions": arguments.decisions, "everything": arguments.all}
    return selected(found, now, **asked)


async def _run(arguments: argparse.Namespace, subject: subjects.Subject) -> int:
    connection = connect.resolve(arguments)
    key = ObjectKey(arguments.namespace or connection.namespace, subject.name)
    told: dict[Moment, None] = {}
    began = SystemClock().now()

    async def look() -> None:
        bundle = assemble(await gather(arguments, str(key)))
        found = _selected(arguments, moments_of(bundle, key.name), began)
        _tell(arguments, [moment for moment in found if moment not in told])
        told.update(dict.fromkeys(found))

    if not arguments.watch:
        await look()
        return 0
    events = (f"/api/v1/namespaces/{key.namespace}/events", ())
    async with connect.connected(connection) as client, aclosing(changes(client, [*of_cluster(key), events], settle=0.5)) as changed:
        async for _ in changed:
            try:
                await look()
            except NotFound:
                if not told:
                    raise
                print(f"cluster {key} is gone", flush=True)
                break
    return 0


def _tell(arguments: argparse.Namespace, moments: Iterable[Moment]) -> None:
    is_terminal = sys.stdout.isatty()
    style = Style(day=arguments.day if is_terminal else None, is_coloured=is_terminal and not os.environ.get("NO_COLOR"))
    for line in _json(moments) if arguments.output == "json" else as_text(moments, style):
        print(line, flush=True)
    arguments.day = style.day


def _json(moments: Iterable[Moment]) -> Iterator[str]:
    for moment in moments:
        line: Json = moment.to_json()
        yield json.dumps(line)


@dataclass(slots=True)
class Style:
    """The format of lines. With `day`, the last day that was shown, each new day gets a line and the others show the time only."""

    day: str | None = None
    is_coloured: bool = False


_COLOURS: Final = {Sort.WARNING: "33", Sort.VERDICT: "1", Sort.DECISION: "2"}


def as_text(moments: Iterable[Moment], style: Style | None = None) -> Iterator[str]:
    """Yield a line for each moment."""
    style = style or Style()
    for moment in moments:
        at = moment.at
        if style.day is not None:
            day, _, at = moment.at.rstrip("Z").partition("T")
            if day != style.day:
                yield day
                style.day = day
        kind, _, rest = moment.object.partition("/")
        about = moment.about if moment.sort is not Sort.VERDICT else ""
        what = " ".join(filter(None, (about, " ".join(moment.text.split()))))
        line = f"{at}  {moment.sort:<9}  {kind}/{rest.rpartition('/')[2]}  {what}"
        colour = _COLOURS.get(moment.sort) if style.is_coloured else None
        yield f"\033[{colour}m{line}\033[0m" if colour else line
