"""Decide whether a Secret with the name of a config is its bootstrap data, or another Secret that must not be touched. Pure."""

from __future__ import annotations

from typing import Final

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import GroupVersionKind, OwnerReference
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts
from clusterwright.kubeadm.certificates import SECRET_TYPE

DATA_KEYS: Final = frozenset({"value", "format"})
"""The keys of bootstrap data. A kubeconfig has no `format`, and certificates have other keys."""
_KEY_PAIR: Final = frozenset({"tls.crt", "tls.key"})


def why_foreign(secret: Secret, config: KubeadmConfig, cluster: ClusterFacts) -> str:
    """Return why the Secret must not be owned, replaced or deleted for the config; empty if it is the config's bootstrap data.

    The name of a config is a user's choice. Without this check, a user who may create a KubeadmConfig and a Machine, but no Secret,
    could replace and then delete any Secret of the namespace.
    """
    keys = frozenset(secret.data)
    if secret.type != SECRET_TYPE:
        return f"its type is {secret.type or 'Opaque'}, not {SECRET_TYPE}"
    if keys & _KEY_PAIR:
        return "it holds a certificate or its key"
    controller = secret.metadata.controller
    if controller is not None:
        return "" if _is_ours(controller, config) else f"{controller.kind} {controller.name} controls it"
    if not keys:
        return ""
    label = secret.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    if label != cluster.name:
        return f"nothing controls it and its label {CLUSTER_NAME_LABEL} is {label!r}, not {cluster.name!r}"
    return "" if keys == DATA_KEYS else "nothing controls it and it does not hold bootstrap data (the keys value and format)"


def _is_ours(controller: OwnerReference, config: KubeadmConfig) -> bool:
    """Return whether a reference names the config. The uid does not count: it changes when objects are moved or restored."""
    found, ours = (GroupVersionKind.of(r.api_version, r.kind) for r in (controller, config))
    return (found.group, controller.kind, controller.name) == (ours.group, config.kind, config.metadata.name)
