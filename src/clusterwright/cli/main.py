"""`clusterwright COMMAND ...`: finds the command's module and runs it."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from clusterwright import __version__

# Command -> (module, what it does); listed in the order in which a newcomer meets them.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "start the management plane"),
    "create": ("create", "create a cluster on in-memory infrastructure, or print its manifests"),
    "get": ("get", "list objects of a kind, or print a cluster's kubeconfig"),
    "describe": ("describe", "show a cluster as a tree with its conditions"),
    "explain": ("explain", "say why an object is in its state, and who must act"),
    "delete": ("delete", "delete a cluster or another object and wait until it is gone"),
    "render": ("render", "print a machine's bootstrap data as it would be written"),
    "record": ("record", "write a bundle of a cluster's objects, secrets redacted"),
    "store": ("store", "check, repair, back up or restore what the plane keeps"),
    "tables": ("tables", "print the decision tables"),
    "crds": ("crds", "print the CustomResourceDefinitions"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    argv = sys.argv[1:] if arguments is None else arguments
    if not argv or argv[0] in {"-h", "--help", "help"}:
        print(_usage())
        return 0 if argv else 2
    if argv[0] in {"-V", "--version", "version"}:
        print(f"clusterwright {__version__}")
        return 0
    if argv[0] not in COMMANDS:
        print(f"clusterwright: unknown command {argv[0]!r}\n\n{_usage()}", file=sys.stderr)
        return 2
    try:
        command = import_module(f"clusterwright.cli.{COMMANDS[argv[0]][0]}")
        status: int = command.run(argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `clusterwright ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from clusterwright.cli.errors import told  # only now: usage and version are to be quick

        if (end := told(error)) is None:
            raise
        print(f"clusterwright {argv[0]}: {end[0]}", file=sys.stderr)
        return end[1]
    return status


def _usage() -> str:
    lines = ["usage: clusterwright COMMAND [options]", "", "commands:"]
    lines += [f"  {name:<10}{text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join([*lines, "", "`clusterwright COMMAND --help` tells more."])


if __name__ == "__main__":
    sys.exit(main())
