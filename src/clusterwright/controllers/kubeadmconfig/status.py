"""The rest of the status at the end of a pass: the summary Ready, and the name of the Secret. Pure."""

from __future__ import annotations

from datetime import datetime

from clusterwright.api.bootstrap import KubeadmConfig, KubeadmConfigInitializationStatus
from clusterwright.api.copying import replace
from clusterwright.conditions import Reasons, Strategy, reporter, summary, v1beta1
from clusterwright.controllers.kit.conditions import v1beta1_conditions, with_condition, with_v1beta1

OWNED = ("Ready", "CertificatesAvailable", "DataSecretAvailable", "Paused")
OWNED_V1BETA1 = ("Ready", "CertificatesAvailable", "DataSecretAvailable")
_INPUTS = ("DataSecretAvailable", "CertificatesAvailable")
_READY = Strategy(reasons=Reasons("NotReady", "ReadyUnknown", "Ready"))


def with_ready(config: KubeadmConfig, now: datetime) -> KubeadmConfig:
    """Return the config with Ready in both forms."""
    ready = summary(reporter(config), _INPUTS, target="Ready", strategy=_READY)
    old = v1beta1.summary(config.kind, config.metadata.name, v1beta1_conditions(config), types=_INPUTS)
    return with_v1beta1(with_condition(config, ready, now), old, now)


def with_data_secret(config: KubeadmConfig, name: str) -> KubeadmConfig:
    """Return the config with the name of its data Secret, for its owner."""
    initialization = replace(config.status.initialization or KubeadmConfigInitializationStatus(), data_secret_created=True)
    return replace(config, status=replace(config.status, data_secret_name=name, initialization=initialization))
