"""Decisions of a plane in the timeline of a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.record import running_at
from clusterwright.cli.timeline import Style, as_text, moments_of, selected
from clusterwright.offline.bundle import assemble
from clusterwright.offline.observation import API_VERSION
from clusterwright.offline.timeline import Moment, Sort

TRACE = {
    "at": "2026-01-01T00:00:01.500000Z",
    "until": "2026-01-01T00:00:09.000000Z",
    "passes": 3,
    "controller": "cluster",
    "kind": "Cluster",
    "namespace": "default",
    "name": "c",
    "rows": {"Available": "all well"},
}
CLUSTER = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "metadata": {"name": "c", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z", "uid": "1"},
    "spec": {},
}


async def test_decisions_of_controllers_appear_in_order() -> None:
    async def traces(request: web.Request) -> web.Response:
        assert dict(request.query) == {"namespace": "default"}
        assert request.headers["Authorization"] == "Bearer a-token"
        return web.json_response({"controllers": {"cluster": "Cluster"}, "traces": [TRACE, {**TRACE, "name": "somebody-elses"}]})

    app = web.Application()
    app.router.add_get("/traces", traces)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        found = await running_at(runner.addresses[0][1], "default", "a-token")
    finally:
        await runner.cleanup()

    observation = {"apiVersion": API_VERSION, "kind": "Observation", "running": found}
    moments = moments_of(assemble([CLUSTER, observation]), "c")

    assert [(m.sort, m.about, m.text) for m in moments] == [("created", "", "was created"), ("decision", "Available", "row all well fired")]


async def test_a_port_without_a_listener_is_named() -> None:
    with pytest.raises(Failed, match="--health-port 1: no decisions from http"):
        await running_at(1, "default", "a-token")


MOMENTS = [
    Moment("2026-01-01T23:59:58Z", "Cluster/ns/c", Sort.CREATED, "", "was created"),
    Moment("2026-01-01T23:59:59Z", "Machine/ns/m", Sort.CONDITION, "Deleting", "became False NotDeleting"),
    Moment("2026-01-02T00:00:01Z", "Machine/ns/m", Sort.CONDITION, "Ready", "became True Ready"),
    Moment("2026-01-02T00:00:02Z", "Machine/ns/m", Sort.DECISION, "Ready", "row all fired"),
    Moment("2026-01-02T00:10:00Z", "Machine/ns/m", Sort.WARNING, "Failed", "no\n  more"),
    Moment("2026-01-02T00:20:00Z", "Cluster/ns/c", Sort.VERDICT, "object.error", "Broken: Machine/ns/m no more"),
]
NOW = datetime(2026, 1, 2, 0, 30, tzinfo=UTC)


def test_on_a_terminal_each_day_is_shown_once_and_trouble_has_a_colour() -> None:
    assert list(as_text(selected(MOMENTS, NOW), Style(day="", is_coloured=True))) == [
        "2026-01-01",
        "23:59:58  created    Cluster/c  was created",
        "2026-01-02",
        "00:00:01  condition  Machine/m  Ready became True Ready",
        "\033[33m00:10:00  warning    Machine/m  Failed no more\033[0m",
        "\033[1m00:20:00  verdict    Cluster/c  Broken: Machine/ns/m no more\033[0m",
    ]


def test_elsewhere_every_line_has_its_whole_time() -> None:
    lines = list(as_text(selected(MOMENTS, NOW)))
    assert lines[0] == "2026-01-01T23:59:58Z  created    Cluster/c  was created"
    assert not any("\033" in line for line in lines)


def test_important_moments_are_shown_and_more_on_request() -> None:
    def sorts(**asked: Any) -> list[str]:
        return [str(m.sort) for m in selected(MOMENTS, NOW, **asked)]

    assert sorts() == ["created", "condition", "warning", "verdict"]
    assert sorts(decisions=True) == ["created", "condition", "decision", "warning", "verdict"]
    assert len(sorts(everything=True)) == len(MOMENTS)
    assert sorts(kinds="machine,kcp") == ["condition", "warning"]
    assert sorts(since="15m") == ["verdict"]
    assert sorts(since="2026-01-02T00:10:00Z") == sorts(since="2026-01-02T01:10:00+01:00") == ["warning", "verdict"]
    with pytest.raises(Usage, match="--since yesterday: a duration such as 30m or a time"):
        sorts(since="yesterday")
