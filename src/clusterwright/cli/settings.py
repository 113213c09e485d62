"""Settings of `up` from a file: YAML whose keys are the names of the flags. A flag that is given wins over the file.

feature-gates: {ClusterTopology: true}
concurrency: {machine: 20}
bootstrap-token-ttl: 30m
additional-sync-machine-labels: ["team.example.com/.*"]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from clusterwright.api import yamlreader
from clusterwright.kubeadm.durations import parse_seconds


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """The flags, with what the file of `--config` says where a flag is not given; ends the program where either is wrong."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML with names of flags as keys; flags that are given win")
    arguments = parser.parse_args(list(argv))
    if arguments.config is None:
        return arguments
    actions = {flag.removeprefix("--"): action for action in parser._actions for flag in action.option_strings}
    given = {action.dest for action in parser._actions if any(_is_given(flag, argv) for flag in action.option_strings)}
    for name, value in _load(parser, arguments.config).items():
        action = actions.get(name)
        if action is None or name in {"config", "help", "h"}:
            known = ", ".join(sorted(a for a in actions if len(a) > 1 and a not in {"config", "help"}))
            parser.error(f"{arguments.config}: {name!r} is not known; known: {known}")
        if action.dest not in given:
            setattr(arguments, action.dest, _value(parser, f"{arguments.config}: {name}", action, value))
    return arguments


def _is_given(flag: str, argv: Sequence[str]) -> bool:
    """Argparse takes beginnings of long flags, too."""
    heads = [item.partition("=")[0] for item in argv]
    return flag in heads or any(head.startswith("--") and len(head) > 2 and flag.startswith(head) for head in heads)


def _load(parser: argparse.ArgumentParser, path: Path) -> Mapping[str, Any]:
    try:
        document = yamlreader.load(path.read_bytes())
    except OSError as error:
        parser.error(f"--config: {path}: {error.strerror}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        parser.error(f"--config: {path}: {error}")
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        parser.error(f"--config: {path}: names of flags and their values are expected")
    return document


def _value(parser: argparse.ArgumentParser, where: str, action: argparse.Action, value: Any) -> Any:
    """A value of the file as the flag would have made it."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            parser.error(f"{where}: true or false is expected, not {value!r}")
        return value
    if isinstance(value, dict):
        pairs = [f"{key}={_text(item)}" for key, item in value.items()]
        value = pairs if isinstance(action.default, list) else ",".join(pairs)
    if isinstance(action.default, list):
        return [_converted(parser, where, action, item) for item in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        parser.error(f"{where}: one value is expected, not a list")
    return _converted(parser, where, action, value)


def _converted(parser: argparse.ArgumentParser, where: str, action: argparse.Action, value: Any) -> Any:
    text = _text(value)
    try:
        made = action.type(text) if callable(action.type) else text
    except (ValueError, argparse.ArgumentTypeError) as error:
        parser.error(f"{where}: {error}")
    if action.choices is not None and made not in action.choices:
        parser.error(f"{where}: {text!r} is none of {', '.join(map(str, action.choices))}")
    return made


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------------------------------------- options of controllers


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


_OPTIONS: Mapping[str, tuple[Any, str]] = {
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
}


def add_controller_options(group: argparse._ArgumentGroup) -> None:
    """The flags of `wiring.Dependencies.options`."""
    for name, (kind, text) in _OPTIONS.items():
        if kind is duration:
            group.add_argument(f"--{name}", type=duration, metavar="DURATION", help=text)
        else:
            group.add_argument(f"--{name}", type=pattern, action="append", default=[], metavar="REGEX", help=text)


def controller_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was set of them."""
    values = {name: getattr(arguments, name.replace("-", "_")) for name in _OPTIONS}
    return {name: value for name, value in values.items() if value}
