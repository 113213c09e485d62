"""What an etcd that is not ours answers: newer fields are passed over, and what is no answer is told as such."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterwright.streams.etcdrpc import METHODS, read_json
from clusterwright.workload.access import EtcdError
from clusterwright.workload.etcd import _Gateway
from support.said import Said


def said(body: bytes) -> Said:
    return Said(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("Status", {"leader": {"id": 5}}),
        ("Status", {"errors": "broken"}),
        ("Status", {"errors": [5]}),
        ("MemberList", {"members": 5}),
        ("MemberList", {"members": [7]}),
        ("MemberList", {"members": [{"ID": "x"}]}),
        ("MemberList", {"members": [{"ID": "9" * 4000 + "9" * 1000}]}),
        ("MemberList", {"members": [{"name": ["a"]}]}),
        ("MemberList", {"members": [{"peerURLs": "http://a"}]}),
        ("Alarm", {"alarms": ["NOSPACE"]}),
        ("Alarm", {"header": []}),
    ],
)
async def test_what_is_no_answer(method: str, answer: Any) -> None:
    with pytest.raises(EtcdError, match="unreadable answer"):
        await _Gateway(said(json.dumps(answer).encode()), "etcd-a").call(METHODS[method], {})


@pytest.mark.parametrize("raw", [b"[]", b"<html>", b'{"leader": "\xff"}', b'{"a":' * 100_000])
async def test_what_is_no_object(raw: bytes) -> None:
    with pytest.raises(EtcdError, match="unreadable answer"):
        await _Gateway(said(raw), "etcd-a").call(METHODS["Status"], {})


def test_answers_of_newer_versions() -> None:
    member = {"ID": "12345678901234567890", "name": "a", "peerURLs": ["https://a:2380"], "isLearner": False, "shape": {"round": True}}

    assert read_json("MembersResponse", {"header": {"cluster_id": "1", "epoch": 3}, "members": [member], "quorum": 2}) == {
        "header": {"cluster_id": "1"},
        "members": [{"ID": "12345678901234567890", "name": "a", "peerURLs": ["https://a:2380"]}],
    }
    assert read_json("StatusResponse", {"leader": 7, "errors": None, "version": "3.6.0", "dbSizeQuota": "1"}) == {
        "leader": "7",
        "version": "3.6.0",
    }
    assert read_json("AlarmResponse", {"alarms": [{"memberID": "5", "alarm": "CORRUPT"}, {"memberID": "6"}]}) == {
        "alarms": [{"memberID": "5", "alarm": "CORRUPT"}, {"memberID": "6"}]
    }
