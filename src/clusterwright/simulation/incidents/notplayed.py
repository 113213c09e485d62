"""Incidents that no scenario plays, each with the reason. They do not count as played."""

from __future__ import annotations

from typing import Final

from clusterwright.simulation.incidents.incident import NotPlayed

_SOCKETS: Final = "it needs a network, which virtual time has not; tests/incidents/test_over_sockets.py plays it over sockets"
_WISH: Final = "it asks for a feature, and nothing went wrong"

NOT_PLAYED: Final = (
    NotPlayed(number=13763, title="A runtime extension redirects the manager to addresses inside its network", reason=_SOCKETS),
    NotPlayed(number=13944, title="A runtime extension answers without end", reason=_SOCKETS),
    NotPlayed(
        number=14023,
        title="An update in place of etcd arguments fails on Machines that an old version made",
        reason="only objects that v1.11 converted and stored show it, and no such recording is at hand",
    ),
    NotPlayed(
        number=13640,
        title="An update in place writes to an InfraMachine that its provider keeps immutable",
        reason="the refusal is that of a provider's webhook; the simulated provider has none",
    ),
    NotPlayed(
        number=13984,
        title="Taints are lost for control planes of the v1beta1 contract",
        reason="the simulated control plane follows the contract v1beta2 only",
    ),
    NotPlayed(
        number=13383,
        also=("#13336",),
        title="A conversion crashes, or fills deprecated fields wrongly",
        reason="a conversion is a pure function without time or adversary; recorded conversions cover it in tests/conversion",
    ),
    NotPlayed(
        number=9843,
        also=("#14031",),
        title="The memory of ClusterResourceSets grows with the number of clusters",
        reason="it is a question of bytes and not of behaviour, which a benchmark answers",
    ),
    NotPlayed(number=13863, title="Say before a rollout what will be replaced", reason=_WISH),
    NotPlayed(number=13721, title="A rollout strategy of the control plane in the topology", reason=_WISH),
    NotPlayed(number=13305, title="Faults and latency in the in-memory provider", reason=f"{_WISH}; `clusterwright fault` has them"),
    NotPlayed(
        project="clastix/kamaji",
        number=392,
        title="The bootstrap provider may not read control planes of other providers",
        reason="it is a question of the rights that are installed, and no behaviour of controllers",
    ),
    NotPlayed(
        project="kubernetes-sigs/cluster-api-provider-azure",
        number=6487,
        also=("#6479",),
        title="The rollout of a MachinePool deletes new instances",
        reason="the provider's own code decides which instance of a scale set goes",
    ),
    NotPlayed(
        project="syself/cluster-api-provider-hetzner",
        number=2098,
        also=("#2128",),
        title="A cloud that limits the rate is taken for a machine that does not exist",
        reason="the provider's own code reads the answers of its cloud",
    ),
)
