"""Bundles of authorities as people keep them: with comments, of any language."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest

from clusterwright.apiserver.serving.tls import make_authority, server_context, sign
from clusterwright.runtime.errors import ConnectionFailed
from clusterwright.runtime.http import ssl_context
from clusterwright.runtime.kubeconfig import Connection
from clusterwright.streams.tls import LONGEST_KEY, authorities, use_certificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = make_authority(NOW)
COMMENTS = ["", "# NetLock Arany (Class Gold) F\u0151tan\u00fas\u00edtv\u00e1ny\n", "# \u65e5\u672c\n", "\0"]


@pytest.mark.parametrize("comment", COMMENTS)
def test_comments_are_skipped(comment: str) -> None:
    bundle = comment.encode() + AUTHORITY.certificate + b"# caf\xe9 in Latin-1\n" + AUTHORITY.certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    context.load_verify_locations(cadata=authorities(bundle))

    assert len(context.get_ca_certs()) == 1
    assert len(server_context(sign(AUTHORITY, NOW, "s", hosts=["a"]), bundle).get_ca_certs()) == 1
    assert len(ssl_context(Connection(server="https://a", certificate_authority=bundle), None).get_ca_certs()) == 1


@pytest.mark.parametrize("bundle", [b"no certificate", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"])
def test_a_bundle_without_authority_is_refused_and_no_other_is_trusted(bundle: bytes) -> None:
    with pytest.raises(ConnectionFailed, match="certificates cannot be used"):
        ssl_context(Connection(server="https://a", certificate_authority=bundle), None)


def test_a_key_that_would_make_handshakes_slow_is_refused() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    with pytest.raises(ssl.SSLError, match="at most 8192 are allowed"):
        use_certificate(context, AUTHORITY.certificate, b"k" * (LONGEST_KEY + 1))


def test_an_endless_bundle_is_refused() -> None:
    with pytest.raises(ssl.SSLError, match="at most 1048576 are allowed"):
        authorities(AUTHORITY.certificate * 3000)
