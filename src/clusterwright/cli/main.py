"""`clusterwright COMMAND ...`: find the command's module and run it."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from clusterwright.cli import grammar

_ALIASES = {"-V": "version", "--version": "version"}
_INSTEAD = {
    "apply": "kubectl apply -f FILE",
    "edit": "kubectl edit KIND NAME",
    "init": "clusterwright up",
    "logs": "clusterwright timeline NAME, or clusterwright explain NAME --evidence",
    "pause": """kubectl patch cluster NAME --type merge -p '{"spec":{"paused":true}}'""",
    "resume": """kubectl patch cluster NAME --type merge -p '{"spec":{"paused":false}}'""",
    "rollout": "clusterctl alpha rollout, or clusterwright describe NAME --watch",
    "scale": "kubectl scale machinedeployment NAME --replicas N",
    "status": "clusterwright get clusters, or clusterwright explain NAME",
    "top": "clusterwright describe NAME --watch",
    "upgrade": """kubectl patch cluster NAME --type merge -p '{"spec":{"topology":{"version":"VERSION"}}}' (docs/upgrade.md)""",
}
"""Commands of similar programs that do not exist here, with what does the same."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return the exit status."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    if argv and argv[0] == "help":
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] in {"-h", "--help"}:
        print(_usage())
        return 0 if argv else 2
    name = _ALIASES.get(argv[0], argv[0])
    if name not in grammar.COMMANDS:
        from clusterwright.cli.similar import similar  # only now: help is to be quick

        close = similar(name, (word for word, command in grammar.COMMANDS.items() if command.summary))
        hint = f"use {_INSTEAD[name]}" if name in _INSTEAD else close
        print(f"clusterwright: unknown command {name!r}; {hint or 'see --help'}", file=sys.stderr)
        return 2
    try:
        parsed = grammar.parse(name, argv[1:])
        command = import_module(f"clusterwright.cli.{grammar.COMMANDS[name].module}")
        status: int = command.run(parsed)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `clusterwright ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from clusterwright.cli.errors import told  # only now: help is to be quick

        if (end := told(error)) is None:
            raise
        print(f"clusterwright {name}: {end[0]}", file=sys.stderr)
        return end[1]
    return status


def _usage() -> str:
    lines = ["usage: clusterwright COMMAND [options]", "", "commands:"]
    width = max(map(len, grammar.COMMANDS)) + 2
    lines += [f"  {name:<{width}}{command.summary}" for name, command in grammar.COMMANDS.items() if command.summary]
    return "\n".join([*lines, "", "`clusterwright COMMAND --help` shows more."])


if __name__ == "__main__":
    sys.exit(main())
