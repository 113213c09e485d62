"""Find runtime extensions that fail or hold a Cluster, and annotations that hold its upgrade as an extension would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.conditions import InvalidConditions, conditions_of, get
from clusterwright.offline.complaints import Complaint, Tier, condition_path, since, with_cause
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of
from clusterwright.offline.unreconciled import TOPOLOGY

_ANNOTATION: Final = re.compile(r"\bannotations? ([a-z0-9./,_ -]+?) (?:is|are) set")
"""Example: `annotations before-upgrade.hook.cluster.cluster.x-k8s.io/x are set`."""
_HANDLER: Final = 'extension handler "'
_BLOCKING: Final = "ollowing hooks are blocking "
_STAGES: Final = ("Before", "After")
_UNREGISTERED: Final = "has not been registered"
_DISCOVERED: Final = "Discovered"


def held_by(message: str) -> list[tuple[str, str]]:
    """Return the lifecycle hooks that hold a Cluster, with the text for each, from the message of its condition.

    Example: `Following hooks are blocking upgrade: BeforeClusterUpgrade: not yet; AfterControlPlaneUpgrade: soon`.
    """
    listed = message.partition(_BLOCKING)[2].partition("\n")[0].partition(": ")[2]
    found: list[tuple[str, str]] = []
    for part in listed.split("; ") if listed else ():
        hook, _, said = part.partition(": ")
        if hook.startswith(_STAGES) and hook.isalpha():
            found.append((hook, said))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}; {part}")
    return [(hook, said.rstrip("; ")) for hook, said in found]


def handlers(text: str) -> list[tuple[str, str]]:
    """Return the extension handlers that a text names, each with what follows on its line.

    Example: `failed to call extension handler "generate.ext": connection refused`.
    """
    found = []
    for part in text.split(_HANDLER)[1:]:
        name, _, rest = part.partition('"')
        found.append((name, rest.partition("\n")[0].removeprefix(": ") if rest.startswith(": ") else ""))
    return found


def deferred(text: str) -> tuple[str, str, str] | None:
    """Return the workers whose upgrade is deferred, the annotations that ask for it, and the whole line.

    Example: `* MachineDeployment md-0 upgrade to version v1.35.0 deferred using defer-upgrade annotations`.
    """
    for line in text.splitlines():
        workers, upgrade, rest = line.lstrip("* ").partition(" upgrade to version ")
        annotations = rest.partition(" deferred using ")[2]
        if upgrade and annotations.endswith(" annotations"):
            return workers, annotations.removesuffix(" annotations"), line.lstrip("* ")
    return None


def config_of(handler: str) -> str:
    """Return the ExtensionConfig of a handler, `<handler>.<config>`."""
    return handler.partition(".")[2]


def extensions(known: Known) -> Iterator[Found]:
    """Yield the extensions that complaints name, those that hold the Cluster, and updates in place that fail."""
    for name, complaint in known.everything_told():
        found = next(iter(handlers(complaint.raw)), None)
        if complaint.about == "Updating" and "InPlaceUpdateFailed" in complaint.raw:
            yield _of_update(known, name, complaint)
        elif found is not None:
            yield _failing(known, name, complaint, found[0], found[1] or complaint.text)
    if known.cluster is not None:
        yield from _holding(known, known.cluster)


def _of_update(known: Known, name: str, complaint: Complaint) -> Found:
    said = complaint.raw.partition(" ")[2]
    facts = {"machine": name.rpartition("/")[2], "namespace": known.objects[name].key.namespace, "said": said.partition("\n")[0]}
    return Found(object=name, complaint=with_cause(complaint, "extension.update", facts, tier=Tier.ERROR), replaces=complaint)


def _failing(known: Known, name: str, complaint: Complaint, handler: str, said: str) -> Found:
    """Return the extension that failed. One that was never discovered reports the reason itself."""
    config = known.extensions.get(config_of(handler))
    about = f"{name.partition('/')[0]} {name.rpartition('/')[2]}"
    if config is None:
        return _missing(known, name, complaint, handler) if "ExtensionConfig" in known.seen else _unknown(name, complaint, handler, said)
    try:
        undiscovered = get(conditions_of(config), _DISCOVERED)
    except InvalidConditions:
        undiscovered = None
    if undiscovered is None and _UNREGISTERED in said:
        text = "was never discovered: nothing has reconciled it"
        facts = {"name": config.metadata.name}
        told = Complaint(Tier.UNRECONCILED, text, complaint.since, path="status", cause="extension.undiscovered", facts=facts)
        return _outside(config, told, name, "its handlers are asked")
    path, begun = "status.handlers", complaint.since
    if undiscovered is not None and undiscovered.status != "True":
        path, begun = condition_path(_DISCOVERED), since(undiscovered)
        said = undiscovered.message if _UNREGISTERED in said else said
    text = f"the handler {handler} fails for {about}: {said}"
    told = Complaint(Tier.ERROR, text, begun, path=path, cause=_cause(said), facts=_facts(config.metadata.name, said))
    return _outside(config, told, name, "its handlers are asked")


def _unknown(name: str, complaint: Complaint, handler: str, said: str) -> Found:
    facts = _facts(config_of(handler) or handler, said)
    return Found(object=name, complaint=with_cause(complaint, _cause(said), facts, secondary=complaint.secondary), replaces=complaint)


def _cause(said: str) -> str:
    return "extension.certificate" if "x509" in said else "extension.fails"


def _facts(name: str, said: str) -> dict[str, str]:
    return {"name": name, "extension": f"the runtime extension {name}", "said": said.partition("\n")[0]}


def _missing(known: Known, name: str, complaint: Complaint, handler: str) -> Found:
    config = config_of(handler) or handler
    author, path = next(_naming(known, handler), (name, ""))
    text = f"does not exist, but {author} names its handler {handler}{f' in {path}' if path else ''}"
    obj = known.objects.get(author)
    facts = {"name": config, "author": author.replace("/", " ", 1), "where": f" in {path}" if path else ""}
    facts |= {"resource": f"{author.partition('/')[0].lower()}/{author.rpartition('/')[2]}", "namespace": obj.key.namespace if obj else ""}
    told = Complaint(Tier.MISSING, text, complaint.since, path=path, cause="extension.missing", facts=facts)
    return Found(object=f"ExtensionConfig/{config}", complaint=told, explains={name: "asks a handler of it"})


def _naming(known: Known, handler: str) -> Iterator[tuple[str, str]]:
    """Yield the ClusterClasses that name a handler, with the path of each mention."""
    for name, obj in known.of_kind("ClusterClass"):
        yield from ((name, path) for path in _places(obj.at("spec"), handler, "spec"))


def _holding(known: Known, cluster: Unstructured) -> Iterator[Found]:
    """Yield the lifecycle hooks that hold the Cluster: an extension or an annotation asks for it."""
    name = name_of(cluster.kind, *cluster.key)
    said = known.said(name, TOPOLOGY)
    if said is None:
        return
    more = {"namespace": cluster.key.namespace, "cluster": cluster.key.name}
    if said.reason.endswith("UpgradeDeferred") and (held := deferred(said.message)):
        facts = {**more, "workers": held[0], "annotations": held[1]}
        text = f"is held: {held[2]}"
        told = Complaint(Tier.HELD, text, since(said), path="spec.topology.workers", cause="hold.deferred", facts=facts)
        yield from _hold(known, name, told)
    for hook, message in held_by(said.message) if said.status == "False" else ():
        annotated = _ANNOTATION.search(message)
        about = f"{hook}: {message}" if message else f"{hook}, without a word why"
        configs = [c for c in known.extensions.values() if hook in _hooks(c) and _is_for(c, cluster.key.namespace)]
        if len(configs) == 1 and annotated is None:
            text, facts = f"holds Cluster {cluster.key.name} with {about}", _facts(configs[0].metadata.name, about)
            told = Complaint(Tier.HELD, text, since(said), path="status.handlers", cause="extension.holds", facts=facts)
            yield _outside(configs[0], told, name, "it holds the Cluster")
        elif annotated is not None:
            names = [one.strip() for one in annotated[1].split(",")]
            facts = {**more, "names": ", ".join(names), "flags": " ".join(f"{one}-" for one in names)}
            path = f"metadata.annotations[{annotated[1]}]"
            text = f"is held by {about}"
            yield from _hold(
                known, name, Complaint(Tier.HELD, text, since(said), raw=text, path=path, cause="hold.annotation", facts=facts)
            )
        else:
            named = handlers(message)
            facts = _facts(config_of(named[0][0]) if named else "", about)
            facts |= {} if named else {"extension": "the runtime extensions that handle this hook"}
            text = f"is held by {about}"
            path = condition_path(TOPOLOGY)
            yield from _hold(
                known, name, Complaint(Tier.HELD, text, since(said), raw=text, path=path, cause="extension.holds", facts=facts)
            )


def _hold(known: Known, name: str, complaint: Complaint) -> Iterator[Found]:
    """Mark the Cluster as held, and lower the rest of its condition to a wait."""
    for own in known.complaints.get(name, ()):
        if own.about == TOPOLOGY:
            yield Found(object=name, complaint=replace(own, tier=max(own.tier, Tier.WAITING)), replaces=own)
    yield Found(object=name, complaint=complaint)


def _outside(config: Unstructured, complaint: Complaint, name: str, why: str) -> Found:
    return Found(object=f"ExtensionConfig/{config.metadata.name}", complaint=complaint, explains={name: why}, definition=config)


def _is_for(config: Unstructured, namespace: str) -> bool:
    """Return whether an extension may select a namespace: only the namespace's name is known, not its labels."""
    name_label = "kubernetes.io/metadata.name"
    labels = config.at("spec", "namespaceSelector", "matchLabels")
    return not (isinstance(labels, Mapping) and labels.get(name_label, namespace) != namespace)


def _hooks(config: Unstructured) -> set[str]:
    """Return the hooks that an extension handles."""
    handlers = config.at("status", "handlers")
    asked = [h.get("requestHook") for h in handlers if isinstance(h, Mapping)] if isinstance(handlers, list) else []
    return {str(a.get("hook")) for a in asked if isinstance(a, Mapping)}


def _places(value: Any, wanted: str, path: str) -> Iterator[str]:
    """Yield the paths below a value at which another value is found."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _places(inner, wanted, f"{path}.{key}")
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from _places(inner, wanted, f"{path}[{n}]")
    elif value == wanted:
        yield path
