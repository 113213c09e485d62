"""Connect commands to the management cluster: as kubectl does, or to the plane that `clusterwright up` started in this folder."""

from __future__ import annotations

import argparse
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clusterwright.api.kubeconfig import InvalidKubeconfig
from clusterwright.cli.defaults import LOCAL
from clusterwright.cli.hints import with_hint
from clusterwright.cli.program import as_called
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ConnectionFailed, NotFound
from clusterwright.runtime.http import MAX_FOREIGN_BODY, HttpTransport
from clusterwright.runtime.kubeconfig import Connection, Kubeconfig, default_paths, from_secret, in_cluster
from clusterwright.runtime.rest import RestClient


def resolve(arguments: argparse.Namespace) -> Connection:
    """Return the connection that flags and environment select; raises InvalidKubeconfig."""
    if arguments.kubeconfig:
        return Kubeconfig.load([Path(arguments.kubeconfig)]).resolve(arguments.context)
    if not os.environ.get("KUBECONFIG") and LOCAL.exists():
        return Kubeconfig.load([LOCAL]).resolve(arguments.context)
    paths = default_paths(os.environ)
    if any(path.exists() for path in paths):
        return Kubeconfig.load(paths).resolve(arguments.context)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster(os.environ)
    places = (
        [f"$KUBECONFIG ({os.environ['KUBECONFIG']})"]
        if os.environ.get("KUBECONFIG")
        else ["$KUBECONFIG (not set)", str(LOCAL), *map(str, paths)]
    )
    raise InvalidKubeconfig(
        f"no kubeconfig found; looked at {', '.join(places)}, and this is not a Pod. Is `{as_called()} up` running in another folder?"
    )


def kubeconfig_kubectl_lacks(arguments: argparse.Namespace) -> str:
    """Return the kubeconfig that `resolve` reads and kubectl would not find by itself; empty: kubectl finds the same."""
    if arguments.kubeconfig:
        return str(arguments.kubeconfig)
    return str(LOCAL) if not os.environ.get("KUBECONFIG") and LOCAL.exists() else ""


async def reach(kubeconfig: bytes) -> HttpTransport:
    """Return a network transport to the cluster that the kubeconfig in a Secret describes; raises InvalidKubeconfig."""
    return HttpTransport(from_secret(kubeconfig), SystemClock(), os.environ, max_body=MAX_FOREIGN_BODY)


@asynccontextmanager
async def connected(connection: Connection) -> AsyncIterator[RestClient]:
    """Yield a client of the cluster and close it at the end. Errors get a hint about the likely mistake."""
    transport = HttpTransport(connection, SystemClock(), os.environ)
    client = RestClient(transport, clock=SystemClock(), user_agent="clusterwright-cli")
    try:
        yield client
    except NotFound as error:
        raise await with_hint(client, error) from error
    except ConnectionFailed as error:
        cause = error.__cause__
        if not isinstance(cause, OSError | TimeoutError) or isinstance(cause, ssl.SSLError):
            raise
        number = getattr(cause, "errno", None)
        why = os.strerror(number).lower() if number and number > 0 else "host not found" if number else "no answer in time"
        raise ConnectionFailed(f"no answer from {connection.server} ({why}): is `{as_called()} up` running?") from error
    finally:
        await transport.close()
