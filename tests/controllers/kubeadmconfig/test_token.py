"""Edge cases 41 to 50 of the spec: bootstrap tokens over time. Each test is named after its number."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachinePool
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.kubeadm import tokens
from clusterwright.kubeadm.yamltext import rfc3339

NS = "default"
TTL = tokens.DEFAULT_TTL
CHECK = TTL.total_seconds() / 3


async def _joined(world: Any, kind: str = "worker", **how: Any) -> str:
    await world.cluster(initialized=True)
    await world.certificates()
    name = "mp1" if kind == "pool_config" else "m1"
    await getattr(world, kind)(name, **how)
    assert await world.reconcile(name) == CHECK
    token: str = await world.token(name)
    return token


async def _left(world: Any, token: str, left: timedelta) -> None:
    await world.set_expiration(token, rfc3339(world.clock.now() + left))


async def test_every_config_has_its_own_token(world: Any) -> None:
    await _joined(world)
    await world.control_plane_machine("m2")

    assert await world.reconcile("m2") == CHECK
    assert len(await world.tokens()) == 2


async def test_a_fresh_token_is_left_alone(world: Any) -> None:
    token = await _joined(world)
    before = await world.expiration(token)

    assert await world.reconcile() == CHECK
    assert await world.expiration(token) == before


@pytest.mark.parametrize("provider_id", ["", "dev://1"])
async def test_a_token_is_prolonged_until_the_node_has_joined(world: Any, provider_id: str) -> None:
    token = await _joined(world, provider_id=provider_id)
    await _left(world, token, TTL / 2)

    assert await world.reconcile() == CHECK
    assert await world.expiration(token) == world.clock.now() + TTL


async def test_a_token_whose_node_has_joined_is_left_to_expire(world: Any) -> None:
    token = await _joined(world)
    await _left(world, token, TTL / 2)
    before = await world.expiration(token)
    await world.judge.patch(Machine, ObjectKey(NS, "m1"), {"status": {"nodeRef": {"name": "n"}}}, subresource="status")

    assert await world.reconcile() is None
    assert await world.expiration(token) == before


async def test_a_pool_that_waits_for_nodes_keeps_its_token(world: Any) -> None:
    token = await _joined(world, "pool_config", replicas=2, nodes=1)
    await _left(world, token, TTL * 3 / 4)

    assert await world.reconcile("mp1") == CHECK
    assert await world.expiration(token) == world.clock.now() + TTL
    assert await world.token("mp1") == token


async def test_a_complete_pool_keeps_its_token_for_half_of_its_life(world: Any) -> None:
    token = await _joined(world, "pool_config", replicas=1, nodes=1)
    await _left(world, token, TTL * 3 / 4)
    before = await world.expiration(token)

    assert await world.reconcile("mp1") == CHECK
    assert await world.expiration(token) == before


async def test_a_complete_pool_gets_a_new_token_after_half_of_its_life(world: Any) -> None:
    token = await _joined(world, "pool_config", replicas=1, nodes=1)
    await _left(world, token, TTL * 4 / 10)

    assert await world.reconcile("mp1") == CHECK
    new = await world.token("mp1")
    assert new != token
    assert len(await world.tokens()) == 2
    assert await world.expiration(new) == world.clock.now() + TTL
    assert new in await world.data("mp1")


async def test_a_lost_token_of_a_machine_that_is_being_built_is_an_error_that_says_what_to_do(world: Any) -> None:
    token = await _joined(world, provider_id="dev://1")
    await world.remote.delete(Secret, ObjectKey("kube-system", tokens.secret_name(token)))

    error = await world.failing()
    assert "failed to get bootstrap token secret in order to refresh it" in error
    assert "delete the Machine" in error
    assert await world.token() == token
    assert await world.tokens() == []


@pytest.mark.parametrize("kind", ["worker", "control_plane_machine"])
async def test_an_unused_lost_token_is_created_again(world: Any, kind: str) -> None:
    """Ruling: token and data are recreated while the infrastructure has not consumed them."""
    token = await _joined(world, kind)
    await world.remote.delete(Secret, ObjectKey("kube-system", tokens.secret_name(token)))

    assert await world.reconcile() == CHECK
    new = await world.token()
    assert new != token
    assert new in await world.data()
    assert ("controlPlane" in (await world.documents())[0]) == (kind == "control_plane_machine")


async def test_a_lost_token_of_a_pool_is_created_again(world: Any) -> None:
    token = await _joined(world, "pool_config")
    await world.remote.delete(Secret, ObjectKey("kube-system", tokens.secret_name(token)))

    assert await world.reconcile("mp1") == CHECK
    assert await world.token("mp1") != token
    assert len(await world.tokens()) == 1


async def test_a_token_without_end_is_given_one(world: Any) -> None:
    token = await _joined(world)
    await world.set_expiration(token, None)

    await world.reconcile()

    assert await world.expiration(token) == world.clock.now() + TTL


async def test_a_complete_pool_with_a_token_without_end_is_an_error(world: Any) -> None:
    token = await _joined(world, "pool_config", replicas=1, nodes=1)
    await world.set_expiration(token, None)

    assert "can't parse expiration time of bootstrap token" in await world.failing("mp1")
    assert await world.token("mp1") == token


@pytest.mark.parametrize(("seconds", "prolonged"), [(0, False), (-1, True)])
async def test_at_exactly_five_sixths_a_token_is_not_yet_prolonged(world: Any, seconds: int, prolonged: bool) -> None:
    token = await _joined(world)
    await _left(world, token, TTL * 5 / 6 + timedelta(seconds=seconds))
    before = await world.expiration(token)

    await world.reconcile()

    assert (await world.expiration(token) != before) is prolonged


async def test_a_rotation_that_fails_keeps_the_old_token(world: Any) -> None:
    """Ruling: the old token stays in the spec until the new one exists."""
    token = await _joined(world, "pool_config", replicas=1, nodes=1)
    await _left(world, token, TTL / 4)
    world.refuse_remote("POST", "/secrets$")

    assert "failed to create new bootstrap token" in await world.failing("mp1")
    assert await world.token("mp1") == token
    world.remote_transport.refusals.clear()
    assert await world.reconcile("mp1") == CHECK
    assert await world.token("mp1") != token


async def test_the_ttl_is_an_option(new_world: Any) -> None:
    world = await new_world(options={"bootstrap-token-ttl": timedelta(hours=1)})
    await world.cluster(initialized=True)
    await world.certificates()
    await world.worker()

    assert await world.reconcile() == 1200
    assert await world.expiration(await world.token()) == world.clock.now() + timedelta(hours=1)


async def test_a_pool_that_is_scaled_goes_from_rotation_to_refresh(world: Any) -> None:
    token = await _joined(world, "pool_config", replicas=1, nodes=1)
    await world.judge.patch(MachinePool, ObjectKey(NS, "mp1"), {"spec": {"replicas": 3}})
    await _left(world, token, TTL / 4)

    await world.reconcile("mp1")

    assert await world.token("mp1") == token
    assert await world.expiration(token) == world.clock.now() + TTL


FROM = {"files": [{"path": "/a", "contentFrom": {"secret": {"name": "s", "key": "k"}}}]}


@pytest.mark.parametrize("form", ["cloud-config", "ignition"])
@pytest.mark.parametrize(("kind", "nodes"), [("pool_config", 1), ("pool_config", 0), ("worker", 0)])
async def test_data_with_an_old_token_is_rewritten_once_possible(world: Any, kind: str, nodes: int, form: str) -> None:
    """A pass makes a new token and then fails: the spec has the new one, the data still the old."""
    await world.secret("s", {"k": "v"})
    how = {"replicas": 1, "nodes": nodes} if kind == "pool_config" else {}
    token = await _joined(world, kind, spec=FROM | {"format": form}, **how)
    name = "mp1" if kind == "pool_config" else "m1"
    await world.remote.delete(Secret, ObjectKey("kube-system", tokens.secret_name(token)))
    await world.delete(Secret, "s")
    await world.failing(name)
    new = await world.token(name)
    assert new != token
    assert token in await world.data(name)
    await world.secret("s", {"k": "v"})

    assert await world.reconcile(name) == CHECK

    assert await world.token(name) == new
    assert new in await world.data(name)
    assert token not in await world.data(name)
    world.transport.writes.clear()
    assert await world.reconcile(name) == CHECK
    assert not any("secrets" in path for _, path in world.transport.writes)


async def test_data_for_init_is_never_turned_into_data_for_a_join(world: Any) -> None:
    await world.cluster()
    await world.certificates()
    token = "abcdef.0123456789abcdef"
    await world.control_plane_machine(spec={"joinConfiguration": {"discovery": {"bootstrapToken": {"token": token}}}})
    await world.reconcile()
    await world.set_initialized()
    await world.remote.create(tokens.token_secret(token, now=world.clock.now(), ttl=TTL))

    assert await world.reconcile() == CHECK
    assert "kubeadm init" in await world.data()
