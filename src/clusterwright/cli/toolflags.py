"""The flags of commands about installations, providers and files. They are added without importing the code that runs the command."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from clusterwright.cli import upflags
from clusterwright.cli.defaults import LOCAL
from clusterwright.cli.flags import add_connection, add_timeout


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
        ("infrastructure-machine-pool", "InfraMachinePool"),
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
    add_timeout(parser, 120.0, "how long an object may take to be made or to go", "2m")
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
