"""What no controller reports on is told apart from what reports nothing by nature, and from passes that fail at their end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clusterwright.api.meta import Json, Unstructured
from clusterwright.offline.unreconciled import unreconciled

MADE = datetime(2026, 1, 1, tzinfo=UTC)
LATER = MADE + timedelta(minutes=30)
IPAM = "ipam.cluster.x-k8s.io/v1beta2"


def made(api_version: str, kind: str, **more: Json) -> Unstructured:
    metadata = {"name": "one", "namespace": "default", "creationTimestamp": f"{MADE:%Y-%m-%dT%H:%M:%SZ}", "generation": 1}
    return Unstructured({"apiVersion": api_version, "kind": kind, "metadata": metadata, **more})


@pytest.mark.parametrize(
    ("kind", "is_neglected"), [("IPAddress", False), ("InClusterIPPool", False), ("GlobalInClusterIPPool", False), ("IPAddressClaim", True)]
)
def test_of_the_kinds_of_addresses_only_claims_must_have_a_status(kind: str, is_neglected: bool) -> None:
    assert (unreconciled(made(IPAM, kind), LATER) is not None) is is_neglected


@pytest.mark.parametrize(("of_conditions", "is_neglected"), [(2, True), (3, False)])
def test_conditions_of_the_newest_generation_show_that_a_controller_acts(of_conditions: int, is_neglected: bool) -> None:
    """A pass that fails at its end leaves status.observedGeneration behind, but has written its conditions."""
    condition = {"type": "Ready", "status": "False", "observedGeneration": of_conditions, "lastTransitionTime": "2026-01-01T00:00:10Z"}
    obj = made(
        "cluster.x-k8s.io/v1beta2", "Machine", spec={"clusterName": "c"}, status={"observedGeneration": 2, "conditions": [condition]}
    )
    metadata = {**obj.json["metadata"], "generation": 3}

    found = unreconciled(Unstructured({**obj.json, "metadata": metadata}), LATER, written="2026-01-01T00:01:00Z")

    assert (found is not None) is is_neglected
