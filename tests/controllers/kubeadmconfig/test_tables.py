"""The tables themselves: no gaps, every row reachable; and every edge case of the spec has its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterwright.controllers.kubeadmconfig import conditions
from clusterwright.tables import gaps, unreachable

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("table", conditions.TABLES, ids=lambda t: t.name)
def test_every_snapshot_has_a_row_and_every_row_a_snapshot(table: object) -> None:
    assert gaps(table) == []  # type: ignore[arg-type]
    assert unreachable(table) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("data", list(conditions.Data))
@pytest.mark.parametrize("certificates", list(conditions.Certificates))
def test_both_forms_of_a_condition_always_agree(data: conditions.Data, certificates: conditions.Certificates) -> None:
    for reported in (True, False):
        findings = conditions.Findings(data=data, certificates=certificates, detail="x", reported=reported)
        for new, old in (
            (conditions.DATA_SECRET_AVAILABLE, conditions.V1BETA1_DATA_SECRET_AVAILABLE),
            (conditions.CERTIFICATES_AVAILABLE, conditions.V1BETA1_CERTIFICATES_AVAILABLE),
        ):
            a, b = new.decide(findings), old.decide(findings)
            assert a.row == b.row
            assert (a.outcome is None) == (b.outcome is None)
            if a.outcome is not None and b.outcome is not None:
                assert (a.outcome.status == "True") == (b.outcome.status == "True")


def test_every_edge_case_of_the_spec_has_a_test() -> None:
    folders = (TESTS / "controllers" / "kubeadmconfig", TESTS / "kubeadm", TESTS / "admission")
    names = "\n".join(f.read_text() for folder in folders for f in folder.glob("test_*.py"))
    numbers = {int(n) for name in re.findall(r"def test_edge_([0-9a-z_]+)", names) for n in re.findall(r"\d{3}", name)}

    assert numbers == set(range(1, 114))
