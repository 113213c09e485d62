"""The flags of each command. They are added without importing the code that runs the command."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import NoReturn

from clusterwright.cli import upflags
from clusterwright.cli.defaults import LOCAL, WAIT_SECONDS
from clusterwright.inmemory.faults import DESCRIPTIONS
from clusterwright.simulation.defaults import KUBERNETES_VERSION

_CLUSTER = {"nargs": "+", "metavar": "cluster/NAME", "help": "or cluster NAME, or NAME"}
FLAVORS = {
    "plain": "KubeadmControlPlane and MachineDeployment",
    "health-check": "with a MachineHealthCheck of the workers, too",
    "topology": "with a ClusterClass, which is created unless it exists",
}


def add_connection(parser: ArgumentParser) -> None:
    """Add the flags of every command that connects to a management cluster."""
    parser.add_argument(
        "--kubeconfig", metavar="PATH", help=f"default: $KUBECONFIG, {LOCAL}, ~/.kube/config, the cluster that this process runs in"
    )
    parser.add_argument("--context", default="", help="a context of the kubeconfig; default: the current one")
    parser.add_argument("-n", "--namespace", default="", help="default: that of the context")


def add_timeout(parser: ArgumentParser, default: float, says: str, shown: str) -> None:
    """Add `--timeout`."""
    parser.add_argument("--timeout", type=upflags.seconds, default=default, metavar="DURATION", help=f"{says}; default: {shown}")


def create_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright create`."""
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    told = "; ".join(f"{name}: {text}" for name, text in FLAVORS.items())
    parser.add_argument("--flavor", choices=tuple(FLAVORS), default="plain", help=f"{told}; default: %(default)s")
    parser.add_argument("--kubernetes-version", default=KUBERNETES_VERSION, metavar="VERSION", help="default: %(default)s")
    parser.add_argument(
        "--control-plane-machines", "--control-plane-machine-count", type=int, default=1, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--worker-machines", "--worker-machine-count", type=int, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--infrastructure",
        choices=("in-memory", "docker"),
        default="in-memory",
        help="docker: machines are containers, if the plane has an engine (`up --engine`); default: %(default)s",
    )
    parser.add_argument(
        "--cni",
        default="",
        metavar="kindnet|none|FILE",
        help="for containers: the CNI of the node image, none, or manifests in a file; default: kindnet",
    )
    parser.add_argument(
        "--node-image",
        default="",
        metavar="IMAGE",
        help="for containers: the node image; default: kindest/node with the Kubernetes version",
    )
    parser.add_argument(
        "--load-balancer-image", default="", metavar="IMAGE", help="for containers: an image with haproxy; default: kindest/haproxy"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the manifests instead")
    parser.add_argument("--wait", action="store_true", help="wait until the cluster and all its machines are available")
    add_timeout(parser, WAIT_SECONDS, "how long to wait, for example 90s or 10m", "10m")
    add_connection(parser)


def get_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright get`."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="KIND [NAME ...]",
        help="for example clusters, md, machines,clusters, all, machine/m1, kcp c1, kubeconfig c1",
    )
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="list all namespaces")
    parser.add_argument("-l", "--selector", default="", help="labels, e.g. role=web,!old")
    parser.add_argument("-c", "--cluster", default="", metavar="NAME", help="list only objects of this cluster")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORM",
        default="table",
        help="table, wide (more columns, whole verdicts), json, yaml, name, jsonpath=PATH, custom-columns=HEAD:PATH,...; default: table",
    )
    parser.add_argument("-w", "--watch", action="store_true", help="go on with a line for each change, until interrupted")
    add_connection(parser)


def describe_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright describe`."""
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    parser.add_argument(
        "--show-conditions",
        nargs="?",
        const="all",
        metavar="KIND,...",
        help="show all conditions of every object, or of these kinds, not only the summary",
    )
    parser.add_argument("--all", action="store_true", help="also show templates, and the objects of every Machine")
    parser.add_argument("--no-grouping", action="store_true", help="show one line per Machine, even if several are in the same state")
    parser.add_argument("-w", "--watch", action="store_true", help="show the tree again after every change")
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="json: the tree with all conditions, and the verdict"
    )
    add_connection(parser)


def explain_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright explain`."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="KIND/NAME [CONDITION]",
        help="for example cluster/c1, cluster c1, kcp/namespace/c1; with a condition, its table with every guard's value",
    )
    parser.add_argument("--decisions", action="store_true", help="also list the decision of every table")
    parser.add_argument("--evidence", action="store_true", help="also list the conditions, Events, rows and absences behind the verdict")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 3 if the verdict is progressing, 4: waiting, 5: broken, 6: could not see; default: 0 for every verdict",
    )
    parser.add_argument("--schema", action=_PrintSchema, help="print the JSON Schema of -o json, and exit")
    parser.add_argument("-w", "--watch", action="store_true", help="print the verdict again whenever it changes")
    parser.add_argument("--from", dest="source", metavar="FILE", help="read a bundle instead of a live cluster; - for standard input")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    _health_port(parser)
    add_connection(parser)


class _PrintSchema(Action):
    """Prints a schema and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str = "") -> None:
        super().__init__(option_strings, SUPPRESS, nargs=0, default=SUPPRESS, help=help)

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: object, option_string: str | None = None) -> NoReturn:
        from importlib.resources import files  # only now: help is to be quick

        print(files("clusterwright.offline").joinpath("schemas/explain.json").read_text(), end="")
        parser.exit()


def _health_port(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--health-port",
        type=upflags.port,
        metavar="PORT",
        help="also read decisions and gates from the controllers at this port of this machine; for `up` this is automatic",
    )


def delete_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright delete`."""
    parser.add_argument("words", nargs="+", metavar="KIND/NAME", help="or KIND NAME; NAME alone means a cluster")
    parser.add_argument("--no-wait", action="store_true", help="return once the API server has accepted the deletion")
    add_timeout(parser, 0.0, "how long to wait, for example 90s or 10m", "forever")
    add_connection(parser)


def wait_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright wait`."""
    parser.add_argument("words", nargs="+", metavar="KIND/NAME", help="or KIND NAME; NAME alone means a cluster")
    parser.add_argument(
        "--for",
        dest="goal",
        default="condition=Available",
        metavar="GOAL",
        help="condition=TYPE[=STATUS], delete, create, or jsonpath='{.path}'[=VALUE]; default: %(default)s",
    )
    add_timeout(parser, WAIT_SECONDS, "how long to wait, for example 90s or 10m", "10m")
    add_connection(parser)


def move_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright move`."""
    parser.add_argument("--to-kubeconfig", required=True, metavar="PATH", help="the kubeconfig of the target management cluster")
    parser.add_argument("--to-context", default="", help="the context of the target; default: the current one")
    parser.add_argument("--dry-run", action="store_true", help="only list the objects that would be moved")
    add_timeout(parser, 120.0, "how long to wait until everything is paused", "2m")
    add_connection(parser)


def fault_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright fault`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    known = "\n".join(f"  {name:<24}{text}" for name, text in DESCRIPTIONS.items())
    inject = actions.add_parser(
        "inject",
        help="inject a fault",
        description="Inject a fault into a simulated machine or the endpoint of a cluster.",
        epilog=f"faults:\n{known}\n\nexample: clusterwright fault inject machine/shop-md-0-abcde node-dies",
        formatter_class=RawDescriptionHelpFormatter,
    )
    inject.add_argument(
        "words", nargs="+", metavar="KIND/NAME FAULT", help="machine/NAME, node/NAME, devmachine/NAME or cluster/NAME, and a fault"
    )
    remove = actions.add_parser("remove", help="end faults", description="End a fault, or all faults of an object.")
    remove.add_argument("words", nargs="+", metavar="KIND/NAME [FAULT]", help="the object and the fault; without a fault, all faults end")
    show = actions.add_parser("list", help="list present and possible faults", description="List present and possible faults.")
    show.add_argument("words", nargs="*", metavar="cluster/NAME", help="list only faults of this cluster")
    for action in (inject, remove, show):
        add_connection(action)


def incident_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright incident`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("list", help="list all incidents", description="List all incidents, with those that cannot be replayed.")
    play = actions.add_parser(
        "replay",
        help="replay an incident",
        description="Replay an incident with the controllers of this version: the actions, the timeline, and the result.",
        epilog="example: clusterwright incident replay 14197",
    )
    play.add_argument("number", metavar="NUMBER", help="number of the issue: 14197, or cluster-api#14197 if two projects have that number")
    play.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of times and random choices; default: %(default)s")
    play.add_argument("--all", action="store_true", help="show the timeline from the beginning, with every decision of a table")
    for action in (show, play):
        action.add_argument("-o", "--output", choices=("text", "json"), default="text")


def mcp_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright mcp`."""
    parser.add_argument("--from", dest="source", metavar="FILE", help="read a bundle instead of a live installation")
    _health_port(parser)
    add_connection(parser)


def timeline_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright timeline`."""
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    parser.add_argument(
        "--since", default="", metavar="WHEN", help="show only newer moments: a duration such as 30m, or a time in RFC 3339"
    )
    parser.add_argument("--kind", default="", metavar="KIND,...", help="show only objects of these kinds")
    parser.add_argument("--decisions", action="store_true", help="also show every row of a decision table that fired")
    parser.add_argument("--all", action="store_true", help="show everything: decisions, and conditions without news")
    parser.add_argument("--from", dest="source", metavar="FILE", help="read a bundle instead of a live cluster; - for standard input")
    parser.add_argument("-w", "--watch", action="store_true", help="continue with new moments")
    _health_port(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    add_connection(parser)


def generate_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright generate`."""
    parser.add_argument("words", nargs="*", metavar="cluster/NAME", help="or cluster NAME, or NAME: the value of ${CLUSTER_NAME}")
    parser.add_argument("--from", dest="source", metavar="FILE", help="the template; - for standard input; default: a flavor")
    parser.add_argument("--flavor", choices=tuple(FLAVORS), default="plain", help="a built-in template; default: %(default)s")
    parser.add_argument("--kubernetes-version", default="", metavar="VERSION", help="the value of ${KUBERNETES_VERSION}")
    parser.add_argument("--control-plane-machine-count", type=int, metavar="N", help="the value of ${CONTROL_PLANE_MACHINE_COUNT}")
    parser.add_argument("--worker-machine-count", type=int, metavar="N", help="the value of ${WORKER_MACHINE_COUNT}")
    parser.add_argument("-n", "--target-namespace", "--namespace", dest="namespace", default="", help="the value of ${NAMESPACE}")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable; it overrides the environment; may be repeated"
    )
    parser.add_argument("--list-variables", action="store_true", help="only list the variables of the template, with their defaults")


def render_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright render`."""
    parser.add_argument("words", nargs="+", metavar="kubeadmconfig/NAME", help="or kubeadmconfig NAME, or NAME")
    parser.add_argument("--from", dest="file", metavar="FILE", help="read a bundle instead of a live cluster; - for standard input")
    parser.add_argument("--show-secrets", action="store_true", help="show keys, tokens, passwords and contents from Secrets")
    add_connection(parser)


def record_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright record`."""
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    parser.add_argument("-f", "--file", metavar="FILE", default="-", help="the output file; default: standard output")
    add_connection(parser)


def version_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright version`."""
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def web_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright web`."""
    add_connection(parser)
    parser.add_argument("--open", action="store_true", help="open the link in a browser, too")
    parser.add_argument("--here", action="store_true", help="serve the page here even if the plane serves one")
    parser.add_argument("--port", type=int, default=0, metavar="PORT", help="of a page that is served here; default: any free one")
