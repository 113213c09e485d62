"""The endpoint of a process's metrics: an address, and a certificate unless the metrics are public."""

from __future__ import annotations

import argparse
import socket
import ssl

from clusterwright.apiserver.serving.tls import make_authority, server_context, sign
from clusterwright.runtime.clock import Clock
from clusterwright.runtime.manager import MetricsAddress


def metrics_address(arguments: argparse.Namespace, clock: Clock) -> MetricsAddress | None:
    """Return the endpoint that the flags select; end the program if the certificate is unusable."""
    if arguments.metrics_bind_address is None:
        return None
    host, port = arguments.metrics_bind_address
    if arguments.metrics_secure == "false":
        return MetricsAddress(host=host, port=port, is_guarded=False)
    return MetricsAddress(host=host, port=port, tls=_context(arguments, clock))


def _context(arguments: argparse.Namespace, clock: Clock) -> ssl.SSLContext:
    folder = arguments.metrics_cert_dir
    if folder is None:
        # nobody can know this authority: as elsewhere, callers that want to verify the server mount a certificate
        authority = make_authority(clock.now(), "clusterwright-metrics")
        names = {"localhost", "127.0.0.1", socket.gethostname()}
        return server_context(sign(authority, clock.now(), "clusterwright-metrics", hosts=sorted(names)), authority.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    except (OSError, ssl.SSLError) as error:
        arguments.parser.error(f"--metrics-cert-dir {folder}: {error.strerror or error}")
    return context
