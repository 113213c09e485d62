"""The grammar of the command line: every command with its flags, without the code that runs it.

Help, wrong calls and completion need no more than this, so it imports nothing that takes time. A command's module has
`run(arguments) -> exit status` and is imported only once the call is known to make sense.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from clusterwright.cli import upflags
from clusterwright.cli.defaults import KUBERNETES_VERSION, LOCAL, WAIT_SECONDS
from clusterwright.inmemory.faults import DESCRIPTIONS

_CLUSTER = {"nargs": "+", "metavar": "cluster/NAME", "help": "or cluster NAME, or NAME"}
FLAVORS = {
    "plain": "KubeadmControlPlane and MachineDeployment",
    "health-check": "the same with a MachineHealthCheck of the workers",
    "topology": "of a ClusterClass, which is created unless it is there",
}


class Command(NamedTuple):
    """One command: its module in this package, a summary line, a paragraph, and the function that adds its flags."""

    module: str
    summary: str
    add_flags: Callable[[ArgumentParser], None]
    description: str = ""


class Parser(ArgumentParser):
    """A parser whose errors are one line; the rest is in --help."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def parser(name: str) -> ArgumentParser:
    """Return the parser of an existing command."""
    command = COMMANDS[name]
    text = command.description or f"{command.summary[0].upper()}{command.summary[1:]}."
    made = Parser(prog=f"clusterwright {name}", description=text, formatter_class=RawDescriptionHelpFormatter)
    command.add_flags(made)
    return made


def parse(name: str, argv: Sequence[str]) -> Namespace:
    """Return the arguments of a command; end the program if they are invalid. `parser` and `argv` produced them."""
    made = parser(name)
    arguments = made.parse_args(list(argv))
    arguments.parser, arguments.argv = made, list(argv)
    return arguments


def add_connection(parser: ArgumentParser) -> None:
    """Add the flags of every command that connects to a management cluster."""
    parser.add_argument("--kubeconfig", metavar="PATH", help=f"default: $KUBECONFIG, {LOCAL}, ~/.kube/config, the cluster we run in")
    parser.add_argument("--context", default="", help="a context of the kubeconfig; default: the current one")
    parser.add_argument("-n", "--namespace", default="", help="default: the context's")


def _create(parser: ArgumentParser) -> None:
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
        help="docker: containers, where the plane has an engine (`up --engine`); default: %(default)s",
    )
    parser.add_argument(
        "--cni",
        default="",
        metavar="kindnet|none|FILE",
        help="of containers: the one that the node image brings, none, or manifests in a file; default: kindnet",
    )
    parser.add_argument("--node-image", default="", metavar="IMAGE", help="of containers; default: kindest/node of the Kubernetes version")
    parser.add_argument("--load-balancer-image", default="", metavar="IMAGE", help="of containers, with haproxy; default: kindest/haproxy")
    parser.add_argument("--dry-run", action="store_true", help="print the manifests instead")
    parser.add_argument("--wait", action="store_true", help="until it is available with all its machines")
    parser.add_argument(
        "--timeout", type=upflags.seconds, default=WAIT_SECONDS, metavar="DURATION", help="how long to wait, e.g. 90s or 10m; default: 10m"
    )
    add_connection(parser)


def _get(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="+", metavar="KIND [NAME ...]", help="e.g. clusters, md, machines,clusters, machine/m1, kcp c1, kubeconfig c1"
    )
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    parser.add_argument("-l", "--selector", default="", help="labels, e.g. role=web,!old")
    parser.add_argument("-c", "--cluster", default="", metavar="NAME", help="only what belongs to this cluster")
    parser.add_argument(
        "-o", "--output", choices=("table", "wide", "json", "yaml", "name"), default="table", help="wide: of clusters, with a verdict"
    )
    add_connection(parser)


def _describe(parser: ArgumentParser) -> None:
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    parser.add_argument(
        "--show-conditions",
        nargs="?",
        const="all",
        metavar="KIND,...",
        help="all conditions of every object, or of objects of these kinds, not only the one that sums it up",
    )
    parser.add_argument("--all", action="store_true", help="also templates, and what every Machine is made of")
    parser.add_argument("--no-grouping", action="store_true", help="a line for every Machine, though they are in the same state")
    parser.add_argument("-w", "--watch", action="store_true", help="show it again whenever it changes")
    add_connection(parser)


def _explain(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="+",
        metavar="KIND/NAME [CONDITION]",
        help="e.g. cluster/c1, cluster c1, kcp/namespace/c1; with a condition, its table with every guard's value",
    )
    parser.add_argument("--decisions", action="store_true", help="also list the decision of every table")
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 3 if the verdict is progressing, 4: waiting, 5: broken, 6: could not see; default: 0 for every verdict",
    )
    parser.add_argument("--schema", action=_PrintSchema, help="print the JSON Schema of -o json, and exit")
    parser.add_argument("-w", "--watch", action="store_true", help="tell whenever the verdict changes")
    parser.add_argument("--from", dest="source", metavar="FILE", help="a bundle instead of a live cluster; - for standard input")
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
        help="of controllers on this machine: ask them what they decided and which gates are on; `up` is asked without it",
    )


def _delete(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="KIND/NAME", help="or KIND NAME; a NAME alone is a cluster's")
    parser.add_argument("--no-wait", action="store_true", help="return once the deletion has been accepted")
    parser.add_argument(
        "--timeout", type=upflags.seconds, default=0.0, metavar="DURATION", help="how long to wait, e.g. 90s or 10m; default: forever"
    )
    add_connection(parser)


def _wait(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="KIND/NAME", help="or KIND NAME; a NAME alone is a cluster's")
    parser.add_argument(
        "--for",
        dest="goal",
        default="condition=Available",
        metavar="GOAL",
        help="condition=TYPE[=STATUS], delete, create, or jsonpath='{.path}'[=VALUE]; default: %(default)s",
    )
    parser.add_argument(
        "--timeout", type=upflags.seconds, default=WAIT_SECONDS, metavar="DURATION", help="how long to wait, e.g. 90s or 10m; default: 10m"
    )
    add_connection(parser)


def _move(parser: ArgumentParser) -> None:
    parser.add_argument("--to-kubeconfig", required=True, metavar="PATH", help="of the management cluster that takes them")
    parser.add_argument("--to-context", default="", help="a context of it; default: the current one")
    parser.add_argument("--dry-run", action="store_true", help="only name what would be moved")
    parser.add_argument(
        "--timeout", type=upflags.seconds, default=120.0, metavar="DURATION", help="how long all may take to pause; default: 2m"
    )
    add_connection(parser)


def _fault(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    known = "\n".join(f"  {name:<24}{text}" for name, text in DESCRIPTIONS.items())
    inject = actions.add_parser(
        "inject",
        help="break something",
        description="Break a simulated machine or the endpoint of a cluster.",
        epilog=f"faults:\n{known}\n\nexample: clusterwright fault inject machine/shop-md-0-abcde node-dies",
        formatter_class=RawDescriptionHelpFormatter,
    )
    inject.add_argument(
        "words", nargs="+", metavar="KIND/NAME FAULT", help="machine/NAME, node/NAME, devmachine/NAME or cluster/NAME, and what breaks"
    )
    remove = actions.add_parser("remove", help="end faults", description="End a fault, or all faults of an object.")
    remove.add_argument("words", nargs="+", metavar="KIND/NAME [FAULT]", help="what was broken; without a FAULT all of them end")
    show = actions.add_parser("list", help="what is broken, and what can be", description="List what is broken, and what can be.")
    show.add_argument("words", nargs="*", metavar="cluster/NAME", help="only of this cluster")
    for action in (inject, remove, show):
        add_connection(action)


def _incident(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("list", help="name all incidents", description="Name all incidents, and those that are not played.")
    play = actions.add_parser(
        "replay",
        help="play one",
        description="Play an incident with the controllers of this version: what is done, the timeline, and how it ended.",
        epilog="example: clusterwright incident replay 14197",
    )
    play.add_argument("number", metavar="NUMBER", help="of the issue: 14197, or cluster-api#14197 where two projects have it")
    play.add_argument("--seed", type=int, default=1, metavar="N", help="times and victims follow from it; default: %(default)s")
    play.add_argument("--all", action="store_true", help="a timeline from the beginning, with every decision of a table")
    for action in (show, play):
        action.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _mcp(parser: ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="FILE", help="a bundle instead of a live installation")
    _health_port(parser)
    add_connection(parser)


def _timeline(parser: ArgumentParser) -> None:
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    parser.add_argument("--since", default="", metavar="WHEN", help="only what is newer: a duration such as 30m, or a time in RFC 3339")
    parser.add_argument("--kind", default="", metavar="KIND,...", help="only of objects of these kinds")
    parser.add_argument("--decisions", action="store_true", help="also every row of a decision table that fired")
    parser.add_argument("--all", action="store_true", help="everything: decisions, and conditions that say that nothing happens")
    parser.add_argument("--from", dest="source", metavar="FILE", help="a bundle instead of a live cluster; - for standard input")
    parser.add_argument("-w", "--watch", action="store_true", help="go on as things happen")
    _health_port(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    add_connection(parser)


def _generate(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="cluster/NAME", help="or cluster NAME, or NAME: the value of ${CLUSTER_NAME}")
    parser.add_argument("--from", dest="source", metavar="FILE", help="the template; - for standard input; default: a flavor")
    parser.add_argument("--flavor", choices=tuple(FLAVORS), default="plain", help="a template that is built in; default: %(default)s")
    parser.add_argument("--kubernetes-version", default="", metavar="VERSION", help="the value of ${KUBERNETES_VERSION}")
    parser.add_argument("--control-plane-machine-count", type=int, metavar="N", help="the value of ${CONTROL_PLANE_MACHINE_COUNT}")
    parser.add_argument("--worker-machine-count", type=int, metavar="N", help="the value of ${WORKER_MACHINE_COUNT}")
    parser.add_argument("-n", "--target-namespace", "--namespace", dest="namespace", default="", help="the value of ${NAMESPACE}")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable; before the environment's; may be repeated"
    )
    parser.add_argument("--list-variables", action="store_true", help="only name the variables of the template, and their defaults")


def _render(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="kubeadmconfig/NAME", help="or kubeadmconfig NAME, or NAME")
    parser.add_argument("--from", dest="file", metavar="FILE", help="a bundle instead of a live cluster; - for standard input")
    parser.add_argument("--show-secrets", action="store_true", help="do not hide keys, tokens, passwords and contents from Secrets")
    add_connection(parser)


def _record(parser: ArgumentParser) -> None:
    parser.add_argument("words", **_CLUSTER)  # type: ignore[arg-type]
    parser.add_argument("-f", "--file", metavar="FILE", default="-", help="where to write it; default: standard output")
    add_connection(parser)


def _store(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = ArgumentParser(add_help=False)
    shared.add_argument("--data-dir", type=Path, default=LOCAL.parent, help="default: %(default)s")
    shared.add_argument("-o", "--output", choices=("text", "json"), default="text")
    commands.add_parser("check", parents=[shared], help="look at every row; may be done while serving")
    commands.add_parser("repair", parents=[shared], help="keep what is intact, name what is not; not while serving")
    backup = commands.add_parser("backup", parents=[shared], help="copy everything into a new folder; may be done while serving")
    backup.add_argument("folder", type=Path, help="a new one")
    restore = commands.add_parser("restore", parents=[shared], help="put a backup into an empty data directory")
    restore.add_argument("folder", type=Path, help="that a backup was written to")


def _engine(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = ArgumentParser(add_help=False)
    shared.add_argument(
        "--engine", default="auto", metavar="NAME", help="auto, docker, podman, or unix:///PATH of its socket; default: %(default)s"
    )
    add_connection(shared)
    commands.add_parser("list", parents=[shared], help="containers of all planes, and whether their objects still exist")
    prune = commands.add_parser("prune", parents=[shared], help="remove containers that the plane of the kubeconfig has lost")
    prune.add_argument("--plane", default="", metavar="UID", help="remove all of this plane instead, which is not running any more")
    prune.add_argument("--yes", action="store_true", help="without asking")


def _load(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    image = commands.add_parser("image", help="images from the engine into all nodes of a cluster")
    image.add_argument("words", nargs="+", metavar="CLUSTER IMAGE ...", help="the cluster's name, and images that the engine has")
    image.add_argument(
        "--engine", default="auto", metavar="NAME", help="auto, docker, podman, or unix:///PATH of its socket; default: %(default)s"
    )
    add_connection(image)


def _tables(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="", help="a table, a controller, or CONTROLLER/TABLE; default: all")
    parser.add_argument("-o", "--output", choices=("markdown", "json"), default="markdown")


def _crds(parser: ArgumentParser) -> None:
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these: a kind, plural or full name; default: all")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="YAML documents, or one JSON List")
    parser.add_argument("--runtime-hooks", action="store_true", help="the OpenAPI document of the hooks of runtime extensions, as JSON")


def _convert(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="YAML or JSON; default: standard input")
    parser.add_argument("--to-version", default="v1beta2", metavar="VERSION", help="v1beta2, or an old one; default: %(default)s")
    parser.add_argument("-o", "--output-file", default="-", metavar="PATH", help="write there; default: standard output")


def _install(parser: ArgumentParser) -> None:
    parser.add_argument("--form", choices=("yaml", "kustomize", "helm"), default="yaml", help="default: %(default)s")
    parser.add_argument("--output-dir", metavar="PATH", help="write files there; default: print YAML")
    parser.add_argument("--apply", action="store_true", help="apply the objects to the cluster, server-side, instead of printing them")
    parser.add_argument(
        "--target-namespace", default="clusterwright-system", metavar="NAMESPACE", help="where we run; default: %(default)s"
    )
    parser.add_argument("--watch-namespace", default="", metavar="NAMESPACE", help="act in this namespace only, by a Role there")
    parser.add_argument("--image", default="clusterwright:latest", help="made by the Containerfile; default: %(default)s")
    parser.add_argument("--replicas", type=int, default=2, metavar="N", help="default: %(default)s")
    parser.add_argument("--shard", action="store_true", help="replicas share the Clusters; default: one leads, the others wait")
    parser.add_argument(
        "--controllers",
        default="*,-dev*,-docker*,crdmigrator",
        metavar="NAME,...",
        help="as in manager; the role has no more than they need; default: %(default)s",
    )
    parser.add_argument("--no-webhooks", action="store_true", help="without admission and conversion: only stored versions are served")
    parser.add_argument("--argument", action="append", default=[], metavar="FLAG", help="one more flag of the manager; may be repeated")
    add_connection(parser)


def _adopt(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be written and what is in the way")
    parser.add_argument(
        "--controllers",
        default="*,-dev*,-docker*",
        metavar="NAME,...",
        help="those that shall take over, as in manager; default: %(default)s",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    add_connection(parser)


def _version(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _envtest(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(".clusterwright/envtest"), metavar="FOLDER", help="default: .clusterwright/envtest"
    )


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="e.g. in ~/.bashrc: source <(clusterwright completion bash)")


def _complete(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="WORD", help="after --: what was typed so far, the last perhaps unfinished")
    parser.set_defaults(shell="")


COMMANDS: dict[str, Command] = {
    "up": Command(
        "up", "start the management plane", upflags.add, "Start the management plane: API server, controllers, in-memory infrastructure."
    ),
    "manager": Command(
        "manager",
        "run the controllers on any Kubernetes",
        upflags.add_manager,
        "Run the controllers on an API server: the one that kubectl would ask, or that of the cluster we run in.",
    ),
    "install": Command("install", "print or apply what a cluster needs to run us: CRDs, roles, Deployment, webhooks", _install),
    "adopt": Command(
        "adopt",
        "tell what taking over a live installation would write, and what is in the way",
        _adopt,
        "Tell what taking over a live Cluster API installation would write, by passes of our own controllers over its objects,\n"
        "which of its managers still run, and whose webhooks are in the way. Changes nothing. Exits 3 where something matters or\n"
        "is in the way.",
    ),
    "create": Command("create", "create a cluster of simulated machines or of containers, or print its manifests", _create),
    "tour": Command(
        "tour",
        "show a cluster's life: create, scale, upgrade, break, explain, repair, delete",
        lambda parser: None,
        "Show a cluster's life on a plane of its own, which keeps nothing: it is created, scaled and upgraded, a node breaks, the trouble\n"
        "is explained and repaired, and the cluster is deleted. Ends by itself.",
    ),
    "generate": Command(
        "generate",
        "print manifests from a template with ${VARIABLES}",
        _generate,
        "Print the manifests of a cluster from a template as clusterctl has them: ${VAR}, ${VAR:=default} and their like.\n"
        "Values come from flags, --set and the environment, in this order.",
    ),
    "get": Command("get", "list objects of a kind, show some by name, or print a cluster's kubeconfig", _get),
    "describe": Command("describe", "show a cluster as a tree with its conditions", _describe),
    "explain": Command(
        "explain",
        "say why an object is in its state, and who must act",
        _explain,
        "Say why an object is in its state: causes first, then the chain that leads there, then the decisions.",
    ),
    "delete": Command("delete", "delete a cluster or another object and wait until it is gone", _delete),
    "wait": Command("wait", "wait until an object is as it shall be", _wait),
    "timeline": Command("timeline", "show what happened to a cluster: verdicts, conditions, Events and decisions by time", _timeline),
    "mcp": Command(
        "mcp",
        "answer an assistant's questions about clusters (Model Context Protocol)",
        _mcp,
        "Serve the Model Context Protocol on standard input and output: read-only tools that list clusters with verdicts, explain and\n"
        "describe them, and show what happened. Reads with the rights of the kubeconfig, on any Cluster API installation.",
    ),
    "fault": Command("fault", "break simulated machines, mend them, list what is broken", _fault),
    "incident": Command(
        "incident",
        "replay public incidents by number, with our controllers in virtual time",
        _incident,
        "Replay public incidents of Cluster API and its providers by number, with the controllers of this version, in virtual time.\n"
        "No cluster is needed. Exits 3 where an incident does not end as it must.",
    ),
    "move": Command(
        "move",
        "move the clusters of a namespace into another management cluster",
        _move,
        "Move the clusters of a namespace, with all that belongs to them, into another management cluster, as `clusterctl move` does.\n"
        "What fails before anything was deleted is undone.",
    ),
    "render": Command(
        "render",
        "print a machine's bootstrap data as it would be written",
        _render,
        "Print the bootstrap data of a KubeadmConfig: as stored, if its Secret is there, else as the next pass of the controller\n"
        "would write it. Nothing is changed. FILE holds the config, its Machine, its Cluster and their Secrets, as\n"
        "`kubectl get -o yaml` prints them.",
    ),
    "record": Command(
        "record",
        "write a bundle of a cluster's objects, secrets redacted",
        _record,
        "Write a bundle of a cluster's objects and Events, and of its workload cluster; values of Secrets are left out.",
    ),
    "store": Command("store", "check, repair, back up or restore what the plane keeps", _store),
    "engine": Command("engine", "list or remove containers that planes have on a container engine", _engine),
    "load": Command("load", "copy images from the container engine into the nodes of a cluster", _load),
    "tables": Command("tables", "print the decision tables", _tables, "Print the decision tables: every row by name."),
    "crds": Command("crds", "print the CustomResourceDefinitions", _crds),
    "convert": Command(
        "convert",
        "print manifests in another version of our API groups",
        _convert,
        "Print the documents of a file with all objects of Cluster API's groups in one version. Other documents, and patches inside\n"
        "ClusterClasses, stay as they are; comments are lost. Nothing is changed in a cluster.",
    ),
    "envtest": Command(
        "envtest",
        "write stand-ins for kube-apiserver and etcd, for test suites that use Go's envtest",
        _envtest,
        "Write an etcd and a kube-apiserver that start our API server, and print their folder. A suite that uses controller-runtime's\n"
        "envtest runs on them: export KUBEBUILDER_ASSETS=$(clusterwright envtest)",
    ),
    "completion": Command("completion", "print what makes a shell complete commands and flags", _completion),
    "complete": Command("completion", "", _complete, "Print what may come next on a command line, for shells."),
    "version": Command("version", "print the version", _version),
}
"""All commands, in the order in which a newcomer needs them; those without a summary are hidden."""
