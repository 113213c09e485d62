"""What the status says at the end of a pass, beside the conditions of the tables: Ready as their summary, and where the data is. Pure."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from clusterwright.api.bootstrap import KubeadmConfig, KubeadmConfigInitializationStatus
from clusterwright.api.reasons import KubeadmConfigCondition as Type
from clusterwright.api.reasons import KubeadmConfigReason as Reason
from clusterwright.conditions import Reasons, Strategy, reporter, summary, v1beta1
from clusterwright.controllers.kit.conditions import v1beta1_conditions, with_condition, with_v1beta1

OWNED = (Type.READY, Type.CERTIFICATES_AVAILABLE, Type.DATA_SECRET_AVAILABLE, Type.PAUSED)
OWNED_V1BETA1 = (Type.READY, Type.CERTIFICATES_AVAILABLE, Type.DATA_SECRET_AVAILABLE)
_INPUTS = (Type.DATA_SECRET_AVAILABLE, Type.CERTIFICATES_AVAILABLE)
_READY = Strategy(reasons=Reasons(Reason.NOT_READY, Reason.READY_UNKNOWN, Reason.READY))


def with_ready(config: KubeadmConfig, now: datetime) -> KubeadmConfig:
    """The config with Ready in both forms."""
    ready = summary(reporter(config), _INPUTS, target=Type.READY, strategy=_READY)
    old = v1beta1.summary(config.kind, config.metadata.name, v1beta1_conditions(config), types=_INPUTS)
    return with_v1beta1(with_condition(config, ready, now), old, now)


def with_data_secret(config: KubeadmConfig, name: str) -> KubeadmConfig:
    """The config that tells its owner: the data is in this Secret."""
    initialization = replace(config.status.initialization or KubeadmConfigInitializationStatus(), data_secret_created=True)
    return replace(config, status=replace(config.status, data_secret_name=name, initialization=initialization))
