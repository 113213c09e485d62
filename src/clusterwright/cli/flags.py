"""The flags of each command. They are added without importing the code that runs the command."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
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
    parser.add_argument(
        "--timeout",
        type=upflags.seconds,
        default=WAIT_SECONDS,
        metavar="DURATION",
        help="how long to wait, for example 90s or 10m; default: 10m",
    )
    add_connection(parser)


def get_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright get`."""
    parser.add_argument(
        "words", nargs="+", metavar="KIND [NAME ...]", help="for example clusters, md, machines,clusters, machine/m1, kcp c1, kubeconfig c1"
    )
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="list all namespaces")
    parser.add_argument("-l", "--selector", default="", help="labels, e.g. role=web,!old")
    parser.add_argument("-c", "--cluster", default="", metavar="NAME", help="list only objects of this cluster")
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml", "name"),
        default="table",
        help="wide: more columns, and verdicts for clusters",
    )
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
    parser.add_argument(
        "--timeout",
        type=upflags.seconds,
        default=0.0,
        metavar="DURATION",
        help="how long to wait, for example 90s or 10m; default: forever",
    )
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
    parser.add_argument(
        "--timeout",
        type=upflags.seconds,
        default=WAIT_SECONDS,
        metavar="DURATION",
        help="how long to wait, for example 90s or 10m; default: 10m",
    )
    add_connection(parser)


def move_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright move`."""
    parser.add_argument("--to-kubeconfig", required=True, metavar="PATH", help="the kubeconfig of the target management cluster")
    parser.add_argument("--to-context", default="", help="the context of the target; default: the current one")
    parser.add_argument("--dry-run", action="store_true", help="only list the objects that would be moved")
    parser.add_argument(
        "--timeout",
        type=upflags.seconds,
        default=120.0,
        metavar="DURATION",
        help="how long to wait until everything is paused; default: 2m",
    )
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


def store_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright store`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = ArgumentParser(add_help=False)
    shared.add_argument("--data-dir", type=Path, default=LOCAL.parent, help="default: %(default)s")
    shared.add_argument("-o", "--output", choices=("text", "json"), default="text")
    commands.add_parser("check", parents=[shared], help="check every row; the plane may be running")
    commands.add_parser("repair", parents=[shared], help="keep intact data and list lost objects; the plane must be stopped")
    backup = commands.add_parser("backup", parents=[shared], help="copy everything into a new folder; the plane may be running")
    backup.add_argument("folder", type=Path, help="the new folder")
    restore = commands.add_parser("restore", parents=[shared], help="restore a backup into an empty data directory")
    restore.add_argument("folder", type=Path, help="the folder of the backup")


def engine_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright engine`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = ArgumentParser(add_help=False)
    shared.add_argument(
        "--engine", default="auto", metavar="NAME", help="auto, docker, podman, or unix:///PATH of its socket; default: %(default)s"
    )
    add_connection(shared)
    commands.add_parser("list", parents=[shared], help="list containers of all planes, and whether their objects still exist")
    prune = commands.add_parser(
        "prune", parents=[shared], help="remove containers whose objects no longer exist in the plane of the kubeconfig"
    )
    prune.add_argument("--plane", default="", metavar="UID", help="remove all containers of this plane, which must not be running")
    prune.add_argument("--yes", action="store_true", help="remove without confirmation")


def load_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright load`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    image = commands.add_parser("image", help="copy images from the engine into all nodes of a cluster")
    image.add_argument("words", nargs="+", metavar="CLUSTER IMAGE ...", help="the cluster's name, and images of the engine")
    image.add_argument(
        "--engine", default="auto", metavar="NAME", help="auto, docker, podman, or unix:///PATH of its socket; default: %(default)s"
    )
    add_connection(image)


def conformance_flags(parser: ArgumentParser) -> None:
    """Add the flags of `conformance`."""
    for role, text in (
        ("infrastructure-cluster", "InfraCluster; also used for the Machines' Cluster"),
        ("infrastructure-machine", "InfraMachine"),
        ("bootstrap-config", "BootstrapConfig"),
        ("control-plane", "ControlPlane"),
    ):
        parser.add_argument(f"--{role}-template", metavar="FILE", help=f"a template (or an object) of the {text}, with what it needs")
    parser.add_argument(
        "--restart-command", default="", metavar="COMMAND", help="a command that restarts the provider; without it, restarts are not judged"
    )
    parser.add_argument("--audit-log", type=Path, metavar="FILE", help="the plane's audit log, to count writes that change nothing")
    parser.add_argument("--failure-domain", default="", metavar="NAME", help="what Machines ask for; default: the Cluster's first one")
    parser.add_argument("--bootstrap-data", metavar="FILE", help="what machines boot; default: a cloud-config that does nothing")
    parser.add_argument(
        "--definitions-only", action="store_true", help="judge only the CustomResourceDefinitions; the provider need not run"
    )
    parser.add_argument(
        "--settle",
        type=upflags.seconds,
        default=2.0,
        metavar="DURATION",
        help="how long nothing may happen before it counts as not happening; default: 2s",
    )
    parser.add_argument(
        "--timeout",
        type=upflags.seconds,
        default=120.0,
        metavar="DURATION",
        help="how long an object may take to be made or to go; default: 2m",
    )
    parser.add_argument("-o", "--output", choices=("text", "json", "junit"), default="text")
    add_connection(parser)


def tables_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright tables`."""
    parser.add_argument("name", nargs="?", default="", help="a table, a controller, or CONTROLLER/TABLE; default: all")
    parser.add_argument("-o", "--output", choices=("markdown", "json"), default="markdown")


def crds_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright crds`."""
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only this kind, as plural or full name; default: all")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="the format: YAML documents, or one JSON List")
    parser.add_argument(
        "--runtime-hooks", action="store_true", help="print the OpenAPI document of the hooks of runtime extensions, as JSON"
    )


def convert_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright convert`."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="YAML or JSON; default: standard input")
    parser.add_argument("--to-version", default="v1beta2", metavar="VERSION", help="v1beta2, or an old one; default: %(default)s")
    parser.add_argument("-o", "--output-file", default="-", metavar="PATH", help="write there; default: standard output")


def install_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright install`."""
    parser.add_argument("--form", choices=("yaml", "kustomize", "helm"), default="yaml", help="default: %(default)s")
    parser.add_argument("--output-dir", metavar="PATH", help="write the files into this folder; default: print YAML")
    parser.add_argument("--apply", action="store_true", help="apply the objects to the cluster, server-side, instead of printing them")
    parser.add_argument(
        "--target-namespace",
        default="clusterwright-system",
        metavar="NAMESPACE",
        help="the namespace of the installation; default: %(default)s",
    )
    parser.add_argument("--watch-namespace", default="", metavar="NAMESPACE", help="act only in this namespace, with a Role there")
    parser.add_argument("--image", default="clusterwright:latest", help="the image; default: %(default)s")
    parser.add_argument("--replicas", type=int, default=2, metavar="N", help="default: %(default)s")
    parser.add_argument("--shard", action="store_true", help="let the replicas share the Clusters; default: one leads, the others wait")
    parser.add_argument(
        "--controllers",
        default="*,-dev*,-docker*,crdmigrator",
        metavar="NAME,...",
        help="as in `manager`; the role has only the permissions that they need; default: %(default)s",
    )
    parser.add_argument("--no-webhooks", action="store_true", help="without admission and conversion: only stored versions are served")
    parser.add_argument("--argument", action="append", default=[], metavar="FLAG", help="a further flag of the manager; may be repeated")
    add_connection(parser)


def adopt_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright adopt`."""
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and other running controllers")
    parser.add_argument(
        "--controllers",
        default="*,-dev*,-docker*",
        metavar="NAME,...",
        help="the controllers that would take over, as in `manager`; default: %(default)s",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
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


def envtest_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright envtest`."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(".clusterwright/envtest"), metavar="FOLDER", help="default: .clusterwright/envtest"
    )


def completion_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for example in ~/.bashrc: source <(clusterwright completion bash)")


def complete_flags(parser: ArgumentParser) -> None:
    """Add the flags of `clusterwright complete`."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="after --: the words typed so far, the last possibly incomplete")
    parser.set_defaults(shell="")
