"""Judge providers of Cluster API by the rules of the contract, through the API alone. See docs/conformance-kit.md.

judgement = await judge(client, "InfraMachine", template)
assert judgement.conforms, as_text([judgement])
"""

from __future__ import annotations

from clusterwright.conformance.evidence import ROLES, Role, Write
from clusterwright.conformance.judge import Options, UnknownKind, judge
from clusterwright.conformance.report import as_json, as_junit, as_text
from clusterwright.conformance.rules import RULES
from clusterwright.conformance.scenario import Pace
from clusterwright.conformance.verdict import Judgement, Outcome, decide, evidence

__all__ = [
    "ROLES",
    "RULES",
    "Judgement",
    "Options",
    "Outcome",
    "Pace",
    "Role",
    "UnknownKind",
    "Write",
    "as_json",
    "as_junit",
    "as_text",
    "decide",
    "evidence",
    "judge",
]
