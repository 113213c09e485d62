"""What live CRDs refused, per the recorded corpus: our schemas have the constraint that every such refusal names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clusterwright.api.crds import crds

CORPUS = Path(__file__).parents[1] / "conformance" / "admission.jsonl"
SCHEMAS = {(crd["spec"]["group"], crd["spec"]["names"]["kind"]): crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds()}


def rejections() -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """(scenario, schema of the kind, field, message) of every cause of every 422 answer."""
    for line in CORPUS.read_text().splitlines():
        scenario = json.loads(line)
        if "variable" in scenario["name"]:  # the schemas there are those of ClusterClass variables
            continue
        for step in scenario["steps"]:
            body = step["response"].get("body")
            if isinstance(body, dict) and body.get("kind") == "Status" and body.get("code") == 422:
                details = body["details"]
                schema = SCHEMAS.get((details.get("group"), details.get("kind")))
                if schema is not None:
                    for cause in details.get("causes", ()):
                        yield scenario["name"], schema, cause["field"], cause["message"]


def resolve(schema: Mapping[str, Any], field: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, str]:
    """(the node at a field path, its parent, the last step); None where the schema ends."""
    parent: Mapping[str, Any] | None = None
    node: Mapping[str, Any] | None = schema
    name = ""
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", field):
        if node is None:
            return None, parent, name
        parent, name = node, step
        if step.startswith("["):
            node = node.get("items") or node.get("additionalProperties")
        elif "properties" in node:
            node = node["properties"].get(step)
        else:
            extra = node.get("additionalProperties")
            node = extra if isinstance(extra, dict) else None
    return node, parent, name


RULES: tuple[tuple[str, str], ...] = (
    (r"in body should be at least (\d+) chars long$", "minLength"),
    (r"^Too long: may not be more than (\d+) bytes$", "maxLength"),
    (r"in body should have at least (\d+) items$", "minItems"),
    (r"^Too many: \d+: must have at most (\d+) items$", "maxItems"),
    (r"in body should have at least (\d+) properties$", "minProperties"),
    (r"in body should be greater than or equal to (-?\d+)$", "minimum"),
    (r"in body should be less than or equal to (-?\d+)$", "maximum"),
)
TYPES = {"date-time": ("string", "date-time"), "byte": ("string", "byte")}


def expectation(field: str, message: str, schema: Mapping[str, Any]) -> tuple[str, bool] | None:
    """(kind of constraint, whether the schema has it), or None for what no schema says (webhooks, immutability)."""
    node, parent, name = resolve(schema, field)
    for pattern, keyword in RULES:
        if (match := re.search(pattern, message)) and (keyword != "maxLength" or (node is not None and node.get("type") == "string")):
            return keyword, node is not None and node.get(keyword) == int(match.group(1))
    if match := re.search(r"in body should match '(.*)'$", message):
        return "pattern", node is not None and node.get("pattern") == match.group(1)
    if match := re.search(r"in body must be of type ([\w,-]+): ", message):
        if node is not None and node.get("x-kubernetes-int-or-string"):
            return "int-or-string", node["anyOf"] == [{"type": "integer"}, {"type": "string"}]
        type_, format_ = TYPES.get(match.group(1), (match.group(1), None))
        return "type", node is not None and node.get("type") == type_ and (format_ is None or node.get("format") == format_)
    if (match := re.search(r"^Unsupported value: .*: supported values: (.*)$", message)) and node is not None and "enum" in node:
        return "enum", node["enum"] == re.findall(r'"([^"]*)"', match.group(1))
    if (match := re.match(r"Duplicate value: (\{.*\})$", message)) and parent is not None:
        keys = set(json.loads(match.group(1)))
        return "list map", parent.get("x-kubernetes-list-type") == "map" and set(parent["x-kubernetes-list-map-keys"]) == keys
    if message == "Required value" and parent is not None and name in parent.get("required", ()):
        return "required", True
    rules = (node or {}).get("x-kubernetes-validations", ())
    if rules and any(message.endswith(rule["message"]) for rule in rules):
        return "cel", True
    return None


def test_our_schemas_have_every_constraint_that_a_live_schema_enforced() -> None:
    found: Counter[str] = Counter()
    wrong = set()
    for scenario, schema, field, message in rejections():
        expected = expectation(field, message, schema)
        if expected is not None:
            found[expected[0]] += 1
            if not expected[1]:
                wrong.add(f"{scenario}: {field}: {message}")
    assert not wrong, "\n".join(sorted(wrong))
    at_least = {"minLength": 200, "maxLength": 200, "pattern": 100, "type": 200, "enum": 50, "required": 100, "list map": 20, "cel": 50}
    assert {name: found[name] for name in at_least if found[name] < at_least[name]} == {}


ADMISSION = {
    ("spec.topology.classRef.name", "Required value: cannot be empty"),
    ("metadata.labels", f'Invalid value: "{"a" * 64}": must be no more than 63 bytes'),
}
"""The two causes in schema scenarios that a webhook or the metadata rules answered with."""


def test_what_the_schema_scenarios_refuse_is_in_the_schema() -> None:
    unexplained = {
        f"{scenario}: {field}: {message}"
        for scenario, schema, field, message in rejections()
        if "-schema" in scenario
        and "accessor error" not in message  # the scale subresource
        and field != "<nil>"  # "some rules were not checked", "must validate at least one schema"
        and (field, message) not in ADMISSION
        and expectation(field, message, schema) is None
    }
    assert not unexplained, "\n".join(sorted(unexplained))
