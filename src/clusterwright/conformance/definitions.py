"""Checks of definitions: what a CustomResourceDefinition alone shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.api.contract import CONTRACT_VERSIONS, NoContract, Path, Resolved, crd_name, resolve_version
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import (
    AGGREGATE_TO_MANAGER_LABEL,
    BOOTSTRAP_GROUP,
    CONTROL_PLANE_GROUP,
    INFRASTRUCTURE_GROUP,
    PROVIDER_LABEL,
)
from clusterwright.conformance.evidence import Advice, Check, Evidence, Finding, NotSeen

_OUR_GROUPS: Final = frozenset({INFRASTRUCTURE_GROUP, BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP})
_VERBS: Final = frozenset({"get", "list", "watch", "create", "update", "patch", "delete"})
_LONGEST_NAME: Final = 63


def both(seen: Evidence) -> Iterator[tuple[str, Json]]:
    """Yield the definitions of the kind and of its template, with their kinds' names."""
    for crd in (seen.kind, seen.template):
        if crd is not None:
            yield crd["spec"]["names"]["kind"], crd


def resolved(crd: Json) -> Resolved | None:
    """Return the version of a definition that core controllers read, or None without contract."""
    try:
        return resolve_version(crd["metadata"])
    except NoContract:
        return None


def schema_of(crd: Json) -> Json:
    """Return the schema of the version that core controllers read; raises NotSeen."""
    found = resolved(crd)
    for version in crd["spec"]["versions"]:
        if found is not None and version["name"] == found.version:
            schema: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            return schema
    raise NotSeen("no served version of the definition has a contract label")


def scope(seen: Evidence) -> Iterator[Finding]:
    """Check that all resources are namespaced."""
    for kind, crd in both(seen):
        if crd["spec"]["scope"] != "Namespaced":
            yield f"{kind} has scope {crd['spec']['scope']}"


def metadata(seen: Evidence) -> Iterator[Finding]:
    """Check that objects have the standard metadata: names that core controllers generate fit."""
    for kind, crd in both(seen):
        schema = schema_of(crd)
        if schema.get("type", "object") != "object":
            yield f"{kind}: the schema is of type {schema['type']}"
        name = ((schema.get("properties") or {}).get("metadata") or {}).get("properties", {}).get("name", {})
        if name.get("maxLength", _LONGEST_NAME) < _LONGEST_NAME:
            yield f"{kind}: names of more than {name['maxLength']} characters are refused"
        if name.get("pattern"):
            yield Advice(f"{kind}: names must match {name['pattern']}, although core controllers choose them")


def versions(seen: Evidence) -> Iterator[Finding]:
    """Check that contract labels name served versions, and core controllers have permissions."""
    contracts = {}
    for kind, crd in both(seen):
        labels = crd["metadata"].get("labels") or {}
        found = resolved(crd)
        if found is None:
            yield f"{kind}: no label cluster.x-k8s.io/<contract> for {' or '.join(CONTRACT_VERSIONS)}"
            continue
        contracts[kind] = found.contract
        served = {version["name"] for version in crd["spec"]["versions"] if version.get("served")}
        for contract in CONTRACT_VERSIONS:
            named = [name for name in labels.get(f"cluster.x-k8s.io/{contract}", "").split("_") if name]
            for name in named:
                if name not in served:
                    yield f"{kind}: label cluster.x-k8s.io/{contract} names {name}, which is not served; {', '.join(sorted(served))} is"
        if crd["spec"]["group"] not in _OUR_GROUPS:
            missing = _VERBS - _granted(seen.cluster_roles, crd["spec"]["group"], crd["spec"]["names"]["plural"])
            if missing:
                yield f"{kind}: no ClusterRole with the label {AGGREGATE_TO_MANAGER_LABEL} grants {', '.join(sorted(missing))}"
    if len(set(contracts.values())) > 1:
        yield "the kinds keep different contracts: " + ", ".join(f"{kind} {contract}" for kind, contract in contracts.items())


def _granted(roles: Any, group: str, plural: str) -> set[str]:
    verbs: set[str] = set()
    for role in roles:
        if (role["metadata"].get("labels") or {}).get(AGGREGATE_TO_MANAGER_LABEL) != "true":
            continue
        for rule in role.get("rules") or ():
            if {group, "*"} & set(rule.get("apiGroups") or ()) and {plural, "*"} & set(rule.get("resources") or ()):
                verbs |= _VERBS if "*" in rule["verbs"] else set(rule["verbs"])
    return verbs


def resource(seen: Evidence) -> Iterator[Finding]:
    """Return what is wrong with names and the status subresource of the kind."""
    kind, crd = seen.kind["spec"]["names"]["kind"], seen.kind
    expected = crd_name(crd["spec"]["group"], kind)
    if crd["metadata"]["name"] != expected:
        yield f"the definition is named {crd['metadata']['name']}; core controllers look for {expected}"
    if crd["spec"]["names"].get("listKind", f"{kind}List") != f"{kind}List":
        yield f"the list kind is {crd['spec']['names']['listKind']}, not {kind}List"
    found = resolved(crd)
    for version in crd["spec"]["versions"]:
        if found is not None and version["name"] == found.version and "status" not in (version.get("subresources") or {}):
            yield f"version {found.version} has no status subresource"


def template(seen: Evidence) -> Iterator[Finding]:
    """Check that the template is named after the kind and has spec.template.metadata and spec.template.spec."""
    kind = seen.kind["spec"]["names"]["kind"]
    if seen.template is None:
        if seen.role in {"InfraCluster", "InfraMachinePool", "ControlPlane"}:
            raise NotSeen(f"there is no {kind}Template, so ClusterClasses cannot use the provider")
        yield f"there is no {kind}Template in {seen.kind['spec']['group']}"
        return
    names = seen.template["spec"]["names"]
    if names["kind"] != f"{kind}Template":
        yield f"the template's kind is {names['kind']}, not {kind}Template"
    if names.get("listKind", f"{names['kind']}List") != f"{names['kind']}List":
        yield f"the list kind is {names['listKind']}, not {names['kind']}List"
    expected = crd_name(seen.template["spec"]["group"], names["kind"])
    if seen.template["metadata"]["name"] != expected:
        yield f"the definition is named {seen.template['metadata']['name']}; core controllers look for {expected}"
    schema = schema_of(seen.template)
    for path, level in (("spec.template.spec", None), ("spec.template.metadata", Advice)):
        if lookup(schema, tuple(path.split("."))) is None:
            text = f"the schema has no {path}"
            yield text if level is None else level(f"{text}: labels and annotations of templates are lost")


def autoscaling(seen: Evidence) -> Iterator[Finding]:
    """Return what is wrong with status.capacity and status.nodeInfo of the template."""
    if seen.template is None:
        raise NotSeen("there is no template")
    schema = schema_of(seen.template)
    capacity, info = lookup(schema, ("status", "capacity")), lookup(schema, ("status", "nodeInfo"))
    if _is_open(capacity) and _is_open(info):
        raise NotSeen("the template has no status.capacity: node groups of this provider are not scaled up from zero")
    for path, found in (("status.capacity", capacity), ("status.nodeInfo", info)):
        if found and found.get("type", "object") != "object":
            yield f"{path} of the template is of type {found['type']}; an object is expected"


def clusterctl(seen: Evidence) -> Iterator[Finding]:
    """Check that definitions have the provider label that clusterctl sets."""
    for kind, crd in both(seen):
        if PROVIDER_LABEL not in (crd["metadata"].get("labels") or {}):
            yield Advice(f"{kind}: no label {PROVIDER_LABEL}; `clusterctl init` adds it, other installers do not")


def invisible(what: str) -> Check:
    """Return a check of a rule that no API shows."""

    def check(seen: Evidence) -> Iterator[Finding]:
        raise NotSeen(what)

    return check


FREE: Final[Json] = {}
"""The schema of a field that may hold anything."""


def lookup(schema: Mapping[str, Any], steps: tuple[str, ...]) -> Json | None:
    """Return the schema of a field: FREE if everything is preserved there; None if the API server would drop the field."""
    found: Mapping[str, Any] = schema
    for step in steps:
        properties = found.get("properties") or {}
        if step in properties:
            found = properties[step]
        elif found.get("x-kubernetes-preserve-unknown-fields"):
            return FREE
        elif isinstance(found.get("additionalProperties"), Mapping):
            found = found["additionalProperties"]
        else:
            return None
    return dict(found)


def _is_open(schema: Json | None) -> bool:
    return not schema


def field(seen: Evidence, path: Path[Any], kinds: tuple[str, ...], *, needed: bool, items: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Check the schema of a contract field: it is kept, and of a type that the contract allows. `items`: the types of elements."""
    found = lookup(schema_of(seen.kind), path.steps)
    if found is None:
        if needed:
            yield f"the schema has no {path}: the API server drops it"
        return
    if "type" in found and found["type"] not in kinds:
        yield f"the schema of {path} is of type {found['type']}; {' or '.join(kinds)} is expected"
    elif items and (element := found.get("items") or found.get("additionalProperties")) and element.get("type", items[0]) not in items:
        yield f"the elements of {path} are of type {element['type']}; {' or '.join(items)} is expected"
