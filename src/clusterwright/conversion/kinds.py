"""The kinds with old versions, and their rules beyond rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.api.scheme import SCHEME
from clusterwright.api.versions import HUB, definitions
from clusterwright.conversion import core, kubeadm, others
from clusterwright.conversion.adjustments import ADJUSTED, ADJUSTED_SPOKE, Adjustments
from clusterwright.conversion.pairs import DownHook, Pair, Row, UpHook
from clusterwright.conversion.types import Go, List, Struct, from_model, from_schema

MetadataHook = Callable[[Json, Go], None]
"""A function of (metadata of the result, hub) that changes either."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The conversion of a kind."""

    rows: tuple[Row, ...] = ()
    annotated: bool = False
    """Whether the old object has the whole hub object in an annotation."""
    up: UpHook | None = None
    down: DownHook | None = None
    metadata_up: MetadataHook | None = None
    metadata_down: MetadataHook | None = None


_ANNOTATED_MACHINE: Final = Rules(others.MACHINE, annotated=True)
_MACHINE_TEMPLATE: Final = Rules(others.MACHINE_TEMPLATE, annotated=True, up=others.machine_template_up)
RULES: Final[Mapping[str, Rules]] = {
    "Cluster": Rules(core.CLUSTER, annotated=True),
    "ClusterClass": Rules(core.CLUSTER_CLASS, annotated=True, down=core.class_down),
    "Machine": Rules(core.MACHINE, annotated=True, up=core.machine_up, down=core.machine_down),
    "MachineSet": Rules(core.MACHINE_SET),
    "MachineDeployment": Rules(core.MACHINE_DEPLOYMENT, annotated=True),
    "MachinePool": Rules(core.MACHINE_POOL, annotated=True),
    "MachineHealthCheck": Rules(core.MACHINE_HEALTH_CHECK, annotated=True),
    "MachineDrainRule": Rules(),
    "ClusterResourceSet": Rules(others.CLUSTER_RESOURCE_SET),
    "ClusterResourceSetBinding": Rules(others.CLUSTER_RESOURCE_SET_BINDING),
    "ExtensionConfig": Rules(others.EXTENSION_CONFIG),
    "IPAddress": Rules(others.IP_ADDRESS),
    "IPAddressClaim": Rules(others.IP_ADDRESS_CLAIM),
    "KubeadmConfig": Rules(kubeadm.KUBEADM_CONFIG, annotated=True),
    "KubeadmConfigTemplate": Rules(kubeadm.KUBEADM_CONFIG_TEMPLATE, annotated=True),
    "KubeadmControlPlane": Rules(kubeadm.KUBEADM_CONTROL_PLANE, annotated=True),
    "KubeadmControlPlaneTemplate": Rules(kubeadm.KUBEADM_CONTROL_PLANE_TEMPLATE, annotated=True, down=kubeadm.template_down),
    "DevCluster": Rules(others.DEV_CLUSTER, annotated=True),
    "DevClusterTemplate": Rules(others.DEV_CLUSTER_TEMPLATE),
    "DevMachine": _ANNOTATED_MACHINE,
    "DevMachineTemplate": _MACHINE_TEMPLATE,
    "DockerCluster": Rules(others.DOCKER_CLUSTER, annotated=True),
    "DockerClusterTemplate": Rules(others.DOCKER_CLUSTER_TEMPLATE),
    "DockerMachine": _ANNOTATED_MACHINE,
    "DockerMachineTemplate": _MACHINE_TEMPLATE,
    "DockerMachinePool": Rules(others.DOCKER_MACHINE_POOL, annotated=True),
    "DockerMachinePoolTemplate": Rules(),
}
BY_VERSION: Final[Mapping[tuple[str, str], Rules]] = {
    ("IPAddressClaim", "v1alpha1"): Rules(
        others.IP_ADDRESS_CLAIM_ALPHA,
        annotated=True,
        metadata_up=others.cluster_name_from_label,
        metadata_down=others.cluster_name_to_label,
    ),
}
"""Kinds of which one old version is converted differently."""


@dataclass(frozen=True, slots=True)
class Version:
    """One old version of a kind."""

    rules: Rules
    pair: Pair


@cache
def names() -> Mapping[tuple[str, str], str]:
    """Map group and kind to the name of the CRD."""
    return {(one["group"], one["names"]["kind"]): name for name, one in definitions().items()}


@cache
def version(group: str, kind: str, spoke: str) -> Version | None:
    """Return the conversion of a version, or None if that old version does not exist."""
    name = names().get((group, kind), "")
    found = definitions().get(name, {}).get("versions", {})
    if spoke == HUB or spoke not in found:
        return None
    rules = BY_VERSION.get((kind, spoke)) or RULES[kind]
    pair = Pair(_adjusted(from_schema(found[spoke]["schema"]), ADJUSTED_SPOKE), hub_type(group, kind), rules.rows)
    return Version(rules, pair)


@cache
def hub_type(group: str, kind: str) -> Struct:
    """Return the type of a kind in the hub: from data for the infrastructure kinds, from models for all others."""
    name = names()[group, kind]
    schema = definitions()[name]["versions"][HUB].get("schema")
    if schema is not None:
        return _adjusted(from_schema(schema), ADJUSTED)
    resource = SCHEME.by_plural(group, name.partition(".")[0])
    assert resource is not None
    return _adjusted(from_model(resource.model), ADJUSTED)


def _adjusted(root: Struct, places: Adjustments) -> Struct:
    """Return the adjustments beyond schemas and models: parsed tokens, pointers that print null, lists whose emptiness matters."""
    for name in ("apiVersion", "kind", "metadata"):
        root.fields.pop(name, None)
    _adjust(root, "", set(), places)
    return root


def _adjust(struct: Struct, above: str, seen: set[int], places: Adjustments) -> None:
    if id(struct) in seen:
        return
    seen.add(id(struct))
    for name, one in list(struct.fields.items()):
        found = places.get((above, name))
        if found is not None:
            struct.fields[name] = one = found(one)
        inner = one.type.item if isinstance(one.type, List) else one.type
        if isinstance(inner, Struct):
            _adjust(inner, name, seen, places)
