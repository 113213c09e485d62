"""`clusterwright adopt --dry-run`: show what a takeover would write, what would be refused, and what prevents it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from random import SystemRandom

from clusterwright import app
from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.cli import connect, neighbours, running
from clusterwright.cli.refused import refused
from clusterwright.offline.adoption import Forecast, forecast
from clusterwright.offline.bundle import assemble
from clusterwright.offline.record import record
from clusterwright.offline.survey import Surveyor
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import PooledKeySource


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Return 0 if nothing important would be written or refused and no other controller interferes, else 3."""
    parser: argparse.ArgumentParser = arguments.parser
    if not arguments.dry_run:
        parser.error("--dry-run is required: to take over, stop the other managers and start `clusterwright manager`")
    try:
        selected = running.select(arguments.controllers, app.selectable_names())
    except ValueError as error:
        parser.error(f"--controllers {arguments.controllers}: {error}")
    report = asyncio.run(_report(arguments, selected))
    print(json.dumps(report, indent=2) if arguments.output == "json" else _text(report))
    matters = any(write["matters"] for cluster in report["clusters"] for write in cluster["writes"])
    refusals = any(cluster["refused"] for cluster in report["clusters"])
    return 3 if matters or refusals or report["inTheWay"] else 0


async def _report(arguments: argparse.Namespace, controllers: frozenset[str]) -> Json:
    clock, keys = SystemClock(), PooledKeySource()
    clusters: list[Json] = []
    async with connect.connected(connect.resolve(arguments)) as client:
        try:
            others, unseen = await neighbours.find(client, clock.now())
            for cluster in await client.list(gvk_of(Cluster), namespace=arguments.namespace):
                surveyor = Surveyor(client, connect.reach, clock=clock, random=SystemRandom(), keys=keys)
                documents = await record(client, cluster.key, clock.now(), surveyor, keep_secrets=True)
                made = await asyncio.to_thread(forecast, assemble(documents), controllers)
                clusters.append({**_cluster(cluster.key, made), "refused": await refused(client, documents)})
        finally:
            await keys.close()
    return {"inTheWay": [one.to_json() for one in others], "unseen": unseen, "clusters": clusters}


def _cluster(key: ObjectKey, made: Forecast) -> Json:
    return {
        "cluster": str(key),
        "passes": made.passes,
        "writes": [write.to_json() for write in made.writes],
        "unfinished": [{"controller": c, "object": o, "error": e} for c, o, e in made.unfinished],
    }


def _text(report: Json) -> str:
    lines = [f"in the way: {one['object']} {one['text']}" for one in report["inTheWay"]]
    lines += [f"could not see {text}" for text in report["unseen"]]
    for cluster in report["clusters"]:
        writes = cluster["writes"]
        matter = [w for w in writes if w["matters"]]
        lines.append(f"{cluster['cluster']}: {cluster['passes']} passes, {len(writes)} writes, {len(matter)} of them matter")
        lines += [f"  {w['controller']} would {w['verb']} {w['object']} {', '.join(w['fields'])}".rstrip() for w in matter]
        said = Counter(f"{w['controller']} would update {field}" for w in writes if not w["matters"] for field in w["fields"])
        lines += [f"  {text} of {count} objects" for text, count in sorted(said.items())]
        lines += [f"  every write to {r['object']} would be refused: {r['error']}" for r in cluster["refused"]]
        lines += [f"  {u['controller']} could not finish with {u['object']}: {u['error']}" for u in cluster["unfinished"]]
    if not report["clusters"]:
        lines.append("no Clusters: nothing to take over")
    return "\n".join(lines)
