"""The flags of `clusterwright up` and `clusterwright manager`. Imports nothing that takes time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from clusterwright.cli.defaults import KUBERNETES_VERSION, LOCAL
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.golang import times
from clusterwright.kubeadm.durations import parse_seconds


def duration(text: str) -> timedelta:
    """Return a positive duration in Go's notation, `15m`, whole seconds; raises ArgumentTypeError."""
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; write it like 90s, 15m or 1h30m") from None
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not longer than zero")
    return timedelta(seconds=seconds)


def seconds(text: str) -> float:
    """Return a wait in seconds, from a number of seconds or a duration like 90s or 1h30m; raises ArgumentTypeError."""
    with suppress(ValueError):
        number = float(text)
        if 0 <= number < float("inf"):
            return number
    nanoseconds = times.parse_duration(text)
    if nanoseconds is None or nanoseconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write it like 90s, 15m or 1h30m")
    return nanoseconds / 1e9


def port(text: str) -> int:
    """Return a port; 0 for any free port; raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535 is expected")
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
    "bootstrap-token-ttl": (duration, "how long bootstrap tokens live; default: 15m"),
    "remote-connection-grace-period": (
        duration,
        "how long after the last successful probe RemoteConnectionProbe of a Cluster stays True; default: 50s",
    ),
    "remote-conditions-grace-period": (
        duration,
        "how long conditions that come from a workload cluster stand without a connection; default: 5m",
    ),
    "additional-sync-machine-labels": (pattern, "labels that Machines pass on to their Nodes, beside the usual ones; may be repeated"),
    "additional-sync-machine-annotations": (pattern, "annotations that Machines pass on to their Nodes; may be repeated"),
    "runtime-extension-client-cert-file": (str, "certificate in PEM that is presented to runtime extensions, with the key"),
    "runtime-extension-client-key-file": (str, "its key in PEM; when the files change, the new pair is presented"),
    "runtime-extensions-read-only": (bool, "use the runtime extensions that another manager discovers, and write no ExtensionConfig"),
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
        help="default: a free port on loopback, the same as long as the data is kept",
    )
    embedded.add_argument("--data-dir", type=Path, default=LOCAL.parent, help="where everything is kept; default: %(default)s")
    embedded.add_argument("--in-memory", action="store_true", help="keep nothing")
    embedded.add_argument("--kubeconfig", type=Path, metavar="PATH", help=f"where the admin kubeconfig is written; default: {LOCAL}")
    embedded.add_argument("--audit-log", type=Path, metavar="PATH", help="gets a line for every request, as kube-apiserver writes it")
    embedded.add_argument("--no-controllers", action="store_true", help="the API server alone, with our kinds")
    embedded.add_argument(
        "--garbage-collection",
        action="store_true",
        help="with --no-controllers: delete what has lost its owners, and what is in deleted namespaces, all the same",
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
        help="of containers whose objects name none; without a tag, the machine's Kubernetes version is the tag; default: kindest/node",
    )
    parser.add_argument(
        "--load-balancer-image",
        default="",
        metavar="IMAGE",
        help="with haproxy, where clusters name none; default: kindest/haproxy",
    )
    parser.add_argument(
        "--engine-allow-host-mounts",
        action="store_true",
        help="let extraMounts name paths of the engine's host, which gives the host to everybody with the right to create machines",
    )
    parser.add_argument("--demo", action="store_true", help="bring up a cluster and show it; with --engine a real one")
    parser.add_argument("--kubernetes-version", default=KUBERNETES_VERSION, metavar="VERSION", help="of the demo; default: %(default)s")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="KUBECONFIG",
        help="no API server of our own: the controllers on this one, as `clusterwright manager --kubeconfig KUBECONFIG` runs them",
    )
    _add_shared(parser)


def add_manager(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `manager`."""
    parser.add_argument("--kubeconfig", metavar="PATH", help=f"default: $KUBECONFIG, {LOCAL}, ~/.kube/config, the cluster we run in")
    parser.add_argument("--context", default="", help="a context of the kubeconfig; default: the current one")
    parser.add_argument("--data-dir", type=Path, help="where the in-memory infrastructure keeps its clusters; default: nowhere")
    _add_shared(parser)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    _add_webhooks(parser.add_argument_group("an API server of somebody else"))
    _add_controllers(parser.add_argument_group("controllers"))
    _add_replicas(parser.add_argument_group("several replicas"))
    _add_endpoints(parser.add_argument_group("looking at the process"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML with names of flags as keys; flags that are given win")


def _add_webhooks(hooks: argparse._ArgumentGroup) -> None:
    hooks.add_argument(
        "--install-crds",
        action="store_true",
        help="create our CustomResourceDefinitions, bring them and what is stored up to date; else none is touched",
    )
    hooks.add_argument("--webhook-port", type=port, help="serve admission and conversion at this port")
    hooks.add_argument("--webhook-host", default="0.0.0.0", metavar="ADDRESS", help="where they listen; default: everywhere")  # noqa: S104
    hooks.add_argument(
        "--webhook-url", default="", metavar="https://HOST:PORT", help="how the API server reaches them; default: our Service"
    )
    hooks.add_argument(
        "--webhook-cert-dir", type=Path, metavar="PATH", help="a directory with tls.crt, tls.key and perhaps ca.crt; default: made by us"
    )


def _add_controllers(control: argparse._ArgumentGroup) -> None:
    control.add_argument(
        "--controllers",
        default="*",
        metavar="NAME,...",
        help="names or globs, those with a leading - left out, e.g. '*,-dev*'; one that is not known is answered with those that are",
    )
    control.add_argument("--no-inmemory", action="store_true", help="without the in-memory infrastructure provider")
    control.add_argument("--namespace", default="", help="watch only this namespace")
    control.add_argument("--watch-filter", default="", help="reconcile only objects with this value of the watch-filter label")
    control.add_argument("--feature-gates", default="", metavar="Name=true,...", help=f"known: {', '.join(sorted(DEFAULT_FEATURES))}")
    control.add_argument(
        "--concurrency",
        action="append",
        default=[],
        metavar="CONTROLLER=N",
        help="passes at once; may be repeated; a name that is not known is answered with those that are",
    )
    control.add_argument(
        "--resync",
        type=duration,
        metavar="DURATION",
        help="look at every object again after this time, though nothing happened; default: 10m",
    )
    control.add_argument("--qps", type=float, default=0.0, help="requests per second to the API server; 0: no limit")
    control.add_argument("--burst", type=int, default=100, help="requests at once above --qps; default: %(default)s")
    _add_controller_options(control)
    control.add_argument(
        "--skip-crd-migration-phases",
        default="",
        metavar="PHASE,...",
        help="what not to do with old objects; one that is not known is answered with those that are",
    )


def _add_replicas(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--leader-elect", action="store_true", help="run the controllers only while holding a Lease; the others wait")
    group.add_argument("--shard", action="store_true", help="share the Clusters with the other replicas, by Leases; none waits")
    group.add_argument("--lease-namespace", default="", metavar="NAMESPACE", help="of the Leases; default: the Pod's, else kube-system")
    for name, default, text in (
        ("lease-duration", "15s", "who was not heard of for so long is given up by the others"),
        ("renew-deadline", "10s", "who could not renew for so long gives up by itself, and writes nothing more"),
        ("retry-period", "2s", "between two attempts"),
    ):
        group.add_argument(
            f"--leader-elect-{name}", type=duration, default=duration(default), metavar="DURATION", help=f"{text}; default: {default}"
        )


def _add_endpoints(group: argparse._ArgumentGroup) -> None:
    where = {"type": address, "default": None, "metavar": "HOST:PORT"}
    group.add_argument(
        "--health-port",
        type=port,
        help="serve health and readiness on loopback at this port; metrics, traces and diagnosis, too, to whom the API server allows it",
    )
    group.add_argument("--health-probe-bind-address", **where, help="serve health and readiness here; 0: nowhere (default)")  # type: ignore[arg-type]
    group.add_argument(
        "--metrics-bind-address",
        **where,  # type: ignore[arg-type]
        help="serve metrics, traces and diagnosis here, to whom the API server allows it; 0: nowhere (default)",
    )
    group.add_argument(
        "--metrics-secure",
        choices=("true", "false"),
        default="true",
        help="callers show a token, at --metrics-bind-address over https; default: %(default)s",
    )
    group.add_argument("--metrics-cert-dir", type=Path, metavar="PATH", help="with tls.crt and tls.key; default: a certificate made by us")
    group.add_argument("--tracing", action="store_true", help="a span for every pass and request, for OpenTelemetry")
    group.add_argument(
        "--log-level",
        default="warning",
        choices=("debug", "info", "warning", "error"),
        help="default: %(default)s; changed while running by PUT /debug/flags/log-level",
    )
    group.add_argument("--log-format", default="text", choices=("text", "json"))
