"""Every rule by its id: kept by one write, broken by another. The ids are those of the specification, all of them."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from admission.admission_cases import BASES, Case, merge
from admission.cases_cluster import CLUSTER_CASES
from admission.cases_clusterclass import CLASS_CASES
from admission.cases_kinds import DEFAULTS, KIND_CASES, MAX, MIN
from admission.cases_kubeadm import KUBEADM_CASES
from admission.cases_pinning import PINNING_CASES
from clusterwright.admission.hook import Hook
from clusterwright.admission.registry import HOOKS, KEPT_ELSEWHERE
from clusterwright.admission.rule import Refused, Review, Rule, judge

CASES = [*CLUSTER_CASES, *CLASS_CASES, *KIND_CASES, *KUBEADM_CASES, *PINNING_CASES]
IDS = (Path(__file__).parent / "rule_ids.txt").read_text().split()


def rules_of(hook: Hook) -> list[Rule]:
    return [*((hook.gate,) if hook.gate is not None else ()), *hook.required, *hook.defaulted, *hook.rules]


def hook_of(kind: str) -> Hook:
    (hook,) = (h for h in HOOKS if h.model.__name__ == kind)
    return hook


def review(case: Case, *, kept: bool) -> Review:
    base = BASES[case.kind]
    operation = case.operation or ("CREATE" if case.old is None else "UPDATE")
    facts = case.keeps_facts if kept and case.keeps_facts is not None else case.facts
    return Review(
        operation=cast(Any, operation),
        new={} if operation == "DELETE" else merge(base, case.keeps if kept else case.breaks),
        old=None if case.old is None else merge(base, case.old),
        gates=case.keeps_gates if kept else case.gates,
        facts=facts,
        model=hook_of(case.kind).model,
        namespace="n",
        name=base["metadata"]["name"],
    )


def rows(case: Case) -> list[Rule]:
    found = [rule for rule in rules_of(hook_of(case.kind)) if case.id in rule.ids]
    assert found, f"{case.kind} has no row {case.id}"
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.id}-{c.kind}")
def test_a_write_that_breaks_the_rule_is_refused_at_its_field(case: Case) -> None:
    found = [e for e in judge(rows(case), review(case, kept=False)) if case.says in e.detail]

    assert case.at in [e.field for e in found], [str(e) for e in judge(rows(case), review(case, kept=False))]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.id}-{c.kind}")
def test_a_write_that_keeps_the_rule_is_accepted(case: Case) -> None:
    assert [str(e) for e in judge(rows(case), review(case, kept=True)) if case.says in e.detail] == []


@pytest.mark.parametrize("hook", HOOKS, ids=lambda h: h.name())
def test_the_objects_that_cases_start_from_keep_every_rule(hook: Hook) -> None:
    """So what a case reports is what it breaks."""
    base = Case(id="", kind=hook.model.__name__, breaks={}, at="")
    facts = {"IPAddress": KIND_CASES, "Cluster": CLUSTER_CASES}.get(base.kind)
    known = next((c.facts for c in facts if c.kind == base.kind and c.facts is not None), None) if facts else None

    found = judge(hook.rules, review(Case(id="", kind=base.kind, breaks={}, at="", facts=known), kept=True))

    assert [str(e) for e in found] == []


@pytest.mark.parametrize(("id", "kind", "sent", "path", "filled"), DEFAULTS, ids=[f"{d[0]}-{d[1]}-{n}" for n, d in enumerate(DEFAULTS)])
def test_a_default_is_filled_in_where_it_is_missing_and_nowhere_else(id: str, kind: str, sent: Any, path: str, filled: Any) -> None:
    hook = hook_of(kind)
    found = [row for row in hook.defaults if id in row.ids]
    assert found
    options = {k: v for k, v in sent.items() if k.startswith("$")}
    obj = deepcopy(merge(BASES[kind], {k: v for k, v in sent.items() if k not in options}))
    old = options.get("$old")
    asked = Review(
        operation="CREATE" if old is None else "UPDATE",
        new=obj,
        old=merge(BASES[kind], old) if old is not None else None,
        dry_run=options.get("$dry_run", False),
        facts=options.get("$facts"),
        model=hook.model,
    )

    for row in found:
        row.fill(obj, asked)

    value: Any = obj
    for step in path.split("|"):
        value = value.get(step) if isinstance(value, dict) else value[int(step)]
    assert value == filled


@pytest.mark.parametrize("kind", ["MachineSet", "MachineDeployment", "MachinePool"])
@pytest.mark.parametrize(("least", "most"), [("x", "5"), ("3", "five"), ("", "5"), ("2.5", "5"), ("3", "4294967296")])
@pytest.mark.parametrize("replicas", [None, 4])
def test_bounds_that_cannot_be_read_are_refused_where_they_are_asked_for(kind: str, least: str, most: str, replicas: int | None) -> None:
    """REP-E."""
    hook = hook_of(kind)
    (row,) = (row for row in hook.defaults if "REP-E" in row.ids)
    sent = {"metadata": {"annotations": {MIN: least, MAX: most}}} | ({"spec": {"replicas": replicas}} if replicas else {})
    obj = deepcopy(merge(BASES[kind], sent))
    asked = Review(operation="CREATE", new=obj, model=hook.model)

    if replicas:
        row.fill(obj, asked)
        assert obj["spec"]["replicas"] == replicas
    else:
        with pytest.raises(Refused, match=f"failed to caculate {kind} replicas value"):
            row.fill(obj, asked)


def _rows(hook: Any) -> tuple[Any, ...]:
    return (*rules_of(hook), *hook.defaults)


def test_every_rule_of_the_specification_is_here_and_no_other() -> None:
    ids = [id for hook in HOOKS for row in _rows(hook) for id in row.ids]

    assert set(ids) | set(KEPT_ELSEWHERE) == set(IDS)
    assert not set(ids) & set(KEPT_ELSEWHERE)
    assert Counter(IDS).most_common(1)[0][1] == 1
    assert len(IDS) == 362  # CL-41 to CL-51, CC-36, DEV-6 and DEV-7 are ours: no release of upstream has them


def test_every_row_has_a_write_that_keeps_it_and_one_that_breaks_it() -> None:
    tried = {c.id for c in CASES} | {d[0] for d in DEFAULTS} | set(KEPT_ELSEWHERE) | {"REP-E", "VER-2"}  # VER-D adds the `v` before

    assert set(IDS) - tried == set()


def test_every_kind_tries_all_of_its_own_rows() -> None:
    """A shared rule is tried in one kind at least; the id that a kind gives to it, in that kind."""
    tried = {(c.id, c.kind) for c in CASES} | {(d[0], d[1]) for d in DEFAULTS}
    owned = {(row.ids[0], hook.model.__name__) for hook in HOOKS for row in _rows(hook)}

    assert owned - tried == set()
