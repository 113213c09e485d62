"""The cluster calls of etcd's API v3: methods and their messages.

Messages are JSON objects here and protobuf on the wire. Field numbers and names are etcd's (etcdserverpb).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from clusterwright.streams import protobuf

MESSAGES: Final[protobuf.Table] = {
    "ResponseHeader": {"cluster_id": (1, "uint64"), "member_id": (2, "uint64"), "revision": (3, "int64"), "raft_term": (4, "uint64")},
    "Member": {
        "ID": (1, "uint64"), "name": (2, "string"), "peerURLs": (3, "[]string"), "clientURLs": (4, "[]string"), "isLearner": (5, "bool"),
    },
    "MemberAddRequest": {"peerURLs": (1, "[]string"), "isLearner": (2, "bool")},
    "MemberAddResponse": {"header": (1, "ResponseHeader"), "member": (2, "Member"), "members": (3, "[]Member")},
    "MemberRequest": {"ID": (1, "uint64")},
    "MemberListRequest": {"linearizable": (1, "bool")},
    "MembersResponse": {"header": (1, "ResponseHeader"), "members": (2, "[]Member")},
    "AlarmRequest": {"action": (1, "GET ACTIVATE DEACTIVATE"), "memberID": (2, "uint64"), "alarm": (3, "NONE NOSPACE CORRUPT")},
    "AlarmMember": {"memberID": (1, "uint64"), "alarm": (2, "NONE NOSPACE CORRUPT")},
    "AlarmResponse": {"header": (1, "ResponseHeader"), "alarms": (2, "[]AlarmMember")},
    "MoveLeaderRequest": {"targetID": (1, "uint64")},
    "Empty": {},
    "HeaderResponse": {"header": (1, "ResponseHeader")},
    "StatusResponse": {
        "header": (1, "ResponseHeader"), "version": (2, "string"), "dbSize": (3, "int64"), "leader": (4, "uint64"),
        "raftIndex": (5, "uint64"), "raftTerm": (6, "uint64"), "raftAppliedIndex": (7, "uint64"), "errors": (8, "[]string"),
        "dbSizeInUse": (9, "int64"), "isLearner": (10, "bool"),
    },
    "RangeRequest": {"key": (1, "bytes"), "range_end": (2, "bytes"), "limit": (3, "int64"), "revision": (4, "int64")},
    "RangeResponse": {"header": (1, "ResponseHeader"), "count": (4, "int64")},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its gRPC path, and the names of its messages."""

    path: str
    request: str
    response: str


def _methods(*rows: tuple[str, str, str]) -> dict[str, Method]:
    return {path.rpartition("/")[2]: Method(f"/etcdserverpb.{path}", request, response) for path, request, response in rows}


METHODS: Final = _methods(
    ("Cluster/MemberAdd", "MemberAddRequest", "MemberAddResponse"),
    ("Cluster/MemberList", "MemberListRequest", "MembersResponse"),
    ("Cluster/MemberPromote", "MemberRequest", "MembersResponse"),
    ("Cluster/MemberRemove", "MemberRequest", "MembersResponse"),
    ("KV/Range", "RangeRequest", "RangeResponse"),
    ("Maintenance/Alarm", "AlarmRequest", "AlarmResponse"),
    ("Maintenance/Defragment", "Empty", "HeaderResponse"),
    ("Maintenance/MoveLeader", "MoveLeaderRequest", "HeaderResponse"),
    ("Maintenance/Status", "Empty", "StatusResponse"),
)
"""The methods by name."""


def encode(message: str, value: dict[str, Any]) -> bytes:
    """Encode a message as protobuf; raises protobuf.Malformed."""
    return protobuf.encode(MESSAGES, message, value)


def decode(message: str, data: bytes) -> dict[str, Any]:
    """Decode a message from protobuf; 64-bit numbers become text. Raises protobuf.Malformed."""
    return protobuf.decode(MESSAGES, message, data)
