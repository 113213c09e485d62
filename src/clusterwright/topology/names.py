"""Names of a topology's objects: from templates, with a part that depends only on the situation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from clusterwright import gotemplate
from clusterwright.golang.quoting import quote
from clusterwright.kubeadm.naming import MAX_LENGTH, suffix

CLUSTER_TEMPLATE: Final = "{{ .cluster.name }}-{{ .random }}"
MACHINE_DEPLOYMENT_TEMPLATE: Final = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
MACHINE_POOL_TEMPLATE: Final = "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"
_RANDOM_LENGTH: Final = 5


class BadName(ValueError):
    """A naming template yields no valid name."""


def templated(template: str, data: Mapping[str, Any], uid: str, slot: str) -> str:
    """Return the name from a naming template; raises BadName."""
    try:
        parsed = gotemplate.parse(template)
    except gotemplate.TemplateError as error:
        raise BadName(f"parsing template {quote(template)}: {error}") from None
    try:
        name = parsed.render({**data, "random": suffix(uid, slot)})
    except gotemplate.TemplateError as error:
        raise BadName(f"rendering template: {error}") from None
    return name if len(name) <= MAX_LENGTH else name[: MAX_LENGTH - _RANDOM_LENGTH] + suffix(uid, f"{slot}#")


def prefixed(prefix: str, uid: str, slot: str) -> str:
    """Return a prefix, cut to the longest allowed name, and the distinguishing suffix."""
    return prefix[: MAX_LENGTH - _RANDOM_LENGTH] + suffix(uid, slot)


def rotated(prefix: str, uid: str, slot: str, current: str, spec: Any) -> str:
    """Return the name of the template that replaces `current`: it depends only on that and the wanted spec."""
    digest = hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()
    return prefixed(prefix, uid, f"{slot}/{current}/{digest}")
