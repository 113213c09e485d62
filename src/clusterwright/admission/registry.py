"""The list of hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusterwright.admission.cluster import CLUSTER
from clusterwright.admission.clusterclass import CLUSTER_CLASS
from clusterwright.admission.clusterresourceset import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from clusterwright.admission.dev import DEV_CLUSTER, DEV_CLUSTER_TEMPLATE, DEV_MACHINE, DEV_MACHINE_TEMPLATE
from clusterwright.admission.docker import DOCKER_CLUSTER, DOCKER_CLUSTER_TEMPLATE
from clusterwright.admission.extensionconfig import EXTENSION_CONFIG
from clusterwright.admission.hook import Hook
from clusterwright.admission.ipam import IP_ADDRESS, IP_ADDRESS_CLAIM
from clusterwright.admission.ippools import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from clusterwright.admission.kubeadmconfig import KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE
from clusterwright.admission.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KUBEADM_CONTROL_PLANE_SCALE
from clusterwright.admission.kubeadmcontrolplanetemplate import KUBEADM_CONTROL_PLANE_TEMPLATE
from clusterwright.admission.machine import MACHINE
from clusterwright.admission.machinedeployment import MACHINE_DEPLOYMENT
from clusterwright.admission.machinedrainrule import MACHINE_DRAIN_RULE
from clusterwright.admission.machinehealthcheck import MACHINE_HEALTH_CHECK
from clusterwright.admission.machinepool import MACHINE_POOL
from clusterwright.admission.machineset import MACHINE_SET

HOOKS: Final = (
    CLUSTER,
    CLUSTER_CLASS,
    MACHINE,
    MACHINE_SET,
    MACHINE_DEPLOYMENT,
    MACHINE_POOL,
    MACHINE_HEALTH_CHECK,
    MACHINE_DRAIN_RULE,
    CLUSTER_RESOURCE_SET,
    CLUSTER_RESOURCE_SET_BINDING,
    EXTENSION_CONFIG,
    IP_ADDRESS,
    IP_ADDRESS_CLAIM,
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    KUBEADM_CONTROL_PLANE_SCALE,
    KUBEADM_CONTROL_PLANE_TEMPLATE,
    DEV_CLUSTER,
    DEV_CLUSTER_TEMPLATE,
    DEV_MACHINE,
    DEV_MACHINE_TEMPLATE,
)
UNMODELLED: Final = (DOCKER_CLUSTER, DOCKER_CLUSTER_TEMPLATE)
"""Hooks of kinds without a model."""
EMBEDDED: Final = (IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL)
"""Hooks of kinds that only the embedded plane serves."""
KEPT_ELSEWHERE: Final = {
    **{f"CEL-{n}": "a rule of the schema: api/rules.py" for n in range(1, 8)},
    **dict.fromkeys(("PA-15", "VAL-5", "VAR-7"), "a value that is no JSON is in no body that could be read"),
    "SC-3": "a body that is no Scale cannot be read: kubeadmcontrolplane.py",
    "SC-4": "a control plane that cannot be read: kubeadmcontrolplane.py",
}
"""Rules that are not rows, and where they are implemented."""
_BY_KIND: Final[Mapping[tuple[str, str, str], Hook]] = {
    (hook.kind.group, hook.kind.kind, hook.subresource): hook for hook in (*HOOKS, *UNMODELLED, *EMBEDDED)
}


def hook_for(group: str, kind: str, subresource: str = "") -> Hook | None:
    """Return the hook of a kind, or of a subresource of it; None if there is none."""
    return _BY_KIND.get((group, kind, subresource))
