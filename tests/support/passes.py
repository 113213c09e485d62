"""One pass of a controller, as `clusterwright.decide` answers it; and the definitions that its world needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


def crd(kind: str, group: str, plural: str = "", labels: Json | None = None) -> Json:
    """The definition of a provider's kind; anything may be in its objects."""
    name = f"{plural or kind.lower() + 's'}.{group}"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"} if labels is None else labels},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": name.partition(".")[0], "singular": kind.lower(), "listKind": kind + "List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == "v1beta2",
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
                for version in ("v1beta2", "v1")
            ],
        },
    }


@dataclass
class Answer:
    """What one pass did, as `decide` answers it."""

    json: Json

    @property
    def object(self) -> Json:
        return self.json["object"] or {}

    @property
    def status(self) -> Json:
        status: Json = self.object.get("status", {})
        return status

    @property
    def metadata(self) -> Json:
        metadata: Json = self.object.get("metadata", {})
        return metadata

    def condition(self, type: str) -> tuple[str, str, str] | None:
        return _condition(self.status, type)

    def of(self, machine: str, type: str) -> tuple[str, str, str] | None:
        """A condition of a Machine that the pass wrote; None if it wrote none."""
        return _condition(self.other(f"Machine/{machine}").get("status", {}), type)

    def v1beta1(self, type: str) -> tuple[str, str, str] | None:
        items = self.status.get("deprecated", {}).get("v1beta1", {}).get("conditions", ())
        found = [c for c in items if c["type"] == type]
        return (found[0]["status"], found[0].get("severity", ""), found[0].get("reason", "")) if found else None

    @property
    def error(self) -> str:
        return self.json["error"] or ""

    @property
    def requeue(self) -> float | None:
        return self.json["requeueAfterSeconds"]

    @property
    def actions(self) -> set[tuple[str, str, str]]:
        return {(a["verb"], a["kind"], a["name"]) for a in self.json["actions"]}

    def other(self, name: str) -> Json:
        found: Json = self.json["others"].get(name) or {}
        return found


def _condition(status: Json, type: str) -> tuple[str, str, str] | None:
    found = [c for c in status.get("conditions", ()) if c["type"] == type]
    return (found[0]["status"], found[0]["reason"], found[0].get("message", "")) if found else None
