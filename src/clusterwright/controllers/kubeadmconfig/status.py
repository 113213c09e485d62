"""What the status says at the end of a pass: the condition tables, then Ready as their summary, in both forms. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from clusterwright.api.bootstrap import (
    KubeadmConfig,
    KubeadmConfigDeprecatedStatus,
    KubeadmConfigInitializationStatus,
    KubeadmConfigV1Beta1DeprecatedStatus,
)
from clusterwright.api.meta import Condition, V1Beta1Condition
from clusterwright.api.reasons import KubeadmConfigCondition as Type
from clusterwright.api.reasons import KubeadmConfigReason as Reason
from clusterwright.conditions import Reasons, Reporter, Strategy, set_condition, summary, v1beta1
from clusterwright.controllers.kubeadmconfig.conditions import (
    CERTIFICATES_AVAILABLE,
    DATA_SECRET_AVAILABLE,
    V1BETA1_CERTIFICATES_AVAILABLE,
    V1BETA1_DATA_SECRET_AVAILABLE,
    Findings,
)

OWNED_CONDITIONS = (Type.READY, Type.CERTIFICATES_AVAILABLE, Type.DATA_SECRET_AVAILABLE, Type.PAUSED)
OWNED_V1BETA1_CONDITIONS = (Type.READY, Type.CERTIFICATES_AVAILABLE, Type.DATA_SECRET_AVAILABLE)
_INPUTS = (Type.DATA_SECRET_AVAILABLE, Type.CERTIFICATES_AVAILABLE)
_READY = Strategy(reasons=Reasons(Reason.NOT_READY, Reason.READY_UNKNOWN, Reason.READY))


def conclude(config: KubeadmConfig, findings: Findings, now: datetime) -> tuple[KubeadmConfig, Mapping[str, str]]:
    """The config with the conditions that the findings mean, and which row of which table said so."""
    rows: dict[str, str] = {}
    conditions, generation = config.status.conditions, config.metadata.generation
    for type_, table in ((Type.DATA_SECRET_AVAILABLE, DATA_SECRET_AVAILABLE), (Type.CERTIFICATES_AVAILABLE, CERTIFICATES_AVAILABLE)):
        decision = table.decide(findings)
        rows[table.name] = decision.row
        if decision.outcome is not None:
            said = Condition(type=type_, status=decision.outcome.status, reason=decision.outcome.reason, message=decision.outcome.message)
            conditions = set_condition(conditions, said, generation=generation, now=now)
    reporter = Reporter(config.kind, config.metadata.name, conditions)
    ready = summary(reporter, _INPUTS, target=Type.READY, strategy=_READY)
    conditions = set_condition(conditions, ready, generation=generation, now=now)
    old, old_rows = _v1beta1(config, findings, now)
    status = replace(config.status, conditions=conditions)
    if old != v1beta1.reporter_conditions(config):
        status = replace(status, deprecated=_deprecated(config, old))
    return replace(config, status=status), {**rows, **old_rows}


def _v1beta1(config: KubeadmConfig, findings: Findings, now: datetime) -> tuple[tuple[V1Beta1Condition, ...], Mapping[str, str]]:
    conditions = v1beta1.reporter_conditions(config)
    rows: dict[str, str] = {}
    for type_, table in (
        (Type.DATA_SECRET_AVAILABLE, V1BETA1_DATA_SECRET_AVAILABLE),
        (Type.CERTIFICATES_AVAILABLE, V1BETA1_CERTIFICATES_AVAILABLE),
    ):
        decision = table.decide(findings)
        rows[table.name] = decision.row
        said = decision.outcome
        if said is not None:
            condition = v1beta1.true(type_) if said.status == "True" else v1beta1.false(type_, said.reason, said.severity, said.message)
            conditions = v1beta1.set_condition(conditions, condition, now=now)
    ready = v1beta1.summary(config.kind, config.metadata.name, conditions, types=_INPUTS)
    return (conditions if ready is None else v1beta1.set_condition(conditions, ready, now=now)), rows


def _deprecated(config: KubeadmConfig, conditions: tuple[V1Beta1Condition, ...]) -> KubeadmConfigDeprecatedStatus:
    deprecated = config.status.deprecated or KubeadmConfigDeprecatedStatus()
    old = deprecated.v1beta1 or KubeadmConfigV1Beta1DeprecatedStatus()
    return replace(deprecated, v1beta1=replace(old, conditions=conditions))


def with_data_secret(config: KubeadmConfig, name: str) -> KubeadmConfig:
    """The config that tells its owner: the data is in this Secret."""
    initialization = replace(config.status.initialization or KubeadmConfigInitializationStatus(), data_secret_created=True)
    return replace(config, status=replace(config.status, data_secret_name=name, initialization=initialization))
