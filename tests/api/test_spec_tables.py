"""The field tables of the API reference, row by row, against the generated CRDs and the models.

The reference is copied into data/, with the fields that v1.14 added. Every row must be found with its type, requiredness, constraints and
presence class, and nothing may be in a CRD that no row names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest

from clusterwright.api.codec import field_hints, to_json, without_metadata
from clusterwright.api.crds import crds, embedded_crds
from clusterwright.api.scheme import CUSTOM

SENTENCE = re.compile(r"[A-Z`]\S*( \S+)+\.|The \S+\.")
"""A text for readers of `kubectl explain`: it begins with a capital letter, and ends with a full stop."""

DATA = Path(__file__).parent / "data"

CEL_MESSAGES = {
    "CEL-1": "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated",
    "CEL-2": "entries in machines must be unique",
    "CEL-3": "entries in pods must be unique",
    "CEL-4": "extraArgs name must be unique",
    "CEL-5": "kubeletExtraArgs name must be unique",
    "CEL-6": "exactly one of the fields in [layout diskLayout] must be set",
    "CEL-7": "partitionType must be one of Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or a full GPT partition GUID",
}
SCALARS: Mapping[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "time": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "any": {},
    "int-or-string": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
}
KEYWORDS = frozenset(
    [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "pattern",
        "enum",
        "default",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
        "type",
        "format",
        "anyOf",
        "x-kubernetes-int-or-string",
        "nullable",
        "oneOf",
        "allOf",
        "not",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "uniqueItems",
        "x-kubernetes-embedded-resource",
    ]
)


@dataclass(frozen=True)
class Row:
    path: str
    type: str
    required: bool
    ser: str
    constraints: str


@dataclass(frozen=True)
class Table:
    heading: str
    object_constraints: str
    bullets: tuple[str, ...]
    rows: tuple[Row, ...]


def parse(text: str) -> Iterator[Table]:
    """The tables whose header starts with `path`, each with the heading above it."""
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
        lines = section.splitlines()
        rows = []
        inside = False
        for line in lines[1:]:
            if line.startswith("| path | type | req | ser |"):
                inside = True
            elif not line.startswith("|"):
                inside = False
            elif inside and not line.startswith("|---"):
                path, type_, req, ser, constraints, _ = (cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])
                rows.append(Row(path, type_, req == "R", ser, constraints))
        if rows:
            heading, _, constraints = lines[0].partition(" — object constraints: ")
            yield Table(heading.strip(), constraints.strip(), tuple(line for line in lines if line.startswith("* ")), tuple(rows))


@functools.cache
def tables() -> dict[str, Table]:
    found = {}
    for name in ("api-core.md", "api-kubeadm.md"):
        for table in parse((DATA / name).read_text()):
            found[table.heading] = table
    return found


@functools.cache
def patterns() -> dict[str, str]:
    text = (DATA / "api-core.md").read_text()
    rows = re.findall(r"^\| `~(\w+)` \| `(.+?)`(?: \(.*)? \|$", text, flags=re.MULTILINE)
    return {name: regex.replace("\\|", "|") for name, regex in rows}


KINDS = {match.group(1): heading for heading in tables() if (match := re.match(r"[34]\.\d+ (\w+)$", heading))}
CRDS = {crd["spec"]["names"]["kind"]: crd for crd in crds()}
MODELS = {resource.kind: resource.model for resource in CUSTOM}


def schema_of(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def expected_constraints(text: str) -> tuple[dict[str, Any], str]:
    """Keywords of the constraints column, and what it says of items."""
    own, _, each = text.partition("each: ")
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in own.split(";"))):
        name, _, rest = part.partition(" ")
        bounds = {"len": "Length", "items": "Items", "props": "Properties", "range": ""}
        if name in bounds:
            low, _, high = rest.partition("..")
            low_key, high_key = (f"min{bounds[name]}", f"max{bounds[name]}") if name != "range" else ("minimum", "maximum")
            if low:
                found[low_key] = int(low)
            if high:
                found[high_key] = int(high)
        elif name == "enum":
            found["enum"] = [value.strip() for value in rest.strip("{}").split(",")]
        elif name == "default":
            found["default"] = msgspec.json.decode(rest.encode())
        elif part == "atomic":
            found["x-kubernetes-list-type"] = "atomic"
        elif part == "mapType=atomic":
            found["x-kubernetes-map-type"] = "atomic"
        elif part == "preserveUnknown":
            found["x-kubernetes-preserve-unknown-fields"] = True
        elif part.startswith("listmap("):
            found["x-kubernetes-list-type"] = "map"
            found["x-kubernetes-list-map-keys"] = part[len("listmap(") : -1].split(",")
        elif part.startswith("~"):
            found["pattern"] = patterns()[part[1:]]
        elif part in CEL_MESSAGES:
            found["x-kubernetes-validations"] = [CEL_MESSAGES[part]]
        else:
            pytest.fail(f"the table has a constraint that this test does not know: {part}")
    return found, each


def actual_constraints(node: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in node.items() if key in KEYWORDS}
    if "x-kubernetes-validations" in found:
        found["x-kubernetes-validations"] = [rule["message"] for rule in found["x-kubernetes-validations"]]
    return found


def split_type(type_: str) -> tuple[str, str]:
    """`[]T` -> (list, T), `map<string,T>` -> (map, T), T -> ("", T)."""
    if type_.startswith("[]"):
        return "list", type_[2:]
    if type_.startswith("map<string,"):
        return "map", type_[len("map<string,") : -1]
    return "", type_


def compare(node: Mapping[str, Any], type_: str, constraints: str, where: str, problems: list[str]) -> None:
    """One schema node against the type and constraints of its row."""
    shape, inner = split_type(type_)
    own, each = expected_constraints(constraints)
    if shape == "list":
        own["type"] = "array"
    elif shape == "map" or inner not in SCALARS:
        own["type"] = "object"
    else:
        own |= SCALARS[inner]
    if not shape and inner in tables() and tables()[inner].object_constraints:
        own |= expected_constraints(tables()[inner].object_constraints)[0]
    if own != actual_constraints(node):
        problems.append(f"{where}: expected {own}, found {actual_constraints(node)}")
    if shape:
        child = node.get("items" if shape == "list" else "additionalProperties")
        if not isinstance(child, dict):
            problems.append(f"{where}: no schema of its items")
        else:
            compare(child, inner, each, f"{where}[]", problems)


@dataclass(frozen=True)
class Field:
    """A row together with the place it describes: schema node, model that owns the field, and its wire name."""

    row: Row
    where: str
    parent: Mapping[str, Any]
    owner: type[msgspec.Struct]
    name: str


def children(rows: tuple[Row, ...], prefix: str) -> tuple[Row, ...]:
    """The rows below `prefix`, relative to it."""
    return tuple(
        Row(row.path[len(prefix) :], row.type, row.required, row.ser, row.constraints) for row in rows if row.path.startswith(prefix)
    )


def walk(schema: Mapping[str, Any], model: type[msgspec.Struct], rows: tuple[Row, ...], where: str, problems: list[str]) -> Iterator[Field]:
    """Every field of an object, deep, with the row that describes it."""
    direct = {row.path: row for row in rows if "." not in row.path and not row.path.endswith("[]")}
    properties = schema.get("properties", {})
    ignored = {"apiVersion", "kind", "metadata"} if "." not in where else set()
    problems.extend(f"{where}.{name}: in the CRD, not in the table" for name in sorted(properties.keys() - direct.keys() - ignored))
    fields = {field.encode_name: field for field in msgspec.structs.fields(model)}
    for name, row in direct.items():
        place = f"{where}.{name}"
        if name not in properties:
            problems.append(f"{place}: not in the CRD")
            continue
        if name not in fields:
            problems.append(f"{place}: not in the model")
            continue
        yield Field(row, place, schema, model, name)
        node, type_, prefix = properties[name], row.type, name
        inner_model = without_metadata(field_hints(model)[fields[name].name])
        while (shape := split_type(type_))[0]:
            node = node["items" if shape[0] == "list" else "additionalProperties"]
            inner_model = without_metadata(get_args(inner_model)[0 if get_origin(inner_model) is tuple else 1])
            prefix += "[]" if shape[0] == "list" else ""
            type_ = shape[1]
        if type_ in SCALARS:
            continue
        below = tables()[type_].rows if type_ in tables() else children(rows, f"{prefix}.")
        yield from walk(node, inner_model, below, prefix if not where else f"{where}.{prefix}", problems)


def fields_of(kind: str, problems: list[str]) -> Iterator[Field]:
    yield from walk(schema_of(kind), MODELS[kind], tables()[KINDS[kind]].rows, kind, problems)


def test_the_reference_has_the_tables_that_are_checked() -> None:
    assert len(KINDS) == 17
    assert len(tables()) == 75
    assert sum(len(table.rows) for table in tables().values()) == 799
    assert len(patterns()) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_in_the_crd_with_type_requiredness_and_constraints(kind: str) -> None:
    problems: list[str] = []
    count = 0
    for field in fields_of(kind, problems):
        count += 1
        compare(field.parent["properties"][field.name], field.row.type, field.row.constraints, field.where, problems)
        if field.row.required != (field.name in field.parent.get("required", ())):
            problems.append(f"{field.where}: required is {not field.row.required}, expected {field.row.required}")
    assert not problems, "\n".join(problems)
    assert count >= 8


def zero_of(type_: str, hint: Any) -> Any:
    shape, inner = split_type(type_)
    if shape:
        return () if shape == "list" else {}
    scalars = {"string": "", "bool": False, "int32": 0, "int64": 0, "bytes": b"", "int-or-string": 0}
    return scalars[inner] if inner in scalars else without_metadata(hint)()


def written(field: Field, value: Any) -> bool:
    """Whether the codec writes the field when it has this value."""
    attribute = next(f.name for f in msgspec.structs.fields(field.owner) if f.encode_name == field.name)
    return field.name in to_json(field.owner(**{attribute: value}))


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_its_presence_class(kind: str) -> None:
    problems: list[str] = []
    for field in fields_of(kind, problems):
        attribute = next(f.name for f in msgspec.structs.fields(field.owner) if f.encode_name == field.name)
        hint = field_hints(field.owner)[attribute]
        default = getattr(field.owner(), attribute)
        by_default = field.name in to_json(field.owner())
        if field.row.type == "any":
            ok = default is None and not by_default and written(field, {"a": None})
        elif field.row.type == "time":
            ok = default is None and not by_default and written(field, datetime(2020, 1, 1, tzinfo=UTC))
        elif field.row.ser == "P":
            ok = default is None and not by_default and written(field, zero_of(field.row.type, hint))
        elif field.row.ser == "A":
            ok = by_default and written(field, zero_of(field.row.type, hint))
        else:
            ok = not by_default and not written(field, zero_of(field.row.type, hint))
        if not ok:
            problems.append(f"{field.where}: not of class {field.row.ser} (default {default!r})")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("kind", KINDS)
def test_the_heading_of_a_kind_is_in_its_crd(kind: str) -> None:
    names, versions, columns, *_ = tables()[KINDS[kind]].bullets
    crd = CRDS[kind]
    spec, version = crd["spec"], crd["spec"]["versions"][0]
    quoted = re.findall(r"`([^`]+)`", names)
    short = re.findall(r"`([^`]+)`", names.split("short names")[1].split("categories")[0])
    assert quoted[:4] == [spec["group"], spec["names"]["plural"], spec["names"]["singular"], spec["names"]["listKind"]]
    assert short == spec["names"].get("shortNames", [])
    assert quoted[-1:] == spec["names"]["categories"]
    assert names.endswith(f"scope {spec['scope']}")
    assert crd["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    contracts = {key: value for key, value in crd["metadata"]["labels"].items() if key.startswith("cluster.x-k8s.io/v")}
    provider = spec["group"].split(".")[0] in {"bootstrap", "controlplane", "infrastructure"}
    assert contracts == ({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"} if provider else {})
    assert (version["name"], version["served"], version["storage"]) == ("v1beta2", True, True)

    subresources = versions.split("subresources: ")[1]
    assert ("`status`" in subresources) == ("status" in version["subresources"])
    scale = re.search(r"`scale` \(spec `(\S+)`, status `(\S+)`, selector (?:`(\S+)`|none)\)", subresources)
    expected = {
        key: value
        for key, value in zip(
            ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), scale.groups() if scale else (), strict=False
        )
        if value
    }
    assert expected == version["subresources"].get("scale", {})

    text = columns.split("(wide = priority 10): ")[1]
    wanted = [
        {"name": name, "type": type_, "jsonPath": path} | ({"priority": 10} if wide else {})
        for name, type_, wide, path in re.findall(r"(?:^|; )([^;(]+) \((\w+)(, wide)?\) `(.+?)`(?=; |$)", text)
    ]
    assert wanted == version["additionalPrinterColumns"]


def test_metadata_is_required_only_where_the_reference_says_so() -> None:
    assert {kind for kind in KINDS if "metadata" in schema_of(kind).get("required", ())} == {"MachineDrainRule"}


def test_there_are_seven_cel_rules_in_39_places() -> None:
    messages = []

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            messages.extend(rule["message"] for rule in node.get("x-kubernetes-validations", ()) if isinstance(rule, dict))
            for value in node.values():
                collect(value)

    for kind in KINDS:
        collect(schema_of(kind))
    assert set(messages) == set(CEL_MESSAGES.values())
    assert len(messages) == 39


def test_every_object_of_a_crd_is_structural() -> None:
    def check(node: Mapping[str, Any], where: str) -> None:
        open_ = node.get("x-kubernetes-preserve-unknown-fields") or node.get("x-kubernetes-int-or-string")
        assert "type" in node or open_, where
        for name, child in node.get("properties", {}).items():
            check(child, f"{where}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), dict):
                check(node[key], f"{where}.{key}")
        assert not ("properties" in node and "additionalProperties" in node), where

    for one in crds():
        for version in one["spec"]["versions"]:
            check(version["schema"]["openAPIV3Schema"], one["metadata"]["name"])


def test_every_field_of_our_kinds_is_explained_by_a_sentence() -> None:
    silent = []

    def check(node: Mapping[str, Any], where: str) -> None:
        if not SENTENCE.fullmatch(node.get("description", "")):
            silent.append(where)
        for name, child in node.get("properties", {}).items():
            check(child, f"{where}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), dict):
                for name, child in node[key].get("properties", {}).items():
                    check(child, f"{where}[].{name}")

    served = [*crds(), *embedded_crds()]
    for one in served:
        check(one["spec"]["versions"][0]["schema"]["openAPIV3Schema"], one["spec"]["names"]["kind"])
    assert {one["spec"]["versions"][0]["name"] for one in crds()} == {"v1beta2"}
    assert silent == [f"{one['spec']['names']['kind']}.metadata" for one in served]  # kube-apiserver forbids one there
