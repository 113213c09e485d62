"""The watcher against a scripted server: each test says what the server answers, and sees what is asked and told."""

import asyncio
from collections import deque
from itertools import pairwise
from random import Random
from typing import cast

import msgspec
import pytest

from clusterwright.api.meta import GroupVersionKind
from clusterwright.api.scheme import Resource
from clusterwright.api.wire import Response, Transport
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.informer import Informer
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.watcher import Watcher
from clusterwright.simulation.loop import run_virtual

from .conftest import failure
from .test_informer import an_object

RESOURCE = Resource(GroupVersionKind("g.dev", "v1", "Parent"), "parents", True)


def line(type, raw):
    return b'{"type":"' + type.encode() + b'","object":' + raw + b"}"


def bookmark(rv):
    return line("BOOKMARK", msgspec.json.encode({"kind": "Parent", "metadata": {"resourceVersion": str(rv)}}))


def error(code, reason):
    return line("ERROR", failure(code, reason).body)


def a_list(rv, *objects, token=""):
    items = b",".join(objects)
    return Response(status=200, body=b'{"metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}' % (rv, token.encode(), items))


class Script:
    """Answers lists and watches in turn; a watch is a list of lines, seconds to wait, or exceptions. Then it is silent for ever."""

    def __init__(self, lists, watches):
        self.lists, self.watches = deque(lists), deque(watches)
        self.asked = []
        self.seconds_per_list = 0

    async def send(self, request):
        query = dict(request.query)
        self.asked.append(("list", query.get("continue", ""), query.get("limit", ""), query.get("resourceVersion", "")))
        await asyncio.sleep(self.seconds_per_list)
        answer = self.lists.popleft() if self.lists else a_list(999)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, request):
        query = dict(request.query)
        assert query["allowWatchBookmarks"] == "true"
        assert 300 <= int(query["timeoutSeconds"]) < 600
        self.asked.append(("watch", query["resourceVersion"], asyncio.get_running_loop().time()))
        script = self.watches.popleft() if self.watches else [None]
        if isinstance(script, Response):
            return script, self._play([])
        if isinstance(script, Exception):
            raise script
        return Response(status=200), self._play(script)

    async def _play(self, script):
        for step in script:
            if step is None:
                await asyncio.Event().wait()
            elif isinstance(step, Exception):
                raise step
            elif isinstance(step, bytes):
                yield step
            else:
                await asyncio.sleep(step)


def play(lists, watches, *, seconds=1000.0, then=None):
    """What was asked, and the objects known at the end."""

    async def main():
        server = Script(lists, watches)
        informer = Informer(RESOURCE.gvk)
        watcher = Watcher(RestClient(cast(Transport, server)), RESOURCE, informer, random=Random(1))
        task = asyncio.ensure_future(watcher.run())
        if then is not None:
            await then(watcher, server)
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])
        known = {entry.key.name: entry.resource_version for entry in informer.entries()}
        return server.asked, known

    return run_virtual(main())


def watches(asked):
    return [entry[1] for entry in asked if entry[0] == "watch"]


def lists(asked):
    return [entry for entry in asked if entry[0] == "list"]


def test_pages_are_followed_then_the_watch_begins_at_the_lists_version():
    asked, known = play([a_list(5, an_object("a", 1), token="t"), a_list(5, an_object("b", 2))], [[None]], seconds=10)

    assert asked[:2] == [("list", "", "500", ""), ("list", "t", "500", "")]
    assert watches(asked) == ["5"]
    assert known == {"a": "1", "b": "2"}


def test_a_stream_that_ends_resumes_after_the_last_event_or_bookmark():
    asked, known = play(
        [a_list(5)],
        [
            [2, line("ADDED", an_object("a", 6)), line("MODIFIED", an_object("a", 7))],
            [2, bookmark(20)],
            [2, line("DELETED", an_object("a", 21))],
            [None],
        ],
        seconds=10,
    )

    assert watches(asked) == ["5", "7", "20", "21"]
    assert len(lists(asked)) == 1
    assert known == {}


@pytest.mark.parametrize(
    "gone", [failure(410, "Expired"), [1, error(410, "Expired")], [1, error(410, "Gone")]], ids=["http", "stream-expired", "stream-gone"]
)
def test_both_forms_of_410_lead_to_a_new_list(gone):
    asked, known = play([a_list(5, an_object("a", 1)), a_list(50, an_object("b", 40))], [gone, [None]], seconds=10)

    assert [entry[0] for entry in asked] == ["list", "watch", "list", "watch"]
    assert watches(asked) == ["5", "50"]
    assert known == {"b": "40"}


def test_repeated_expiries_do_not_become_a_storm_of_lists():
    asked, _ = play([], [failure(410, "Expired")] * 100, seconds=60)

    assert len(lists(asked)) < 12


def test_a_server_that_is_back_is_listed_at_once_though_it_was_away_for_long():
    # the first watch breaks, the server is away for minutes, then it is back and knows of no history
    times = []

    class Restarted(Script):
        async def send(self, request):
            times.append(asyncio.get_running_loop().time())
            return await super().send(request)

        async def stream(self, request):
            times.append(asyncio.get_running_loop().time())
            return await super().stream(request)

    away = [ConnectionFailed("refused")] * 6

    async def main():
        server = Restarted([a_list(5), a_list(1)], [[ConnectionFailed("cut")], *away, failure(410, "Expired"), [None]])
        watcher = Watcher(RestClient(cast(Transport, server)), RESOURCE, Informer(RESOURCE.gvk), random=Random(1))
        task = asyncio.ensure_future(watcher.run())
        await asyncio.sleep(1000)
        task.cancel()
        await asyncio.wait([task])
        return server.asked

    asked = run_virtual(main())
    kinds = [entry[0] for entry in asked]
    again = kinds.index("list", 1)
    assert kinds[again + 1] == "watch"
    assert max(later - earlier for earlier, later in pairwise(times[:again])) > 5, "it was waited for, longer and longer"
    assert times[again] - times[again - 1] < 1, "it answered: what it asks for is done at once"


def test_an_error_in_the_stream_that_is_the_servers_own_leads_to_a_new_list():
    asked, _ = play([a_list(5), a_list(6)], [[1, error(500, "InternalError")], [None]], seconds=10)

    assert [entry[0] for entry in asked] == ["list", "watch", "list", "watch"]


def test_being_throttled_in_the_stream_keeps_the_place():
    asked, _ = play([a_list(5)], [[1, line("ADDED", an_object("a", 9)), error(429, "TooManyRequests")], [None]], seconds=10)

    assert watches(asked) == ["5", "9"]


@pytest.mark.parametrize("bad", [line("MODIFIED", an_object("a", 8))[:40], b"not json", b'{"type":1}'])
def test_a_cut_or_garbled_line_is_not_applied_and_the_watch_resumes_before_it(bad):
    asked, known = play([a_list(5)], [[1, line("ADDED", an_object("a", 7)), bad], [line("MODIFIED", an_object("a", 8)), None]], seconds=10)

    assert watches(asked) == ["5", "7"]
    assert known == {"a": "8"}


def test_a_connection_that_breaks_in_the_stream_resumes_where_it_was():
    asked, _ = play([a_list(5)], [[1, line("ADDED", an_object("a", 7)), ConnectionFailed("reset")], [None]], seconds=10)

    assert watches(asked) == ["5", "7"]
    assert len(lists(asked)) == 1


def test_a_silent_stream_is_given_up_soon_where_bookmarks_flow():
    asked, _ = play([a_list(5)], [[60, bookmark(6), 60, bookmark(7), None], [None]], seconds=300)

    (first, second) = [entry for entry in asked if entry[0] == "watch"]
    assert second[1] == "7"
    assert second[2] - first[2] == pytest.approx(120 + 150, abs=1)


def test_a_silent_stream_without_bookmarks_is_given_up_when_the_server_should_have_ended_it():
    asked, _ = play([a_list(5)], [[None], [None]], seconds=620)

    (first, second) = [entry for entry in asked if entry[0] == "watch"][:2]
    assert 315 <= second[2] - first[2] <= 615
    assert second[1] == "5"


def test_a_server_that_hangs_up_at_once_is_not_hammered():
    asked, _ = play([a_list(5)], [[]] * 1000, seconds=60)

    assert len(watches(asked)) < 80


def test_failing_lists_back_off_to_half_a_minute_and_never_stop():
    asked, known = play([ConnectionFailed("refused")] * 90 + [a_list(5, an_object("a", 1))], [[None]], seconds=3600)

    # each attempt is up to three requests: reads are retried at once
    assert 31 <= len(lists(asked)) == 91
    assert known == {"a": "1"}


def test_an_expired_continue_token_leads_to_a_list_in_one_piece():
    asked, known = play(
        [a_list(5, an_object("a", 1), token="t"), failure(410, "Expired"), a_list(9, an_object("b", 2))], [[None]], seconds=60
    )

    assert lists(asked) == [("list", "", "500", ""), ("list", "t", "500", ""), ("list", "", "", "")]
    assert known == {"b": "2"}


@pytest.mark.parametrize("tokens", ["tt", "tut", "tuvt"])
def test_a_server_that_repeats_continue_tokens_is_given_up_and_asked_again_later(tokens):
    pages = [a_list(5, an_object("a", 1), token=token) for token in tokens]
    asked, known = play([*pages, a_list(9, an_object("b", 2))], [[None]], seconds=60)

    assert lists(asked) == [("list", token, "500", "") for token in ["", *tokens[:-1], ""]]
    assert known == {"b": "2"}


def test_an_answer_that_is_not_a_list_is_an_ordinary_failure():
    page = Response(status=200, body=b"<html>Sign in to the Wi-Fi</html>")
    asked, known = play([page, a_list(5, an_object("a", 1))], [[None]], seconds=60)

    assert len(lists(asked)) == 2
    assert known == {"a": "1"}


def test_an_invalid_bookmark_only_ends_the_watch():
    asked, _ = play([a_list(5)], [[1, line("BOOKMARK", b"7")], [None]], seconds=60)

    assert watches(asked) == ["5", "5"]


def test_a_handler_that_fails_does_not_end_the_watch():
    async def fail(watcher, server):
        failures = [ValueError("a mistake")]

        def handler(old, new, initial):
            if failures:
                raise failures.pop()

        watcher._sink.subscribe(handler)

    _, known = play([a_list(5, an_object("a", 1)), a_list(6, an_object("a", 1), an_object("b", 2))], [[None]], seconds=100, then=fail)

    assert known == {"a": "1", "b": "2"}


def test_doubt_interrupts_the_watch_with_a_list_that_begins_after_it():
    async def doubt(watcher, server):
        await asyncio.sleep(5)
        assert len(lists(server.asked)) == 1
        watcher.doubt()
        assert watcher.in_doubt
        await asyncio.sleep(1)
        assert not watcher.in_doubt

    asked, known = play([a_list(5, an_object("a", 1)), a_list(8, an_object("b", 7))], [[None], [None]], seconds=10, then=doubt)

    assert [entry[0] for entry in asked] == ["list", "watch", "list", "watch"]
    assert known == {"b": "7"}


def test_a_doubt_about_an_ending_watch_is_not_an_error():
    async def doubt(watcher, server):
        await asyncio.sleep(5)
        for _ in range(3):
            watcher.doubt()
            await asyncio.sleep(0)
        await asyncio.sleep(1)
        assert not watcher.in_doubt

    after = [a_list(8, an_object("b", 7))] * 3
    _, known = play([a_list(5, an_object("a", 1)), *after], [[None]] * 4, seconds=10, then=doubt)

    assert known == {"b": "7"}


def test_doubt_during_a_list_is_settled_by_the_next_one():
    async def doubt(watcher, server):
        server.seconds_per_list = 5
        await asyncio.sleep(3)
        assert len(lists(server.asked)) == 1
        watcher.doubt()
        await asyncio.sleep(4)
        assert watcher.in_doubt
        assert len(lists(server.asked)) == 2
        await asyncio.sleep(5)
        assert not watcher.in_doubt

    asked, known = play([a_list(5, an_object("a", 1)), a_list(6, an_object("b", 6))], [[None]], seconds=10, then=doubt)

    assert [entry[0] for entry in asked] == ["list", "list", "watch"]
    assert known == {"b": "6"}
