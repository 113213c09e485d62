"""Addons, runtime, IPAM and the infrastructure kinds, row by row."""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import Json
from clusterwright.conversion.pairs import Context, Row
from clusterwright.conversion.shapes import CONDITIONS, FAILURE_DOMAINS, status
from clusterwright.conversion.types import Go


def conditions_back(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Restore new conditions, which only the hub has."""
    if restored is not None and restored.get("conditions") is not None:
        hub["conditions"] = restored["conditions"]


CLUSTER_RESOURCE_SET: Final = (status(),)
CLUSTER_RESOURCE_SET_BINDING: Final = (Row("spec.bindings", rows=(Row("resources", rows=(Row("applied", plain=True),)),)),)
EXTENSION_CONFIG: Final = (status(),)
IP_ADDRESS: Final = (Row("spec.prefix", plain=True),)
IP_ADDRESS_CLAIM: Final = (status(),)
IP_ADDRESS_CLAIM_ALPHA: Final = (
    Row("", "spec.clusterName", lost=True),
    Row("status", rows=(CONDITIONS[0], Row("", "conditions", lost=True)), up=conditions_back),
)
_LABEL: Final = "cluster.x-k8s.io/cluster-name"
_LABEL_WAS_SET: Final = "conversion.cluster.x-k8s.io/cluster-name-label-set"


def cluster_name_to_label(metadata: Json, hub: Go) -> None:
    """Store the cluster name of a claim, which v1alpha1 lacks, in a label; an annotation records whether the label is new."""
    name = hub.get("spec", {}).get("clusterName", "")
    if not name:
        return
    labels = metadata["labels"] = metadata.get("labels") or {}
    if _LABEL not in labels:
        metadata["annotations"] = {**metadata.get("annotations", {}), _LABEL_WAS_SET: "false"}
    labels[_LABEL] = name


def cluster_name_from_label(metadata: Json, hub: Go) -> None:
    """Restore the cluster name from the label."""
    labels = metadata.get("labels")
    if not labels:
        return
    if labels.get(_LABEL):
        hub.setdefault("spec", {})["clusterName"] = labels[_LABEL]
    annotations = metadata.get("annotations", {})
    was_set = annotations.pop(_LABEL_WAS_SET, None)
    if was_set is not None and not annotations:
        del metadata["annotations"]
    if was_set == "false":
        labels.pop(_LABEL, None)
        if not labels:
            del metadata["labels"]


_PROVISIONED: Final = Row("ready", "initialization.provisioned", intent=True)
_DOMAINS: Final = Row("failureDomains", how=FAILURE_DOMAINS)
_BACKEND: Final = Row("backend.docker.failureDomains", how=FAILURE_DOMAINS)


def machine_template_up(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Restore the status of a machine template, which only the hub has."""
    if restored is not None and restored.get("status"):
        hub["status"] = restored["status"]


def _placement_back(spoke: Go, hub: Go, restored: Go | None, context: Context) -> None:
    """Restore the placement of a machine, which only the hub has."""
    if restored is not None and restored.get("failureDomain"):
        hub["failureDomain"] = restored["failureDomain"]


DEV_CLUSTER: Final = (Row("spec", rows=(_BACKEND,)), status(_PROVISIONED, _DOMAINS))
DEV_CLUSTER_TEMPLATE: Final = (Row("spec.template.spec", rows=(_BACKEND,)),)
DOCKER_CLUSTER: Final = (Row("spec", rows=(_DOMAINS,)), status(_PROVISIONED, _DOMAINS))
DOCKER_CLUSTER_TEMPLATE: Final = (Row("spec.template.spec", rows=(_DOMAINS,)),)
MACHINE: Final = (Row("status", rows=(*CONDITIONS, _PROVISIONED, Row("", "failureDomain", lost=True)), up=_placement_back),)
MACHINE_TEMPLATE: Final = (Row("", "status", lost=True),)
DOCKER_MACHINE_POOL: Final = (Row("status", rows=(CONDITIONS[0], Row("", "conditions", lost=True)), up=conditions_back),)
