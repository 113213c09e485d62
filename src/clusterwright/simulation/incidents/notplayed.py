"""Incidents that no scenario plays, each with the reason."""

from __future__ import annotations

from typing import Final

from clusterwright.simulation.incidents.incident import NotPlayed

NOT_PLAYED: Final = (
    NotPlayed(
        project="kubernetes-sigs/cluster-api-provider-azure",
        number=6487,
        title="The rollout of a MachinePool deletes new instances",
        reason="which instance of a scale set goes is decided by the provider's own code",
    ),
)
