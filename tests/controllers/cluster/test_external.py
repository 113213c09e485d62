"""Provider objects by contract, and who belongs to whom."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clusterwright.api.core import ContractVersionedObjectReference
from clusterwright.api.meta import ObjectMeta, OwnerReference
from clusterwright.controllers.external import (
    AlreadyControlled,
    ContractUnknown,
    get_external,
    group_of,
    is_owned_by,
    with_owner,
)
from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.clock import utc
from clusterwright.runtime.errors import NotFound, ServerError
from clusterwright.runtime.keys import sample_keys
from seeds.seed_worlds import INFRASTRUCTURE, NAMESPACE, crd, infrastructure

REFERENCE = ContractVersionedObjectReference(api_group=INFRASTRUCTURE["apiGroup"], kind=INFRASTRUCTURE["kind"], name=INFRASTRUCTURE["name"])


def read(*objects: dict[str, Any], **observed: Any) -> Any:
    observation = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "now": "2026-05-01T12:00:00Z", **observed}
    world = World(assemble([*objects, observation]), utc("2026-05-01T12:00:00Z"), sample_keys())
    return asyncio.run(get_external(world.client, REFERENCE, NAMESPACE))


def test_an_object_is_read_in_the_highest_version_of_the_newest_contract() -> None:
    found = read(crd(INFRASTRUCTURE, v1beta1="v3", v1beta2="v1alpha2_v1_v1beta7"), infrastructure())

    assert (found.contract, found.object.gvk.version) == ("v1beta2", "v1")


def test_only_a_missing_object_is_not_found() -> None:
    with pytest.raises(NotFound):
        read(crd(INFRASTRUCTURE, v1beta2="v1"))


def test_a_missing_crd_is_not_a_missing_object() -> None:
    with pytest.raises(ContractUnknown, match="CustomResourceDefinition"):
        read(infrastructure())


def test_a_crd_without_labels_names_no_contract() -> None:
    with pytest.raises(ContractUnknown, match="contract"):
        read(crd(INFRASTRUCTURE), infrastructure())


def test_other_errors_are_raised_unchanged() -> None:
    with pytest.raises(ServerError):
        read(
            crd(INFRASTRUCTURE, v1beta2="v1"),
            infrastructure(),
            unreadable=[{"kind": "ExampleCluster", "namespace": NAMESPACE, "name": "infra"}],
        )


# ------------------------------------------------------------------------------------------------ ownership


def owner(api_version: str = "a.io/v1", kind: str = "K", name: str = "n", **more: Any) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid="u", **more)


def test_an_owner_is_identified_by_group_kind_and_name_in_any_version() -> None:
    metadata = ObjectMeta(owner_references=(owner("a.io/v7"),))

    assert is_owned_by(metadata, "a.io", "K", "n")
    assert not is_owned_by(metadata, "b.io", "K", "n")
    assert not is_owned_by(metadata, "a.io", "K", "m")


def test_an_owner_takes_the_place_of_its_older_reference() -> None:
    first, second, new = owner("b.io/v1"), owner("a.io/v1"), owner("a.io/v2")

    assert with_owner([first, second], new) == (first, new)
    assert with_owner([first], new) == (first, new)


def test_there_is_only_one_controller() -> None:
    mine, theirs = owner(controller=True), owner("b.io/v1", controller=True)

    with pytest.raises(AlreadyControlled, match="K controller n"):
        with_owner([theirs], mine)
    assert with_owner([theirs], owner()) == (theirs, owner())


@pytest.mark.parametrize(("api_version", "group"), [("v1", ""), ("a.io/v1", "a.io")])
def test_the_group_of_an_api_version(api_version: str, group: str) -> None:
    assert group_of(api_version) == group


@pytest.mark.parametrize("api_version", ["", "a/b/c", "/v1", "a/"])
def test_an_invalid_api_version_is_an_error(api_version: str) -> None:
    with pytest.raises(ValueError, match="unexpected GroupVersion"):
        group_of(api_version)


# --------------------------------------------------------------------------------------------------- fields
