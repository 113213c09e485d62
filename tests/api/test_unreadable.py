"""What others send and nobody can read is their fault, told as such, wherever it comes in."""

from __future__ import annotations

import msgspec
import pytest

from clusterwright.api.codec import DecodeError, decode
from clusterwright.api.core.cluster import Cluster
from clusterwright.api.meta import GroupVersionKind
from clusterwright.runtime.errors import ConnectionFailed, ServerError, from_response
from clusterwright.runtime.models import decode as decode_kind

DEEP = b'{"a":' * 100_000


@pytest.mark.parametrize(
    "raw", [b"<html>", b'{"spec": {"x": "\xff"}}', b'{"spec": null, "x": "\xff"}', DEEP, b'{"spec": null, "x": ' + DEEP]
)
def test_an_abstract_kind_has_no_objects(raw: bytes) -> None:
    with pytest.raises(ConnectionFailed):
        decode_kind(GroupVersionKind("", "v1", "ConfigMap"), raw)
    with pytest.raises(DecodeError):
        decode(Cluster, b'{"metadata": {"name": 5, "x": ' + raw)


@pytest.mark.parametrize("body", [b'{"kind": "Status", "message": "\xff"}', DEEP])
def test_an_error_without_a_status_quotes_what_came(body: bytes) -> None:
    error = from_response(500, body)

    assert isinstance(error, ServerError)
    assert error.message.startswith(body[:10].decode())
    assert msgspec.json.encode(error.status)
