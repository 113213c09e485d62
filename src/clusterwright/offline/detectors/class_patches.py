"""Find the patch of a ClusterClass that produces an object which admission refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.meta import Condition
from clusterwright.offline.complaints import Complaint, Tier, since
from clusterwright.offline.known import Found, Known

_REFUSED: Final = re.compile(
    r"failed to (?:create|patch|update) (\w+)[^:]*:.*?(spec(?:\.\w+)+): (?:Unsupported|Invalid|Forbidden|Required)", re.DOTALL
)
"""Example: `failed to create KubeadmControlPlane...: spec.kubeadmConfigSpec.format: Unsupported value: "talos"`."""


_VARIABLES: Final = "spec.topology.variables"


def class_patches(known: Known) -> Iterator[Found]:
    """Yield the ClusterClass whose patch sets the field that is refused."""
    cluster = known.cluster
    name = f"Cluster/{cluster.key}" if cluster is not None else ""
    said = known.said(name, "TopologyReconciled")
    if said is None or said.status != "False":
        return
    yield from _without_value(known, name, said)
    if cluster is not None and _VARIABLES in said.message and "extension handler" not in said.message:
        facts = {
            "cluster": cluster.key.name,
            "namespace": cluster.key.namespace,
            "said": said.message.partition(f"{_VARIABLES}")[2].lstrip(": "),
        }
        text = f"TopologyReconciled=False: {said.message}"
        yield Found(
            object=name,
            complaint=Complaint(Tier.ERROR, text, since(said), path=_VARIABLES, cause="class.variable", facts=facts),
            is_all=True,
        )
    found = _REFUSED.search(said.message)
    if found is None:
        return
    field = found[2].replace(".", "/")
    for class_name, obj in known.of_kind("ClusterClass"):
        for n, patch in enumerate(_list(obj.at("spec", "patches"))):
            paths = [str(p.get("path")) for d in _list(patch.get("definitions")) for p in _list(d.get("jsonPatches"))]
            if not any(f"/{field}".endswith(path.removeprefix("/spec/template")) for path in paths):
                continue
            facts = {"namespace": obj.key.namespace, "name": obj.key.name, "patch": str(patch.get("name")), "kind": found[1]}
            text = f"cannot be applied to {name}, by its patch {patch.get('name')}: {said.message}"
            path = f"spec.patches[{n}]"
            complaint = Complaint(Tier.ERROR, text, path=path, cause="class.patch", facts=facts)
            yield Found(object=class_name, complaint=complaint, explains={name: "its patches come from there"}, is_all=True)
            return


def _without_value(known: Known, name: str, said: Condition) -> Iterator[Found]:
    """Yield the ClusterClass with a patch whose value cannot be found or computed."""
    for class_name, obj in known.of_kind("ClusterClass"):
        for n, patch in enumerate(_list(obj.at("spec", "patches"))):
            own = f'patch "{patch.get("name")}": '
            if own not in said.message or patch.get("external"):
                continue
            facts = {"namespace": obj.key.namespace, "name": obj.key.name, "patch": str(patch.get("name"))}
            facts |= {"said": said.message.partition(own)[2].partition("\n")[0], "cluster": name.rpartition("/")[2]}
            text = f"cannot be applied to {name}: {said.message}"
            complaint = Complaint(Tier.ERROR, text, since(said), path=f"spec.patches[{n}]", cause="class.value", facts=facts)
            yield Found(object=class_name, complaint=complaint, explains={name: "its patches come from there"}, is_all=True)


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
