"""Whom the words of objects blame that is no object of the cluster: webhooks, runtime extensions and the hooks that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.conditions import get
from clusterwright.offline.complaints import Complaint, Tier, condition_path, since
from clusterwright.offline.nodes import Node
from clusterwright.offline.unreconciled import TOPOLOGY
from clusterwright.offline.unreported import Unreported

DOWN: Final = "webhook"
"""What a complaint about a webhook that nobody reaches is about."""
EXTENSION: Final = "extension"
"""What a complaint about a runtime extension that fails, or holds a Cluster, is about."""
ANNOTATION: Final = re.compile(r"\bannotations? ([a-z0-9./,_ -]+?) (?:is|are) set")
"""Annotations of a Cluster that hold its upgrade as an extension would."""
WEBHOOK: Final = re.compile(r'failed calling webhook "([^"]+)": (?:failed to call webhook: )?([^\n]*)')
HANDLER: Final = re.compile(r'extension handler "([^"]+)"(?:: ([^\n]*))?')
DEFERRED: Final = re.compile(r"^[* ]*+([^\n]*?) upgrade to version [^\n]*? deferred using ([^\n]+?) annotations$", re.MULTILINE)
"""Workers that somebody asked to leave where they are."""
_BLOCKING: Final = re.compile(r"[Ff]ollowing hooks are blocking [^:\n]+: ([^\n]+)")
_HOOK: Final = re.compile(r"(?:^|; )((?:Before|After)[A-Za-z]+)(?:: )?")
_UNREGISTERED: Final = "has not been registered"


def held_by(message: str) -> list[tuple[str, str]]:
    """Return the lifecycle hooks that hold a Cluster, each with what was said, by the message of its condition."""
    found = _BLOCKING.search(message)
    if found is None:
        return []
    parts = _HOOK.split(found[1])[1:]
    return [(hook, said.rstrip("; ")) for hook, said in zip(parts[::2], parts[1::2], strict=True)]


def config_of(handler: str) -> str:
    """Return the ExtensionConfig of a handler, `<handler>.<config>`."""
    return handler.partition(".")[2]


class WebhooksAndExtensions(Unreported):
    """Adds to the objects of a cluster those beside it that keep controllers from going on, as far as words name them."""

    def look_beside(self) -> None:
        """Follows the words of every complaint out of the cluster."""
        for node in [n for n in self.nodes.values() if n.object is not None and "#" not in n.id]:
            for complaint in list(node.complaints):
                self._blame_webhook(node, complaint)
                self._blame_extension(node, complaint)
        if self.cluster is not None and self.cluster.object is not None:
            self._blame_hooks(self.cluster)

    def _blame_webhook(self, node: Node, complaint: Complaint) -> None:
        found = WEBHOOK.search(complaint.raw)
        configuration = self._webhooks.get(found[1]) if found is not None else None
        if found is None or configuration is None:
            return
        text = f"the webhook {found[1]} cannot be asked, and nothing is written without it that it has to see: {found[2]}"
        self._add_beside(node, configuration, Complaint(Tier.ERROR, text, complaint.since, DOWN, path="webhooks"), "writes are refused")

    def _blame_extension(self, node: Node, complaint: Complaint) -> None:
        """An extension that failed; one that was never discovered says itself why."""
        found = HANDLER.search(complaint.raw)
        if found is None:
            return
        handler, said = found[1], found[2] or complaint.text
        config = self._extensions.get(config_of(handler))
        if config is not None:
            undiscovered = get(self._conditions(Node("", config.kind, "", "", config)), "Discovered")
            path, begun = "status.handlers", complaint.since
            if undiscovered is not None and undiscovered.status != "True" and _UNREGISTERED in said:
                said, path, begun = undiscovered.message, condition_path("Discovered"), since(undiscovered)
            elif undiscovered is None and _UNREGISTERED in said:
                text = "was never discovered: nothing has reconciled it"
                self._add_beside(
                    node, config, Complaint(Tier.UNRECONCILED, text, begun, EXTENSION, path="status"), "its handlers are asked"
                )
                return
            text = f"the handler {handler} fails for {node.kind} {node.name}: {said}"
            self._add_beside(node, config, Complaint(Tier.ERROR, text, begun, EXTENSION, path=path), "its handlers are asked")
        elif "ExtensionConfig" in self._seen:
            self._miss_extension(node, handler, complaint.since)

    def _miss_extension(self, node: Node, handler: str, begun: str) -> None:
        name = config_of(handler) or handler
        referrer, path = next(self._naming(handler), (node, "its messages"))
        missing = self.nodes.setdefault(f"ExtensionConfig/{name}", Node(f"ExtensionConfig/{name}", "ExtensionConfig", "", name))
        missing.referrers.append(referrer.id)
        text = f"does not exist, but {referrer.id} names its handler {handler} in {path}"
        missing.complaints.append(Complaint(Tier.MISSING, text, begun, path=path))
        node.because_of[missing.id] = "asks a handler of it"

    def _naming(self, handler: str) -> Iterator[tuple[Node, str]]:
        """Yield the ClusterClasses that name a handler, and where."""
        for node in self.nodes.values():
            if node.kind == "ClusterClass" and node.object is not None:
                yield from ((node, path) for path in _places(node.object.at("spec"), handler, "spec"))

    def _blame_hooks(self, cluster: Node) -> None:
        """Lifecycle hooks that hold the Cluster: an extension answers, or an annotation asks for it."""
        said = get(self._conditions(cluster), TOPOLOGY)
        if said is not None and said.reason.endswith("UpgradeDeferred") and (deferred := DEFERRED.search(said.message)):
            text = f"is held: {deferred[0].lstrip('* ')}"
            self._hold(cluster, Complaint(Tier.HELD, text, since(said), EXTENSION, path="spec.topology.workers"))
        for hook, message in held_by(said.message) if said is not None and said.status == "False" else ():
            annotated = ANNOTATION.search(message)
            about = f"{hook}: {message}" if message else f"{hook}, without a word why"
            configs = [c for c in self._extensions.values() if hook in _hooks(c) and _is_for(c, cluster.namespace)]
            if len(configs) == 1 and annotated is None:
                text = f"holds Cluster {cluster.name} with {about}"
                complaint = Complaint(Tier.HELD, text, since(said), EXTENSION, path="status.handlers")
                self._add_beside(cluster, configs[0], complaint, "it holds the Cluster")
                continue
            text = f"is held by {about}"
            path = f"metadata.annotations[{annotated[1]}]" if annotated is not None else condition_path(TOPOLOGY)
            self._hold(cluster, Complaint(Tier.HELD, text, since(said), EXTENSION, raw=text, path=path))

    @staticmethod
    def _hold(cluster: Node, complaint: Complaint) -> None:
        """Somebody holds the Cluster; what its condition says beside that is no more than a wait."""
        cluster.complaints = [replace(c, tier=max(c.tier, Tier.WAITING)) if c.about == TOPOLOGY else c for c in cluster.complaints]
        cluster.complaints.append(complaint)

    def _add_beside(self, node: Node, obj: Unstructured, complaint: Complaint, why: str) -> None:
        name = f"{obj.kind}/{obj.metadata.name}"
        found = self.nodes.setdefault(name, Node(name, obj.kind, "", obj.metadata.name, obj))
        found.complaints.append(complaint)
        node.because_of[found.id] = why


def _is_for(config: Unstructured, namespace: str) -> bool:
    """Return whether an extension looks after a namespace, as far as the namespace's name tells."""
    name_label = "kubernetes.io/metadata.name"
    labels = config.at("spec", "namespaceSelector", "matchLabels")
    return not (isinstance(labels, Mapping) and labels.get(name_label, namespace) != namespace)


def _hooks(config: Unstructured) -> set[str]:
    """Return the hooks that an extension handles."""
    handlers = config.at("status", "handlers")
    asked = [h.get("requestHook") for h in handlers if isinstance(h, Mapping)] if isinstance(handlers, list) else []
    return {str(a.get("hook")) for a in asked if isinstance(a, Mapping)}


def _places(value: Any, wanted: str, path: str) -> Iterator[str]:
    """Yield where a value is, below another."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, wanted, f"{path}.{key}")
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from _places(inner, wanted, f"{path}[{n}]")
    elif value == wanted:
        yield path
