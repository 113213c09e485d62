"""Settings of `up` from a file: YAML whose keys are the names of the flags. A flag on the command line overrides the file.

feature-gates: {ClusterTopology: true}
concurrency: {machine: 20}
bootstrap-token-ttl: 30m
additional-sync-machine-labels: ["team.example.com/.*"]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from clusterwright.api import yamlreader
from clusterwright.cli import upflags


def read(arguments: argparse.Namespace) -> None:
    """Fill in the values of the `--config` file for flags that are not given; end the program if the file is invalid."""
    parser: argparse.ArgumentParser = arguments.parser
    if arguments.config is None:
        return
    actions = {flag.removeprefix("--"): action for action in parser._actions for flag in action.option_strings}
    given = {action.dest for action in parser._actions if any(_is_given(flag, arguments.argv) for flag in action.option_strings)}
    for name, value in _load(parser, arguments.config).items():
        action = actions.get(name)
        if action is None or name in {"config", "help", "h"}:
            known = ", ".join(sorted(a for a in actions if len(a) > 1 and a not in {"config", "help"}))
            parser.error(f"{arguments.config}: {name!r} is unknown; known: {known}")
        if action.dest not in given:
            setattr(arguments, action.dest, _value(parser, f"{arguments.config}: {name}", action, value))


def _is_given(flag: str, argv: Sequence[str]) -> bool:
    """Return whether a flag is given; argparse also accepts prefixes of long flags."""
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
        parser.error(f"--config: {path}: a mapping of flag names to values is expected")
    return document


def _value(parser: argparse.ArgumentParser, where: str, action: argparse.Action, value: Any) -> Any:
    """Return a value of the file, parsed as the flag would be."""
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
        parser.error(f"{where}: {text!r} is not one of {', '.join(map(str, action.choices))}")
    return made


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def controller_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the controllers' options that are set."""
    values = {name: getattr(arguments, name.replace("-", "_")) for name in upflags.CONTROLLER_OPTIONS}
    return {name: value for name, value in values.items() if value}
