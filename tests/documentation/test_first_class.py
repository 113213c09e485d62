"""The story of docs/first-class.md, step by step, over the files and commands of the page."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml

from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import Node
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.runtime.errors import ApiError
from clusterwright.testing import Plane, with_plane
from documentation.outputs import ROOT

FOLDER = ROOT / "examples" / "first-class"
PAGE = (ROOT / "docs" / "first-class.md").read_text()
SHOP = ObjectKey("default", "shop")
CLASS = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "ClusterClass")


def files() -> list[str]:
    """The files that the page applies, in its order, each once."""
    return list(dict.fromkeys(re.findall(r"kubectl apply -f (\S+)", PAGE)))


def patches() -> list[Json]:
    """The patches of the Cluster on the page, in its order."""
    commands = re.findall(r"^    (kubectl patch cluster shop .*)$", PAGE, re.MULTILINE)
    return [yaml.safe_load(shlex.split(command)[-1]) for command in commands]


async def labels(plane: Plane) -> list[str | None]:
    """The label `environment` of the workers."""
    nodes = await plane.workload("shop").client.list(Node)
    return [n.metadata.labels.get("environment") for n in nodes if "node-role.kubernetes.io/control-plane" not in n.metadata.labels]


@with_plane()
async def test_a_newcomer_writes_a_class_and_uses_breaks_and_repairs_it(plane: Plane) -> None:
    assert files() == ["templates.yaml", "class.yaml", "cluster.yaml"]
    for file in files():
        await plane.apply(yaml.safe_load_all((FOLDER / file).read_text()))
    await plane.until_available("shop", workers=2)
    assert await labels(plane) == ["dev", "dev"]
    prod, refused, upgrade = patches()

    await plane.client.patch(Cluster, SHOP, prod)

    async def is_labelled() -> bool:
        return await labels(plane) == ["prod", "prod"]

    await plane.until(is_labelled, "the workers have the new label", within=600)

    with pytest.raises(ApiError, match='supported values: "dev", "prod"'):
        await plane.client.patch(Cluster, SHOP, refused)

    await plane.client.patch(Cluster, SHOP, upgrade)

    async def is_upgraded() -> bool:
        nodes = await plane.workload("shop").client.list(Node)
        return {n.status.node_info.kubelet_version for n in nodes} == {"v1.35.0"} and len(nodes) == 3

    await plane.until(is_upgraded, "all nodes are upgraded", within=1200)

    text = (FOLDER / "class.yaml").read_text()
    await plane.client.patch(CLASS, ObjectKey("default", "house"), _spec(text.replace("kubeletExtraArgs/-", "kubeletExtraArg/-")))

    async def names_the_patch() -> bool:
        told = await plane.condition(Cluster, "shop", "TopologyReconciled")
        return told is not None and told.status == "False" and "label-the-workers" in told.message

    await plane.until(names_the_patch, "the condition names the patch", within=120)
    await plane.client.patch(CLASS, ObjectKey("default", "house"), _spec(text))
    await plane.until_condition(Cluster, "shop", "TopologyReconciled", "True", within=120)

    with pytest.raises(ApiError, match="cannot be deleted because it is used by Cluster"):
        await plane.client.delete(CLASS, ObjectKey("default", "house"))
    await plane.client.delete(Cluster, SHOP)
    await plane.until_gone(Cluster, "shop")
    await plane.client.delete(CLASS, ObjectKey("default", "house"))


def _spec(text: str) -> Any:
    return {"spec": yaml.safe_load(text)["spec"]}
