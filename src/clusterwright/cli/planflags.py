"""The flags of `clusterwright plan`."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import NoReturn

from clusterwright.cli import flags
from clusterwright.controllers.kit.features import DEFAULT_FEATURES


def plan_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright plan`."""
    parser.add_argument("-f", "--filename", action="append", default=[], metavar="FILE", help="manifests to apply; - for standard input")
    parser.add_argument("-k", "--kustomize", default="", metavar="DIR", help="apply what `kubectl kustomize DIR` prints")
    parser.add_argument("--edit", action="append", default=[], metavar="KIND/NAME", help="an object to change by the --set flags after it")
    parser.add_argument(
        "--set",
        action=_Set,
        dest="values",
        metavar="PATH=VALUE",
        help="a value of the object of the last --edit, such as spec.topology.version=v1.35.0 or spec.list[name=a].x=1; null removes it",
    )
    parser.add_argument("--delete", action="append", default=[], metavar="KIND/NAME", help="an object to delete")
    parser.add_argument("--server-side", action="store_true", help="apply manifests as `kubectl apply --server-side` does")
    parser.add_argument("--from", dest="source", metavar="FILE", help="plan on a bundle instead of a live cluster")
    parser.add_argument(
        "--class",
        dest="folder",
        default="",
        metavar="DIR",
        help="print what the ClusterClasses in a folder render, without a server: with the Clusters there, else with a sample; "
        "--set NAME=VALUE sets a variable of the sample",
    )
    parser.add_argument(
        "--all", action="store_true", help="plan for the Clusters of all namespaces, for example all that use a changed ClusterClass"
    )
    parser.add_argument(
        "--deny",
        action="append",
        default=[],
        metavar="RULE",
        help="fail if the plan does this: replace, delete, control-plane-rollout, unavailable>N, duration>T; may be repeated",
    )
    parser.add_argument("--policy", default="", metavar="FILE", help="a file with the rules of --deny: `deny: [replace, unavailable>1]`")
    parser.add_argument(
        "--call-extensions", action="store_true", help="call runtime extensions; without it their answers are assumed and marked so"
    )
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="how often to compute the duration; default: as often as is cheap")
    parser.add_argument("--schema", action=_PrintSchema, help="print the JSON Schema of -o json, and exit")
    parser.add_argument("-o", "--output", choices=("text", "json", "markdown"), default="text")
    flags.add_connection(parser)
    known = ", ".join(sorted(DEFAULT_FEATURES))
    parser.add_argument("--feature-gates", default="", metavar="Name=true,...", help=f"gates of the controllers; known: {known}")


class _Set(Action):
    """Collects values for the object of the last --edit."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: object, option_string: str | None = None) -> None:
        if not namespace.edit and not namespace.folder:
            parser.error("--set needs an --edit KIND/NAME before it")
        collected = list(namespace.values or ())
        namespace.values = [*collected, (len(namespace.edit) - 1, str(values))]


class _PrintSchema(Action):
    """Prints a schema and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str = "") -> None:
        super().__init__(option_strings, SUPPRESS, nargs=0, default=SUPPRESS, help=help)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: object, option_string: str | None = None) -> NoReturn:
        from importlib.resources import files  # only now: help is to be quick

        print(files("clusterwright.plan").joinpath("schemas/plan.json").read_text(), end="")
        parser.exit()
