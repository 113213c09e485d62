"""Read refusals by Cluster API's own admission webhooks: the object, its field, the reason, and the field that a user writes. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_REFUSED: Final = re.compile(
    r'admission webhook "validation\.\w+\.(?:\w+\.)?cluster\.x-k8s\.io" denied the request: '
    r'(?P<kind>[A-Z]\w+)\S* "(?P<name>[^"]+)" is invalid: \[?(?P<reason>(?P<field>[^\s:]+): [^\n]+)'
)
_IN_TOPOLOGY: Final = {
    ("KubeadmControlPlane", "spec.replicas"): "spec.topology.controlPlane.replicas",
    ("KubeadmControlPlane", "spec.version"): "spec.topology.version",
    ("MachineDeployment", "spec.template.spec.version"): "spec.topology.version",
}
"""The field of the Cluster that sets a field of an object which a topology manages."""


class Refusal(NamedTuple):
    """A write that a rule of Cluster API forbids: the object that was to be written, and why."""

    kind: str
    name: str
    field: str
    reason: str

    @property
    def in_topology(self) -> str:
        """The field of a Cluster that leads to the refused one; a general name if no single field does."""
        return _IN_TOPOLOGY.get((self.kind, self.field), "spec.topology, or its ClusterClass")


def refusal(text: str) -> Refusal | None:
    """Return the refusal that a text reports, or None. Webhooks of others answer in their own words, which are not read."""
    found = _REFUSED.search(text)
    return Refusal(found["kind"], found["name"], found["field"], found["reason"].rstrip("]")) if found is not None else None
