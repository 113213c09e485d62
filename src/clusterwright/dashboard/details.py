"""Everything about one object of a cluster: facts, labels, owners, Events, the last errors of its passes, and its YAML. Pure.

Secrets have no details. Values of other objects in which users write secrets are hidden, as `clusterwright record` hides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.yamlwriter import dump
from clusterwright.dashboard.views import UNSHOWN
from clusterwright.offline.ownership import name_of
from clusterwright.offline.record import redacted
from clusterwright.offline.timeline import timeline

MOST_TEXT: Final = 256 * 1024
"""The most characters of an object's YAML that are shown."""
MOST_EVENTS: Final = 100

FACTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Class", ("spec", "topology", "classRef", "name")),
    ("Version", ("spec", "version")),
    ("Version", ("spec", "topology", "version")),
    ("Node", ("status", "nodeRef", "name")),
    ("Provider ID", ("spec", "providerID")),
    ("Failure domain", ("spec", "failureDomain")),
    ("Failure domain", ("status", "failureDomain")),
    ("Endpoint", ("spec", "controlPlaneEndpoint")),
    ("Addresses", ("status", "addresses")),
    ("Bootstrap data", ("spec", "bootstrap", "dataSecretName")),
    ("Paused", ("spec", "paused")),
)
"""The facts of an object: their term, and the field with the value; the first field of a term that has one counts."""


def details(objects: Iterable[Json], events: Iterable[Json], name: str, errors: Sequence[Json]) -> Json | None:
    """Return the details of the object `Kind/namespace/name`, or None if it is not among the objects, or is a Secret.

    `errors` are the last errors of passes over the object.
    """
    found = next((o for o in map(Unstructured, objects) if name_of(o.kind, *o.key) == name), None)
    if found is None or found.kind in UNSHOWN:
        return None
    shown = Unstructured(redacted(found.json))
    metadata = shown.metadata
    text = dump(shown.json)
    about = [e for e in events if _involved(e) == name]
    return {
        "facts": [[term, value] for term, value in _facts(shown).items()],
        "labels": dict(metadata.labels),
        "annotations": dict(metadata.annotations),
        "finalizers": list(metadata.finalizers),
        "owners": [name_of(o.kind, shown.key.namespace, o.name) for o in metadata.owner_references],
        "events": [moment.to_json() for moment in reversed(timeline([], about)[-MOST_EVENTS:])],
        "errors": list(errors),
        "yaml": text[:MOST_TEXT],
        "isCut": len(text) > MOST_TEXT,
    }


def _facts(obj: Unstructured) -> dict[str, str]:
    facts: dict[str, str] = {}
    for term, path in FACTS:
        text = _text(obj.at(*path))
        if text:
            facts.setdefault(term, text)
    return facts


def _text(value: Any) -> str:
    """Return the text of a fact: an endpoint as host:port, addresses next to each other."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, Mapping):
        host, port = value.get("host"), value.get("port")
        return f"{host}:{port}" if host and port else ""
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(str(one["address"]) for one in value if isinstance(one, Mapping) and one.get("address")))
    return value if isinstance(value, str) else ""


def _involved(event: Json) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return name_of(str(about.get("kind")), str(about.get("namespace") or ""), str(about.get("name")))
