"""The schemas of our CRDs equal upstream's v1.14, field by field and in every version, but for the differences listed here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clusterwright.api.crds import crds

UPSTREAM = json.loads(gzip.decompress((Path(__file__).parent / "data" / "v1.14-schemas.json.gz").read_bytes()))
TEXTS = frozenset({"description", "message"})
_PINNING = "worker version pinning, merged upstream as a proposal; refused unless the feature gate is on"
DIFFERENCES = {
    ("clusters", "v1beta1", "spec.topology.workers.machineDeployments.version"): _PINNING,
    ("clusters", "v1beta1", "spec.topology.workers.machinePools.version"): _PINNING,
    ("clusters", "v1beta2", "spec.topology.workers.machineDeployments.version"): _PINNING,
    ("clusters", "v1beta2", "spec.topology.workers.machinePools.version"): _PINNING,
    ("devmachinepools", "v1beta2", "spec.backend.inMemory"): "our pools can be simulated; upstream's cannot",
    ("devmachinepooltemplates", "v1beta2", "spec.template.spec.backend.inMemory"): "our pools can be simulated; upstream's cannot",
}


def differences(ours: Any, theirs: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key in TEXTS and isinstance(ours.get(key, theirs.get(key)), str):
                continue
            inner = path if key in {"properties", "items"} else (*path, key)
            if key not in ours or key not in theirs:
                yield ".".join(inner)
            else:
                yield from differences(ours[key], theirs[key], inner)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        alike = all(isinstance(item, str) for item in (*ours, *theirs))
        pairs = zip(sorted(ours), sorted(theirs), strict=True) if alike else zip(ours, theirs, strict=True)
        for one, other in pairs:
            yield from differences(one, other, path)
    elif ours != theirs:
        yield ".".join(path)


def found() -> Iterator[tuple[str, str, str]]:
    ours = {crd["metadata"]["name"]: {v["name"]: v for v in crd["spec"]["versions"]} for crd in crds()}
    for name, definition in UPSTREAM.items():
        for version in definition["versions"]:
            schema = version["schema"].get("openAPIV3Schema", version["schema"])
            for path in differences(ours[name][version["name"]]["schema"]["openAPIV3Schema"], schema):
                yield name.partition(".")[0], version["name"], path


def test_our_schemas_differ_from_upstream_only_where_a_reason_is_given() -> None:
    assert set(found()) == set(DIFFERENCES)


def test_a_difference_is_seen() -> None:
    assert list(differences({"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}}})) == ["a.type"]
    assert list(differences({"properties": {}}, {"properties": {"a": {}}})) == ["a"]
