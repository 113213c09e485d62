"""The flags of `clusterwright provider`. They are added without importing the code that runs the command."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from clusterwright.cli.defaults import LOCAL
from clusterwright.cli.flags import add_connection, add_timeout


def provider_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright provider`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = ArgumentParser(add_help=False)
    shared.add_argument("--data-dir", type=Path, default=LOCAL.parent, help="the data directory of the plane; default: %(default)s")
    connected = ArgumentParser(add_help=False, parents=[shared])
    add_connection(connected)
    new = commands.add_parser("new", help="write the skeleton of an infrastructure provider in Python, which keeps the contract")
    new.add_argument("name", help="the name of the provider, for example acme")
    new.add_argument("--folder", type=Path, help="the new folder; default: the name")
    _add_add(
        commands.add_parser("add", parents=[connected], help="install a provider from its release, and run its program next to the plane")
    )
    commands.add_parser("list", parents=[connected], help="list the providers that the plane runs, with their state")
    remove = commands.add_parser("remove", parents=[connected], help="end a provider's program and remove what was installed with it")
    remove.add_argument("name", help="the provider, for example infrastructure-vsphere")
    remove.add_argument("--include-crds", action="store_true", help="remove its definitions, too; refused while there are objects of them")
    remove.add_argument("--include-namespace", action="store_true", help="remove its namespace, with everything in it")
    add_timeout(remove, 120.0, "how long to wait for the end", "2m")
    logs = commands.add_parser("logs", parents=[shared], help="print the output of a provider's program")
    logs.add_argument("name", help="the provider, for example infrastructure-vsphere")
    logs.add_argument("-f", "--follow", action="store_true", help="go on with new output, until interrupted")
    logs.add_argument("--tail", type=int, default=-1, metavar="LINES", help="only the last lines; default: everything that is kept")


def _add_add(parser: ArgumentParser) -> None:
    parser.add_argument("source", help="the release: a file, - for standard input, or a folder with a kustomization")
    parser.add_argument(
        "--binary", required=True, metavar="PATH", help="the provider's program; it runs with the rights of the user who runs the plane"
    )
    parser.add_argument("--arg", action="append", default=[], metavar="ARG", help="a further argument; a flag replaces that of the release")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a further environment variable; without a value: that of this shell",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a value for ${NAME} in the release; else from the environment"
    )
    parser.add_argument("--name", default="", help="default: the label cluster.x-k8s.io/provider of the release")
    parser.add_argument("--deployment", default="", metavar="NAME", help="the Deployment whose program is run, if there are several")
    parser.add_argument("--container", default="", metavar="NAME", help="its container, if there are several")
    parser.add_argument("--no-help", action="store_true", help="do not run the program with --help to learn which flags it knows")
    add_timeout(parser, 120.0, "how long the program may take to become ready", "2m")
