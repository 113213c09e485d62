"""The flags of `clusterwright up`. Imports nothing that takes time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from clusterwright.cli.defaults import LOCAL
from clusterwright.controllers.kit.features import DEFAULT_FEATURES
from clusterwright.kubeadm.durations import parse_seconds


def duration(text: str) -> timedelta:
    """A positive duration in Go's notation, `15m`, whole seconds; raises ArgumentTypeError."""
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; write it like 90s, 15m or 1h30m") from None
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not longer than zero")
    return timedelta(seconds=seconds)


def port(text: str) -> int:
    """A port, 0 for any that is free; raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to 65535 is expected")
    return int(text)


def pattern(text: str) -> str:
    """A regular expression; raises ArgumentTypeError."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
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
    """The flags of `wiring.Dependencies.options`."""
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
    """All of them."""
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
    embedded.add_argument("--audit-log", type=Path, metavar="PATH")
    embedded.add_argument("--no-controllers", action="store_true", help="the API server alone, with our kinds")
    parser.add_argument("--demo", action="store_true", help="bring up a cluster and show it")
    parser.add_argument(
        "--against", type=Path, metavar="KUBECONFIG", help="run the controllers against this API server instead of an embedded one"
    )
    hooks = parser.add_argument_group("webhooks, with --against")
    hooks.add_argument("--webhook-port", type=port, help="serve admission and conversion at this port, and make the API server ask there")
    hooks.add_argument("--webhook-host", default="0.0.0.0", metavar="ADDRESS", help="where they listen; default: everywhere")  # noqa: S104
    hooks.add_argument(
        "--webhook-url", default="", metavar="https://HOST:PORT", help="how the API server reaches them; default: our Service"
    )
    hooks.add_argument(
        "--webhook-cert-dir", type=Path, metavar="PATH", help="a directory with tls.crt, tls.key and perhaps ca.crt; default: made by us"
    )
    control = parser.add_argument_group("controllers")
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
    control.add_argument("--burst", type=int, default=100)
    control.add_argument("--health-port", type=port, help="serve health, readiness, metrics and traces on loopback at this port")
    control.add_argument("--tracing", action="store_true", help="a span for every pass and request, for OpenTelemetry")
    _add_controller_options(control)
    control.add_argument("--leader-elect", action="store_true", help="run the controllers only while holding a Lease")
    control.add_argument(
        "--skip-crd-migration-phases",
        default="",
        metavar="PHASE,...",
        help="what not to do with old objects; one that is not known is answered with those that are",
    )
    control.add_argument("--no-inmemory", action="store_true", help="without the in-memory infrastructure provider")
    parser.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))
    parser.add_argument("--log-format", default="text", choices=("text", "json"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML with names of flags as keys; flags that are given win")
