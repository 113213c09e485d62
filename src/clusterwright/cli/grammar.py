"""The grammar of the command line: every command with its flags, without the code that runs it.

Help, wrong calls and completion need no more than this, so it imports nothing that takes time. A command's module has
`run(arguments) -> exit status` and is imported only once the call is known to make sense.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from clusterwright.cli import flags, planflags, providerflags, toolflags, upflags


class Command(NamedTuple):
    """One command: its module in this package, a summary line, a paragraph, and the function that adds its flags."""

    module: str
    summary: str
    add_flags: Callable[[ArgumentParser], None]
    description: str = ""
    wrong_call: int = 2
    """The exit status of a wrong call."""


class Parser(ArgumentParser):
    """A parser whose errors are one line; the rest is in --help."""

    wrong_call = 2

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(self.wrong_call, f"{self.prog}: {message}; see --help\n")


def parser(name: str) -> ArgumentParser:
    """Return the parser of an existing command."""
    command = COMMANDS[name]
    text = command.description or f"{command.summary[0].upper()}{command.summary[1:]}."
    made = Parser(prog=f"clusterwright {name}", description=text, formatter_class=RawDescriptionHelpFormatter)
    made.wrong_call = command.wrong_call
    command.add_flags(made)
    return made


def parse(name: str, argv: Sequence[str]) -> Namespace:
    """Return the arguments of a command; end the program if they are invalid. `parser` and `argv` produced them."""
    made = parser(name)
    arguments = made.parse_args(list(argv))
    arguments.parser, arguments.argv = made, list(argv)
    return arguments


COMMANDS: dict[str, Command] = {
    "up": Command(
        "up", "start the management plane", upflags.add, "Start the management plane: API server, controllers, in-memory infrastructure."
    ),
    "manager": Command(
        "manager",
        "run the controllers on any Kubernetes",
        upflags.add_manager,
        "Run the controllers on an API server: the one that kubectl would use, or that of the cluster that this process runs in.",
    ),
    "install": Command(
        "install", "print or apply what a cluster needs to run us: CRDs, roles, Deployment, webhooks", toolflags.install_flags
    ),
    "adopt": Command(
        "adopt",
        "show what taking over a live installation would write, and which controllers run there",
        toolflags.adopt_flags,
        "Show what taking over a live Cluster API installation would write, by passes of our own controllers over its objects,\n"
        "which of its managers still run, and whose webhooks are in the way. Changes nothing. Exits 3 where something matters or\n"
        "is in the way.",
    ),
    "create": Command("create", "create a cluster of simulated machines or of containers, or print its manifests", flags.create_flags),
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
        flags.generate_flags,
        "Print the manifests of a cluster from a template as clusterctl has them: ${VAR}, ${VAR:=default} and their like.\n"
        "Values come from flags, --set and the environment, in this order.",
    ),
    "get": Command("get", "list objects of a kind, show some by name, or print a cluster's kubeconfig", flags.get_flags),
    "describe": Command("describe", "show a cluster as a tree with its conditions", flags.describe_flags),
    "explain": Command(
        "explain",
        "explain why an object is in its state, and who must act",
        flags.explain_flags,
        "Explain why an object is in its state: causes first, then the chain of effects, then the decisions.",
    ),
    "plan": Command(
        "plan",
        "show what a change will do before it is made",
        planflags.plan_flags,
        "Show what a change will do before it is made: the production controllers act on it in virtual time, on a replica of the\n"
        "objects. Nothing is written. Without a change: what the controllers of this version would do now. Exits 0 if there is nothing\n"
        "to do, 2 for changes, 3 if Machines are replaced, 1 if the change is refused or denied, or something failed.",
        wrong_call=1,
    ),
    "delete": Command("delete", "delete a cluster or another object and wait until it is gone", flags.delete_flags),
    "wait": Command("wait", "wait for a condition, creation or deletion", flags.wait_flags),
    "timeline": Command(
        "timeline", "show what happened to a cluster: verdicts, conditions, Events and decisions by time", flags.timeline_flags
    ),
    "web": Command(
        "web",
        "open the web view",
        flags.web_flags,
        "Print a link to the web view. A plane of `clusterwright up` serves the page itself. For any other installation of Cluster API\n"
        "the page is served here, at a port that only this machine reaches, and shows what the kubeconfig may read.",
    ),
    "mcp": Command(
        "mcp",
        "answer an assistant's questions about clusters (Model Context Protocol)",
        flags.mcp_flags,
        "Serve the Model Context Protocol on standard input and output: read-only tools that list clusters with verdicts, explain and\n"
        "describe them, and show what happened. Reads with the rights of the kubeconfig, on any Cluster API installation.",
    ),
    "fault": Command("fault", "inject faults into simulated machines, remove them, list them", flags.fault_flags),
    "incident": Command(
        "incident",
        "replay public incidents by number, with our controllers in virtual time",
        flags.incident_flags,
        "Replay public incidents of Cluster API and its providers by number, with the controllers of this version, in virtual time.\n"
        "No cluster is needed. Exits 3 where an incident does not end as it must.",
    ),
    "move": Command(
        "move",
        "move the clusters of a namespace into another management cluster",
        flags.move_flags,
        "Move the clusters of a namespace, with all that belongs to them, into another management cluster, as `clusterctl move` does.\n"
        "What fails before anything was deleted is undone.",
    ),
    "render": Command(
        "render",
        "print a machine's bootstrap data",
        flags.render_flags,
        "Print the bootstrap data of a KubeadmConfig: as stored, if its Secret is there, else as the next pass of the controller\n"
        "would write it. Nothing is changed. FILE holds the config, its Machine, its Cluster and their Secrets, as\n"
        "`kubectl get -o yaml` prints them.",
    ),
    "record": Command(
        "record",
        "write a bundle of a cluster's objects, secrets redacted",
        flags.record_flags,
        "Write a bundle of a cluster's objects and Events, and of its workload cluster; values of Secrets are left out.",
    ),
    "store": Command("store", "check, repair, back up or restore the data directory of a plane", toolflags.store_flags),
    "engine": Command("engine", "list or remove containers that planes have on a container engine", toolflags.engine_flags),
    "load": Command("load", "copy images from the container engine into the nodes of a cluster", toolflags.load_flags),
    "provider": Command(
        "provider",
        "run other people's providers as processes next to the plane: add, list, remove, logs; new: write a skeleton",
        providerflags.provider_flags,
        "Run other people's providers next to a plane of `clusterwright up`: `add` installs the objects of a provider's release, and\n"
        "makes the plane run its program with exactly the rights of its ServiceAccount. The plane starts it again after a crash, and\n"
        "after a restart of its own.",
    ),
    "conformance": Command(
        "conformance",
        "judge a running provider by the rules of the contract",
        toolflags.conformance_flags,
        "Judge a provider that runs against the API server of the kubeconfig, in any language: create, pause, change and delete objects\n"
        "of its kinds, and compare what happens with every rule of the contract. Exits 3 where a rule is broken.",
    ),
    "tables": Command("tables", "print the decision tables", toolflags.tables_flags, "Print the decision tables: every row by name."),
    "crds": Command("crds", "print the CustomResourceDefinitions", toolflags.crds_flags),
    "convert": Command(
        "convert",
        "print manifests in another version of our API groups",
        toolflags.convert_flags,
        "Print the documents of a file with all objects of Cluster API's groups in one version. Other documents, and patches inside\n"
        "ClusterClasses, stay as they are; comments are lost. Nothing is changed in a cluster.",
    ),
    "envtest": Command(
        "envtest",
        "write stand-ins for kube-apiserver and etcd, for test suites that use Go's envtest",
        toolflags.envtest_flags,
        "Write an etcd and a kube-apiserver that start our API server, and print their folder. A suite that uses controller-runtime's\n"
        "envtest runs on them: export KUBEBUILDER_ASSETS=$(clusterwright envtest)",
    ),
    "completion": Command("completion", "print the completion script of a shell", toolflags.completion_flags),
    "complete": Command("completion", "", toolflags.complete_flags, "Print completions of a command line, for shells."),
    "version": Command("version", "print the version", flags.version_flags),
}
"""All commands, in the order in which a newcomer needs them; those without a summary are hidden."""
