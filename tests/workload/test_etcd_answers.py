"""Answers of an etcd that is newer or broken: unknown fields are skipped, unreadable answers are errors."""

from __future__ import annotations

import pytest

from clusterwright.streams import etcdrpc, protobuf
from clusterwright.workload.access import EtcdError
from clusterwright.workload.etcd import MemberClient
from support.said import Said


class Answering:
    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def unary(self, path: str, message: bytes, *, seconds: float) -> bytes:
        return self._answer


def client(answer: bytes) -> MemberClient:
    made = MemberClient(Said(b""), "etcd-a")  # type: ignore[arg-type]
    made._channel = Answering(answer)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    "answer", [b"<html>", b"\xff" * 20, protobuf.tagged(2, b"\xff\xff"), protobuf.tagged(2, protobuf.tagged(2, b"\xff"))]
)
async def test_an_unreadable_answer_is_an_error(answer: bytes) -> None:
    with pytest.raises(EtcdError, match="unreadable answer"):
        await client(answer).members()


async def test_unknown_fields_of_newer_versions_are_skipped() -> None:
    answer = etcdrpc.encode("MembersResponse", {"members": [{"ID": "12345678901234567890", "name": "a"}]})

    (member,) = await client(answer + protobuf.tagged(99, b"quorum")).members()

    assert (member.id, member.name, member.is_learner) == ("12345678901234567890", "a", False)
