"""The tables themselves: no gaps, every row reachable."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Cluster, Machine
from clusterwright.controllers.kubeadmconfig import conditions, plan
from clusterwright.controllers.kubeadmconfig.snapshot import Certificates, ClusterFacts, ConfigDone, Data, OwnerFacts
from clusterwright.tables import gaps, unreachable

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "table", [plan.PRESENCE, plan.STEP, plan.LOCK, plan.DISCOVERY, plan.TOKEN, *conditions.TABLES], ids=lambda t: t.name
)
def test_every_snapshot_has_a_row_and_every_row_a_snapshot(table: object) -> None:
    assert gaps(table) == []  # type: ignore[arg-type]
    assert unreachable(table) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("data", list(Data))
@pytest.mark.parametrize("certificates", list(Certificates))
def test_both_forms_of_a_condition_always_agree(data: Data, certificates: Certificates) -> None:
    for reported in (True, False):
        done = ConfigDone(
            now=datetime.now(UTC),
            object=KubeadmConfig(),
            owner=OwnerFacts.of(Machine()),
            cluster=ClusterFacts.of(Cluster()),
            data=data,
            certificates=certificates,
            detail="x",
            reported=reported,
        )
        for table in conditions.TABLES:
            decision = table.decide(done)
            new, old = decision.outcome, decision.v1beta1
            assert (new is None) == (old is None)
            if new is not None and old is not None:
                assert (new.status == "True") == (old.status == "True")
