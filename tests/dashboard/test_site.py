"""The page over real HTTPS, on the API server's own port: who gets in, what is sent along, and that nothing can be changed."""

from __future__ import annotations

import json
import re
from contextlib import AsyncExitStack
from importlib.resources import files
from typing import Any

import aiohttp

from clusterwright.dashboard import site
from clusterwright.dashboard.door import LASTING
from clusterwright.simulation import samples
from dashboard.conftest import Served


async def first(answer: aiohttp.ClientResponse) -> Any:
    """The first difference of a stream."""
    while not (line := await answer.content.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    return json.loads(line[6:])


async def test_without_a_session_only_the_empty_page_is_served(served: Served) -> None:
    for path in ("clusters", "clusters/default/c", "clusters/default/c/why/Cluster/c/Available"):
        async with served.session.get(f"{served.url}/dashboard/{path}") as answer:
            assert answer.status == 401
            assert "clusterwright up" in (await answer.json())["message"]
    async with served.session.get(f"{served.url}/dashboard/") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"


async def test_a_link_is_good_for_one_session(served: Served) -> None:
    link = served.links[-1]
    assert link.startswith(f"{served.url}/dashboard/#token=")  # a fragment: not sent, not logged, no referrer
    await served.enter()

    cookie = next(iter(served.session.cookie_jar))
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, True, "Strict", "/dashboard/")
    async with served.session.get(f"{served.url}/dashboard/clusters") as answer:
        assert answer.status == 200
    async with served.session.post(f"{served.url}/dashboard/session", data=link.partition("#token=")[2]) as answer:
        assert answer.status == 401
    assert len(served.links) == 2


async def test_an_invalid_token_opens_no_session(served: Served) -> None:
    for token in (b"", b"x", b"\xff\xfe", b"x" * 257, b"x" * 100_000):
        async with served.session.post(f"{served.url}/dashboard/session", data=token) as answer:
            assert answer.status in {401, 413}
            assert "Set-Cookie" not in answer.headers
    assert len(served.links) == 1


async def test_every_answer_has_its_guards(served: Served) -> None:
    for path in ("", "app.js", "style.css", "clusters", "nowhere", "a/b/c/d"):
        async with served.session.get(f"{served.url}/dashboard/{path}") as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "require-trusted-types-for 'script'" in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_nothing_can_be_changed_here(served: Served) -> None:
    await served.enter()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("", "clusters", "clusters/default/c", "app.js"):
            async with served.session.request(method, f"{served.url}/dashboard/{path}") as answer:
                assert answer.status == 405


async def test_a_session_of_the_page_is_anonymous_to_the_api(served: Served) -> None:
    await served.enter()
    cookie = next(iter(served.session.cookie_jar))

    async with served.session.get(f"{served.url}/api/v1/secrets", headers={"Cookie": f"{cookie.key}={cookie.value}"}) as answer:
        assert answer.status == 403


async def test_paths_lead_nowhere_else(served: Served) -> None:
    await served.enter()
    for path in ("../api/v1/secrets", "%2e%2e/door.py", "..%2fdoor.py", "static/app.js", "__init__.py", "clusters//c", "dashboard"):
        async with served.session.get(f"{served.url}/dashboard/{path}") as answer:
            assert answer.status in {403, 404} or path == "clusters//c"
    async with served.session.get(f"{served.url}/dashboardx/") as answer:
        assert answer.status == 403  # the API's answer to a stranger
    async with served.session.get(f"{served.url}/dashboard", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (308, "/dashboard/")


async def test_streams_send_the_present_values(served: Served) -> None:
    await served.enter()

    async with served.session.get(f"{served.url}/dashboard/clusters") as answer:
        assert answer.content_type == "text/event-stream"
        known = await first(answer)
        while "default/c" not in known["set"]:
            known = await first(answer)
        assert known["set"]["default/c"]["verdict"]["state"]
    async with served.session.get(f"{served.url}/dashboard/clusters/default/c/why/Cluster/c/InfrastructureReady") as answer:
        table = await answer.json()
        assert "rows" in table, table
        assert [r["name"] for r in table["rows"] if r["fired"]] == [table["row"]]
    async with served.session.get(f"{served.url}/dashboard/clusters/default/c/why/DevCluster/c/Ready") as answer:
        assert answer.status == 404
        assert "provider" in (await answer.json())["message"]


async def test_the_number_of_streams_is_bounded(served: Served) -> None:
    await served.enter()
    async with AsyncExitStack() as stack:
        for _ in range(site.STREAMS):
            answer = await stack.enter_async_context(served.session.get(f"{served.url}/dashboard/clusters"))
            await first(answer)
        async with served.session.get(f"{served.url}/dashboard/clusters") as answer:
            assert answer.status == 503


async def test_a_stream_ends_with_its_session(served: Served) -> None:
    await served.enter()
    async with served.session.get(f"{served.url}/dashboard/clusters") as answer:
        await first(answer)
        served.clock.passed = LASTING
        served.server.ensure(samples.cluster("later", has_control_plane_object=True))

        rest = await answer.content.read()

        assert b"event: over" in rest
        assert b"later" not in rest
    async with served.session.get(f"{served.url}/dashboard/clusters") as answer:
        assert answer.status == 401


def test_the_page_never_reads_text_as_markup_and_loads_nothing_from_elsewhere() -> None:
    for name in site._FILES:
        text = (files("clusterwright.dashboard") / "static" / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|srcdoc", text), name
        assert not re.search(r"(https?:)?//[\w.]+\.\w", text.replace("http://www.w3.org/2000/svg", "")), name
    assert {p.name for p in (files("clusterwright.dashboard") / "static").iterdir()} == set(site._FILES)


async def test_why_answers_for_a_cluster_that_existed_before_and_without_an_open_stream(served: Served) -> None:
    labels = {"cluster.x-k8s.io/cluster-name": "c"}
    meta = {"namespace": "default", "labels": labels}
    served.server.ensure([{"apiVersion": "v1", "kind": kind, "metadata": {**meta, "name": "c-ca"}} for kind in ("Secret", "ConfigMap")])
    await served.enter()

    async with served.session.get(f"{served.url}/dashboard/clusters/default/c/why/Cluster/c/InfrastructureReady") as answer:
        assert answer.status == 200, await answer.text()
        assert "rows" in await answer.json()
    async with served.session.get(f"{served.url}/dashboard/clusters/default/other/why/Cluster/other/InfrastructureReady") as answer:
        assert answer.status == 404
        assert (await answer.json())["message"] == "Cluster default/other does not exist"


async def test_who_may_have_a_link_gets_one_and_others_do_not(served: Served) -> None:
    async with served.session.post(f"{served.url}/dashboard/link") as answer:
        assert answer.status == 403
    async with served.session.post(f"{served.url}/dashboard/link", headers={"Authorization": "Bearer nonsense"}) as answer:
        assert answer.status == 403

    async with served.session.post(f"{served.url}/dashboard/link", ssl=served.admin) as answer:
        assert answer.status == 201
        link = (await answer.json())["link"]

    assert link.startswith(f"{served.url}/dashboard/#token=")
    assert len(served.links) == 1  # it is not printed
    async with served.session.post(f"{served.url}/dashboard/session", data=link.partition("#token=")[2]) as answer:
        assert answer.status == 204


async def test_a_browser_that_opens_the_server_is_sent_to_the_page(served: Served) -> None:
    async with served.session.get(f"{served.url}/", headers={"Accept": "text/html,*/*"}, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/dashboard/")
    async with served.session.get(f"{served.url}/", headers={"Accept": "application/json"}) as answer:
        assert answer.status == 403
