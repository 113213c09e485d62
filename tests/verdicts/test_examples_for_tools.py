"""The examples for other tools: alert rules name metrics and labels that there are, toolsets call commands with flags that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterwright.api.meta import Json
from clusterwright.cli import grammar
from clusterwright.offline.verdict import State
from clusterwright.runtime.metrics import Registry, RuntimeMetrics
from clusterwright.verdicts.series import Series

EXAMPLES = Path(__file__).parents[2] / "examples"
RULES: list[Json] = [
    rule for group in yaml.safe_load((EXAMPLES / "alerts/clusterwright.yaml").read_text())["groups"] for rule in group["rules"]
]
_TOKEN = re.compile(r'\s+|"[^"]*"|[a-zA-Z_:][\w:]*|\d+(?:\.\d+)?|=~|!~|!=|==|>=|<=|[-+*/><={}(),]')
_FUNCTIONS = {"time", "absent", "sum", "max", "min", "count"}
_WORDS = _FUNCTIONS | {"by", "and", "or", "unless"}


def metrics() -> dict[str, set[str]]:
    """The labels of every metric."""
    registry = Registry()
    RuntimeMetrics(registry)
    Series(registry)
    return {name: set(metric.labels) for name, metric in registry._metrics.items()}


def tokens(expression: str) -> list[str]:
    found, place = [], 0
    while place < len(expression):
        match = _TOKEN.match(expression, place)
        assert match is not None, f"{expression[place:]!r} is not PromQL"
        if match[0].strip():
            found.append(match[0])
        place = match.end()
    return found


class Parser:
    """The part of PromQL that the rules are written in; what it does not know fails the test."""

    def __init__(self, expression: str) -> None:
        self.rest = tokens(expression)
        self.known = metrics()
        self.used: set[str] = set()

    def take(self, *wanted: str) -> str:
        assert self.rest, f"{wanted} expected, and nothing is left"
        token = self.rest.pop(0)
        assert not wanted or token in wanted, f"{wanted} expected, not {token!r}"
        return token

    def expression(self) -> set[str]:
        labels = self.operand()
        while self.rest and self.rest[0] in {"+", "-", "*", "/", ">", "<", ">=", "<=", "==", "!=", "and", "or"}:
            self.take()
            labels |= self.operand()
        return labels

    def operand(self) -> set[str]:
        token = self.take()
        if token == "(":
            labels = self.expression()
            self.take(")")
            return labels
        if token[0].isdigit():
            return set()
        if token in _FUNCTIONS:
            return self.call(token)
        assert token in self.known, f"there is no metric {token}"
        self.used.add(token)
        if self.rest and self.rest[0] == "{":
            self.matchers(token)
        return set(self.known[token])

    def call(self, function: str) -> set[str]:
        kept = self.names() if self.rest[0] == "by" and self.take("by") else None
        self.take("(")
        labels = self.expression() if self.rest[0] != ")" else set()
        self.take(")")
        if function in {"time", "absent"}:
            return set()
        assert kept is None or kept <= labels, f"{kept} are not all labels"
        return kept or set()

    def names(self) -> set[str]:
        self.take("(")
        found = {self.take()}
        while self.take(",", ")") == ",":
            found.add(self.take())
        return found

    def matchers(self, metric: str) -> None:
        self.take("{")
        while True:
            label = self.take()
            assert label in self.known[metric], f"{metric} has no label {label}"
            self.take("=", "!=", "=~", "!~")
            value = self.take().strip('"')
            assert label != "verdict" or value in {str(s).replace(" ", "_") for s in State}
            if self.take(",", "}") == "}":
                return


def test_the_parser_refuses_what_is_wrong() -> None:
    for wrong in ("no_such_metric > 1", 'clusterwright_clusters{colour="red"}', "sum by (cluster) (clusterwright_clusters)", "sum(1"):
        with pytest.raises(AssertionError):
            Parser(wrong).expression()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_names_what_there_is(rule: Json) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[smhd]", rule["for"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    parser = Parser(rule["expr"])
    labels = parser.expression()
    assert parser.rest == []
    assert parser.used
    words = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", words)) <= labels, "an annotation names a label that the expression drops"
    assert words.count("{{") == words.count("}}")


def test_a_command_in_an_annotation_can_be_typed() -> None:
    words = " ".join(text for rule in RULES for text in rule["annotations"].values())
    commands = re.findall(r"clusterwright (\w+)(?: [a-z]+/| )", words)
    assert commands
    assert set(commands) <= set(grammar.COMMANDS)


def toolset() -> Any:
    return yaml.safe_load((EXAMPLES / "holmesgpt/clusterwright.yaml").read_text())["toolsets"]["clusterwright"]


@pytest.mark.parametrize("tool", toolset()["tools"], ids=lambda tool: tool["name"])
def test_a_tool_of_the_toolset_is_a_command_with_flags_that_there_are(tool: Json) -> None:
    given = {"kind": "machine", "namespace": "team-a", "name": "m1", "since": "2h"}
    wanted = set(re.findall(r"\{\{ (\w+) \}\}", tool["command"]))
    assert wanted == set(tool.get("parameters", {}))
    assert all(p["type"] == "string" and p["required"] and p["description"] for p in tool.get("parameters", {}).values())
    command = re.sub(r"\{\{ (\w+) \}\}", lambda match: given[match[1]], tool["command"])
    program, name, *words = shlex.split(command)
    assert program == "clusterwright"
    assert grammar.parse(name, words).words


def test_a_toolset_says_when_it_can_be_used() -> None:
    whole = toolset()
    assert whole["prerequisites"] == [{"command": "clusterwright version"}]
    assert {"description", "llm_instructions", "tags", "tools"} <= set(whole)
    assert set(re.findall(r"clusterwright_\w+", whole["llm_instructions"])) <= {tool["name"] for tool in whole["tools"]}


def test_the_form_for_the_protocol_starts_the_server() -> None:
    (server,) = yaml.safe_load((EXAMPLES / "holmesgpt/mcp.yaml").read_text())["mcp_servers"].values()
    assert server["config"]["mode"] == "stdio"
    grammar.parse(server["config"]["args"][0], server["config"]["args"][1:])
