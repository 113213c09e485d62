"""The judgement: every rule of a role over the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clusterwright.api.meta import Json
from clusterwright.conformance.definitions import resolved
from clusterwright.conformance.evidence import Advice, Evidence, NotSeen, Role, Rule, Run
from clusterwright.conformance.rules import RULES

Status = Literal["passed", "failed", "advice", "not seen"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule with its status, and what was found."""

    rule: Rule
    status: Status
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcomes of all rules for one kind."""

    role: Role
    kind: str
    group: str
    contract: str
    outcomes: tuple[Outcome, ...]

    @property
    def conforms(self) -> bool:
        """Return whether no rule is broken."""
        return not self.broken

    @property
    def broken(self) -> tuple[str, ...]:
        """Return the ids of broken rules."""
        return tuple(outcome.rule.id for outcome in self.outcomes if outcome.status == "failed")


def evidence(role: Role, kind: Json, template: Json | None, cluster_roles: Sequence[Json] = (), run: Run | None = None) -> Evidence:
    """Return the evidence, with the contract that the labels name."""
    found = resolved(kind)
    return Evidence(role, kind, template, cluster_roles, found.contract if found else None, run)


def decide(seen: Evidence) -> Judgement:
    """Return the outcome of every rule of the role."""
    names = seen.kind["spec"]["names"]
    rules = (rule for rule in RULES if seen.role in rule.roles and (seen.contract is None or seen.contract in rule.contracts))
    outcomes = tuple(_outcome(rule, seen) for rule in rules)
    return Judgement(seen.role, names["kind"], seen.kind["spec"]["group"], seen.contract or "", outcomes)


def _outcome(rule: Rule, seen: Evidence) -> Outcome:
    findings: list[str] = []
    unseen = ""
    try:
        for finding in rule.check(seen):
            findings.append(finding)  # noqa: PERF402 - what was found before NotSeen counts
    except NotSeen as reason:
        unseen = str(reason)
    if any(not isinstance(finding, Advice) for finding in findings):
        return Outcome(rule, "failed", tuple(finding for finding in findings if not isinstance(finding, Advice)))
    if unseen:
        return Outcome(rule, "not seen", (unseen, *findings))
    return Outcome(rule, "advice" if findings else "passed", tuple(findings))
