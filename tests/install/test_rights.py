"""What controllers declare is what they do: a whole life with the generated role and nothing else."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from clusterwright import app
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import Secret
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.ipam.build import controllers as ipam_controllers
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES
from clusterwright.inmemory.cloud import Cloud
from clusterwright.install import rights
from clusterwright.install.manifests import NAME, Settings, manifests
from clusterwright.runtime.clock import LoopClock
from clusterwright.runtime.keys import FixedKeySource
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import Plane, management_server, plane
from clusterwright.simulation.world import START
from install.whole_life import Recording, live

NAMESPACE = "clusterwright-system"
ACCOUNT = User(f"system:serviceaccount:{NAMESPACE}:{NAME}", ("system:serviceaccounts", "system:authenticated"))
RARE = {
    ("devclusters", "create"): "simulated clusters behind endpoints of other providers",
    ("devmachines", "create"): "simulated machines for other providers",
    ("finalizers", "update"): "asked for by API servers that enforce permissions of owner references",
    ("secrets", "update"): "certificates and tokens that are renewed",
    ("secrets", "patch"): "owners and labels of Secrets that somebody else made",
    ("secrets", "create"): "kubeconfigs of control planes that no provider manages",
    ("secrets", "delete"): "bootstrap data of a config that is rendered anew",
    ("configmaps", "update"): "an init lock that is taken over",
    ("machines", "patch"): "adoption, annotations",
    ("machines", "delete"): "what is left where an owner is gone",
    ("machines/status", "patch"): "conditions that owners write",
    ("machinesets", "delete"): "without an owner",
    ("machinedeployments", "delete"): "a topology that loses a deployment",
    ("machinepools", "create"): "a topology with pools",
    ("machinepools", "patch"): "a topology with pools",
    ("machinepools", "delete"): "a topology that loses a pool",
    ("machinehealthchecks", "create"): "a class with health checks",
    ("machinehealthchecks", "patch"): "a class with health checks",
    ("machinehealthchecks", "delete"): "a class that loses its health checks",
    ("clusterresourcesetbindings", "delete"): "the last set of a Cluster goes",
    ("devmachines", "patch"): "machines of pools",
    ("devmachines", "delete"): "machines of pools",
    ("dockermachines", "create"): "no container is simulated in this life",
    ("dockermachines", "patch"): "no container is simulated in this life",
    ("dockermachines", "delete"): "no container is simulated in this life",
}
"""Declared writes that this life does not need, and what needs them."""


@pytest.fixture(scope="module")
def asked() -> dict[str, set[tuple[str, str]]]:
    """Who asked for what; nothing was refused."""
    found: Recording | None = None

    async def scenario() -> None:
        nonlocal found
        clock = LoopClock(START)
        server = management_server(clock, Random(1), EMBEDDED_FEATURES)
        admin = RestClient(InProcessTransport(server))
        settings = Settings(namespace=NAMESPACE, controllers="*", webhooks=False)
        for obj in manifests(settings, app.declared(app.selectable_names())):
            if obj["kind"] != "CustomResourceDefinition":
                await admin.apply(obj, field_manager="install")
        found = Recording(InProcessTransport(server, ACCOUNT))
        async with plane(clock, server=server, transport=found) as p:
            await live(p)
            assert p.manager is not None
            assert p.manager.rights.missing == {}
        server.close()

    run_virtual(scenario())
    assert found is not None
    assert found.refused == set()
    return found.asked


def test_every_controller_declares_what_it_does(asked: dict[str, set[tuple[str, str]]]) -> None:
    definitions = {d.name: d for d in (*app.declared(app.selectable_names()), *ipam_controllers())}
    shared = rights.merged([*rights.CONNECTIONS, *rights.EVENTS])
    undeclared = {}
    for name, what in asked.items():
        granted = rights.merged(rights.declared(definitions[name])) if name in definitions else {}
        left = {(verb, r) for verb, r in what if not rights.allows(granted, verb, r) and not rights.allows(shared, verb, r)}
        # lists and watches are opened by whoever is first, for all
        everybody = rights.merged(a for d in definitions.values() for a in rights.declared(d))
        left = {(verb, r) for verb, r in left if name or not rights.allows(everybody, verb, r)}
        if left:
            undeclared[name] = sorted(left)

    assert undeclared == {}
    assert {"cluster", "machine", "machineset", "machinedeployment", "kubeadmcontrolplane", "kubeadmconfig", "topology/cluster"} <= set(
        asked
    )


@pytest.mark.soak
def test_each_controller_in_a_process_of_its_own_asks_for_no_more_than_its_own_role() -> None:
    """What another has in its cache is asked for here: beside providers of others only some of ours run."""
    together = app.inmemory_names()
    processes = [frozenset({d.name}) for d in app.declared(app.selectable_names() - together)] + [together]
    found: dict[frozenset[str], Recording] = {}

    async def scenario() -> None:
        clock, random, keys = LoopClock(START), Random(1), FixedKeySource(1)
        server = management_server(clock, random, EMBEDDED_FEATURES)
        cloud = Cloud(now=clock.now, random=random, keys=keys)
        managers = []
        for names in processes:
            found[names] = Recording(InProcessTransport(server))
            own = Random(random.getrandbits(64))
            managers.append(
                app.build_manager(found[names], clock=clock, random=own, keys=keys, cloud=cloud, features=EMBEDDED_FEATURES, selected=names)
            )
        running = [asyncio.create_task(manager.run()) for manager in managers]
        await live(Plane(server, cloud, clock))
        for manager in managers:
            manager.stop()
        await asyncio.gather(*running)
        await cloud.close()
        server.close()

    run_virtual(scenario())
    undeclared = {}
    for names, recording in found.items():
        granted = rights.merged([a for d in app.declared(names) for a in rights.declared(d)] + [*rights.CONNECTIONS, *rights.EVENTS])
        asked = {right for what in recording.asked.values() for right in what}
        if left := sorted(right for right in asked if not rights.allows(granted, *right)):
            undeclared[", ".join(sorted(names))] = left

    assert undeclared == {}


def test_every_declared_permission_has_a_reason(asked: dict[str, set[tuple[str, str]]]) -> None:
    unused = set()
    for definition in app.declared(app.selectable_names()):
        done = asked.get(definition.name, set())
        for access in definition.access:
            if access.resource.startswith("*."):
                continue  # kinds of others: what is done to them is up to them
            for verb in access.verbs.split():
                if verb not in {"get", "list", "watch"} and (verb, access.resource) not in done:
                    unused.add((access.resource.partition(".")[0] + access.resource[len(access.resource.partition("/")[0]) :], verb))

    assert unused - set(RARE) == set()


def test_the_cache_of_connections_declares_what_it_watches() -> None:
    kinds = (Cluster, Secret, CustomResourceDefinitionMeta)

    assert {rights.resource_name(kind) for kind in kinds} == {access.resource for access in rights.CONNECTIONS}


def test_fewer_controllers_get_a_smaller_role() -> None:
    def granted(*names: str) -> dict[str, frozenset[str]]:
        return rights.merged(a for d in app.declared(names) for a in rights.declared(d))

    assert not rights.allows(granted("kubeadmconfig"), "delete", "machines.cluster.x-k8s.io")
    assert not rights.allows(granted("cluster", "machine"), "create", "devmachines.infrastructure.cluster.x-k8s.io")
    assert rights.allows(granted("machineset"), "create", "devmachines.infrastructure.cluster.x-k8s.io")
