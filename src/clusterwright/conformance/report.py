"""A judgement as text, JSON and JUnit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree

from clusterwright.api.meta import Json
from clusterwright.conformance.verdict import Judgement, Outcome

_MARKS: Final = {"passed": "ok", "failed": "FAILED", "advice": "advice", "not seen": "-"}


def as_text(judgements: Sequence[Judgement]) -> str:
    """Return the report for people: every rule, with findings and what to do."""
    return "\n".join(line for judgement in judgements for line in _lines(judgement))


def _lines(judgement: Judgement) -> Iterator[str]:
    yield f"{judgement.kind}.{judgement.group} as {judgement.role}, contract {judgement.contract or 'none'}"
    for outcome in judgement.outcomes:
        yield f"  {_MARKS[outcome.status]:<7} {outcome.rule.id:<6} {outcome.rule.title}"
        yield from (f"                 {finding}" for finding in outcome.findings)
        if outcome.status == "failed":
            yield f"                 do: {outcome.rule.fix}"
    counts = ", ".join(f"{n} {status}" for status in _MARKS if (n := sum(o.status == status for o in judgement.outcomes)))
    yield f"{judgement.kind} {'conforms' if judgement.conforms else 'does NOT conform'}: {counts}"


def as_json(judgements: Sequence[Judgement]) -> Json:
    """Return the report for programs."""
    return {
        "conforms": all(judgement.conforms for judgement in judgements),
        "kinds": [
            {
                "role": judgement.role,
                "kind": judgement.kind,
                "group": judgement.group,
                "contract": judgement.contract,
                "conforms": judgement.conforms,
                "rules": [_rule(outcome) for outcome in judgement.outcomes],
            }
            for judgement in judgements
        ],
    }


def _rule(outcome: Outcome) -> Json:
    rule = outcome.rule
    return {
        "id": rule.id,
        "title": rule.title,
        "mandatory": rule.mandatory,
        "checked": rule.checked,
        "status": outcome.status,
        "findings": [str(finding) for finding in outcome.findings],
        "fix": rule.fix,
    }


def as_junit(judgements: Sequence[Judgement]) -> str:
    """Return the report for CI: one suite per kind, one case per rule."""
    root = ElementTree.Element("testsuites")
    for judgement in judgements:
        failures = str(len(judgement.broken))
        skipped = str(sum(outcome.status == "not seen" for outcome in judgement.outcomes))
        name = f"{judgement.role} {judgement.kind}.{judgement.group}"
        count = str(len(judgement.outcomes))
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=count, failures=failures, errors="0", skipped=skipped)
        for outcome in judgement.outcomes:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"{outcome.rule.id} {outcome.rule.title}")
            text = "\n".join(outcome.findings)
            if outcome.status == "failed":
                ElementTree.SubElement(case, "failure", message=text).text = f"{text}\ndo: {outcome.rule.fix}"
            elif outcome.status == "not seen":
                ElementTree.SubElement(case, "skipped", message=text)
            elif text:
                ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
