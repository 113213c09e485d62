"""The flags of `clusterwright up` and `clusterwright manager`. Imports nothing that takes time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from clusterwright.cli.defaults import LOCAL
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.golang import times
from clusterwright.kubeadm.durations import parse_seconds
from clusterwright.simulation.defaults import KUBERNETES_VERSION


def duration(text: str) -> timedelta:
    """Return a positive duration in Go's notation, `15m`, whole seconds; raises ArgumentTypeError."""
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; write it as 90s, 15m or 1h30m") from None
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be greater than zero")
    return timedelta(seconds=seconds)


def seconds(text: str) -> float:
    """Return a wait in seconds, from a number of seconds or a duration like 90s or 1h30m; raises ArgumentTypeError."""
    with suppress(ValueError):
        number = float(text)
        if 0 <= number < float("inf"):
            return number
    nanoseconds = times.parse_duration(text)
    if nanoseconds is None or nanoseconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write it as 90s, 15m or 1h30m")
    return nanoseconds / 1e9


def port(text: str) -> int:
    """Return a port; 0 for any free port; raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number: a number from 0 to 65535 is expected")
    return int(text)


def address(text: str) -> tuple[str, int] | None:
    """Return an address: `HOST:PORT`, `:PORT` for every address, None for `0`; raises ArgumentTypeError."""
    if text == "0":
        return None
    host, colon, number = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        raise argparse.ArgumentTypeError(f"{text!r} is not an address: HOST:PORT, :PORT, or 0 for none is expected")
    return host.strip("[]"), port(number)


def pattern(text: str) -> str:
    """Return a regular expression; raises ArgumentTypeError."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


CONTROLLER_OPTIONS: Mapping[str, tuple[Any, str]] = {
    "bootstrap-token-ttl": (duration, "lifetime of bootstrap tokens; default: 15m"),
    "remote-connection-grace-period": (
        duration,
        "how long RemoteConnectionProbe of a Cluster stays True after the last successful probe; default: 50s",
    ),
    "remote-conditions-grace-period": (
        duration,
        "how long conditions from a workload cluster are kept without a connection; default: 5m",
    ),
    "additional-sync-machine-labels": (
        pattern,
        "a regular expression: further labels to copy from Machines to their Nodes; may be repeated",
    ),
    "additional-sync-machine-annotations": (
        pattern,
        "a regular expression: annotations to copy from Machines to their Nodes; may be repeated",
    ),
    "runtime-extension-client-cert-file": (str, "client certificate for runtime extensions, a PEM file; needs the key"),
    "runtime-extension-client-key-file": (str, "the certificate's key, a PEM file; changed files are loaded again"),
    "runtime-extensions-read-only": (bool, "use the runtime extensions that another manager discovered, and write no ExtensionConfig"),
}


def _add_controller_options(group: argparse._ArgumentGroup) -> None:
    """Add the flags of `wiring.Dependencies.options`."""
    for name, (kind, text) in CONTROLLER_OPTIONS.items():
        if kind is duration:
            group.add_argument(f"--{name}", type=duration, metavar="DURATION", help=text)
        elif kind is str:
            group.add_argument(f"--{name}", default="", metavar="PATH", help=text)
        elif kind is bool:
            group.add_argument(f"--{name}", action="store_true", help=text)
        else:
            group.add_argument(f"--{name}", type=pattern, action="append", default=[], metavar="REGEX", help=text)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `up`."""
    embedded = parser.add_argument_group("embedded API server")
    embedded.add_argument(
        "--listen",
        default="127.0.0.1:0",
        metavar="HOST:PORT",
        help="default: a free port on loopback, the same as long as the data directory exists",
    )
    embedded.add_argument("--data-dir", type=Path, default=LOCAL.parent, help="the data directory; default: %(default)s")
    embedded.add_argument("--in-memory", action="store_true", help="keep all data in memory only")
    embedded.add_argument("--kubeconfig", type=Path, metavar="PATH", help=f"the file for the admin kubeconfig; default: {LOCAL}")
    embedded.add_argument("--audit-log", type=Path, metavar="PATH", help="the audit log: one line per request, in kube-apiserver's format")
    embedded.add_argument("--no-controllers", action="store_true", help="run only the API server, with our kinds")
    embedded.add_argument(
        "--garbage-collection",
        action="store_true",
        help="with --no-controllers: still collect garbage and empty deleted namespaces",
    )
    parser.add_argument(
        "--engine",
        default="",
        metavar="NAME",
        help="run machines of the backend docker, and the Docker kinds, as containers of this engine instead of simulating them: "
        "auto, docker, podman, or unix:///PATH of its socket",
    )
    parser.add_argument(
        "--node-image",
        default="",
        metavar="IMAGE",
        help="node image of containers without one; without a tag, the machine's Kubernetes version is the tag; default: kindest/node",
    )
    parser.add_argument(
        "--load-balancer-image",
        default="",
        metavar="IMAGE",
        help="image with haproxy for clusters without one; default: kindest/haproxy",
    )
    parser.add_argument(
        "--engine-allow-host-mounts",
        action="store_true",
        help="let extraMounts use paths of the engine's host, which gives access to the host to everybody who may create machines",
    )
    parser.add_argument(
        "--demo", action="store_true", help="create a cluster and show how it comes up; with --engine, its machines are containers"
    )
    parser.add_argument(
        "--kubernetes-version", default=KUBERNETES_VERSION, metavar="VERSION", help="Kubernetes version of the demo; default: %(default)s"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="KUBECONFIG",
        help="run only the controllers, against this API server, as `clusterwright manager --kubeconfig KUBECONFIG` does",
    )
    _add_shared(parser)


def add_manager(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `manager`."""
    parser.add_argument(
        "--kubeconfig", metavar="PATH", help=f"default: $KUBECONFIG, {LOCAL}, ~/.kube/config, the cluster that this process runs in"
    )
    parser.add_argument("--context", default="", help="a context of the kubeconfig; default: the current one")
    parser.add_argument("--data-dir", type=Path, help="the data directory of the in-memory infrastructure; default: in memory only")
    _add_shared(parser)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    _add_webhooks(parser.add_argument_group("another API server"))
    _add_controllers(parser.add_argument_group("controllers"))
    _add_replicas(parser.add_argument_group("several replicas"))
    _add_endpoints(parser.add_argument_group("diagnosis"))
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a YAML file with flag names as keys; flags on the command line override it"
    )


def _add_webhooks(hooks: argparse._ArgumentGroup) -> None:
    hooks.add_argument(
        "--install-crds",
        action="store_true",
        help="create and update our CustomResourceDefinitions and migrate stored objects; default: change none",
    )
    hooks.add_argument("--webhook-port", type=port, help="serve admission and conversion webhooks on this port")
    hooks.add_argument("--webhook-host", default="0.0.0.0", metavar="ADDRESS", help="the address of the webhooks; default: all addresses")  # noqa: S104
    hooks.add_argument(
        "--webhook-url", default="", metavar="https://HOST:PORT", help="the URL of the webhooks for the API server; default: our Service"
    )
    hooks.add_argument(
        "--webhook-cert-dir",
        type=Path,
        metavar="PATH",
        help="a directory with tls.crt, tls.key and optionally ca.crt; default: our own certificate",
    )


def _add_controllers(control: argparse._ArgumentGroup) -> None:
    control.add_argument(
        "--controllers",
        default="*",
        metavar="NAME,...",
        help="names or globs; a leading - excludes, e.g. '*,-dev*'; an unknown name lists the valid ones",
    )
    control.add_argument("--no-inmemory", action="store_true", help="run without the in-memory infrastructure provider")
    control.add_argument("--namespace", default="", help="watch only this namespace")
    control.add_argument("--watch-filter", default="", help="reconcile only objects with this value of the watch-filter label")
    control.add_argument("--feature-gates", default="", metavar="Name=true,...", help=f"known: {', '.join(sorted(DEFAULT_FEATURES))}")
    control.add_argument(
        "--concurrency",
        action="append",
        default=[],
        metavar="CONTROLLER=N",
        help="number of concurrent passes; may be repeated; an unknown name lists the valid ones",
    )
    control.add_argument(
        "--resync",
        type=duration,
        metavar="DURATION",
        help="full resync interval; default: 10m",
    )
    control.add_argument("--qps", type=float, default=0.0, help="requests per second to the API server; 0: no limit")
    control.add_argument("--burst", type=int, default=100, help="burst of requests above --qps; default: %(default)s")
    _add_controller_options(control)
    control.add_argument(
        "--skip-crd-migration-phases",
        default="",
        metavar="PHASE,...",
        help="phases of the CRD migration to skip; an unknown name lists the valid ones",
    )


def _add_replicas(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--leader-elect", action="store_true", help="run the controllers only while holding a Lease; other replicas wait")
    group.add_argument("--shard", action="store_true", help="share the Clusters with the other replicas, by Leases; no replica waits")
    group.add_argument(
        "--lease-namespace", default="", metavar="NAMESPACE", help="the namespace of the Leases; default: the Pod's, else kube-system"
    )
    for name, default, text in (
        ("lease-duration", "15s", "time after which other replicas may take over an unrenewed Lease"),
        ("renew-deadline", "10s", "time after which a holder that cannot renew its Lease stops writing"),
        ("retry-period", "2s", "time between two attempts"),
    ):
        group.add_argument(
            f"--leader-elect-{name}", type=duration, default=duration(default), metavar="DURATION", help=f"{text}; default: {default}"
        )


def _add_endpoints(group: argparse._ArgumentGroup) -> None:
    where = {"type": address, "default": None, "metavar": "HOST:PORT"}
    group.add_argument(
        "--health-port",
        type=port,
        help="serve health and readiness on this loopback port; metrics, traces and diagnosis need authorisation by the API server",
    )
    group.add_argument("--health-probe-bind-address", **where, help="serve health and readiness on this address; 0: nowhere (default)")  # type: ignore[arg-type]
    group.add_argument(
        "--metrics-bind-address",
        **where,  # type: ignore[arg-type]
        help="serve metrics, traces and diagnosis on this address, for callers that the API server authorises; 0: nowhere (default)",
    )
    group.add_argument(
        "--metrics-secure",
        choices=("true", "false"),
        default="true",
        help="require a token from callers, and https at --metrics-bind-address; default: %(default)s",
    )
    group.add_argument(
        "--metrics-cert-dir", type=Path, metavar="PATH", help="a directory with tls.crt and tls.key; default: our own certificate"
    )
    group.add_argument("--tracing", action="store_true", help="record a span for every pass and request with OpenTelemetry")
    group.add_argument(
        "--log-level",
        default="warning",
        choices=("debug", "info", "warning", "error"),
        help="default: %(default)s; PUT /debug/flags/log-level changes it at run time",
    )
    group.add_argument("--log-format", default="text", choices=("text", "json"))
