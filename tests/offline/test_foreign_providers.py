"""What issues ask `explain` to read of foreign providers, each with the situations of the gallery that demand it."""

from __future__ import annotations

import pytest

from offline.situations.gallery import SITUATIONS

DEMANDS = {
    "negative conditions by polarity": ("negative condition that is true", "condition of a failure that is true", "negative conditions of a provider"),
    "severity": ("old condition of severity Error", "old conditions for information"),
    "failureMessage": ("failureMessage alone", "failureMessage beside failureReason", "failureReason alone"),
    "stale observedGeneration": ("status of an older generation", "infrastructure of the cluster changed and not looked at again"),
    "Events of any group": ("credentials refused, told by Events alone", "file with Events of the newer form"),
    "Ready or Available that acquits": ("conditions after the manner of operators", "conditions after the manner of Crossplane"),
    "Deployments that are scaled to zero": ("Deployment of the provider without replicas",),
    "watch filters": ("provider whose watch filter leaves the machines out",),
    "kinds that have no status": ("objects of an operator without a status", "unused templates of others"),
    "duplicate providerIDs": ("two machines with one providerID", "three machines with one providerID"),
    "Nodes with another providerID": ("Node with another providerID",),
    "two writers of one field": ("two writers of replicas",),
    "OnDelete strategies": ("OnDelete with outdated Machines",),
}  # fmt: skip


@pytest.mark.parametrize("demand", DEMANDS)
def test_the_gallery_has_what_foreign_providers_need(demand: str) -> None:
    played = {s.name for s in SITUATIONS if not s.is_long}

    assert set(DEMANDS[demand]) <= played
