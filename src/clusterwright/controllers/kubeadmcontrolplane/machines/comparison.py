"""Compare a Machine with the spec: the differences, and the UpToDate condition that reports them. Pure.

Specs are compared in the form that the models dump, so that absent and empty are equal where the API treats them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from clusterwright.api.bootstrap import KubeadmConfigSpec
from clusterwright.api.codec import convert, to_json
from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.machines.desired import Owner, cloned_from, config_spec
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine, Differences
from clusterwright.kubeadm.reached import runs
from clusterwright.tables import OTHERWISE, Because, Collect, Row, Table, false, guard, message, true

# ------------------------------------------------------------------------------------------- the condition


@guard("the API server's certificate expires within spec.rollout.before.certificatesExpiryDays")
def certificates_expiring(m: ControlPlaneMachine) -> bool:
    return m.differences.certificates_expiring


@guard("created before spec.rollout.after, which has passed")
def rollout_due(m: ControlPlaneMachine) -> bool:
    return m.differences.rollout_due


@guard("spec.version differs")
def other_version(m: ControlPlaneMachine) -> bool:
    return m.differences.wanted_version is not None


@guard("the KubeadmConfig is not what a Machine would get today")
def other_config(m: ControlPlaneMachine) -> bool:
    return m.differences.config


@guard("the InfraMachine was cloned from another template")
def other_infrastructure(m: ControlPlaneMachine) -> bool:
    return m.differences.infrastructure


@guard("an update in place is under way")
def updating(m: ControlPlaneMachine) -> bool:
    return m.is_updating


@message("Version <X>, <Y> required")
def version_text(m: ControlPlaneMachine) -> str:
    return f"Version {m.object.spec.version}, {m.differences.wanted_version} required"


@message("<Kind> is not up-to-date")
def infrastructure_text(m: ControlPlaneMachine) -> str:
    return f"{m.infrastructure_kind} is not up-to-date"


@message("* <what the Machine's Updating says>")
def updating_text(m: ControlPlaneMachine) -> str:
    said = m.condition("Updating")
    return f"* {(said.message if said is not None and said.status == 'True' else '') or 'In-place update in progress'}"


@guard("the kubelet runs another release than spec.version")
def other_kubelet(m: ControlPlaneMachine) -> bool:
    info = m.object.status.node_info
    return info is not None and bool(info.kubelet_version) and not runs(info.kubelet_version, m.object.spec.version)


@message("* Node.status.nodeInfo.kubeletVersion <X>, <Y> required")
def kubelet_text(m: ControlPlaneMachine) -> str:
    info = m.object.status.node_info
    return f"* Node.status.nodeInfo.kubeletVersion {info.kubelet_version if info is not None else ''}, {m.object.spec.version} required"


# fmt: off
UP_TO_DATE: Table[ControlPlaneMachine] = Table(
    names.UP_TO_DATE,
    Collect("outdated", false("NotUpToDate"),
        Because("certificates",   certificates_expiring, "Certificates will expire soon"),
        Because("rollout-after",  rollout_due,           "KubeadmControlPlane spec.rolloutAfter expired"),
        Because("version",        other_version,         version_text),
        Because("config",         other_config,          "KubeadmConfig is not up-to-date"),
        Because("infrastructure", other_infrastructure,  infrastructure_text),
    ),
    Row("updating",   updating,  false("Updating", updating_text)),
    Row("kubelet",    other_kubelet, false("Updating", kubelet_text)),
    Row("up-to-date", OTHERWISE, true("UpToDate")),
    about="whether a Machine matches the spec; set on the Machine",
)
# fmt: on


# ---------------------------------------------------------------------------------------------- comparison


def compare(owner: Owner, machine: ControlPlaneMachine, *, now: datetime) -> Differences:
    """Return what must be rolled out, if anything. Raises ValueError if the spec is invalid."""
    rollout = owner.spec.get("rollout") or {}
    days = (rollout.get("before") or {}).get("certificatesExpiryDays") or 0
    expiry = machine.object.status.certificates_expiry_date
    due = datetime.fromisoformat(rollout["after"]) if rollout.get("after") else None
    return Differences(
        certificates_expiring=bool(days) and expiry is not None and now + timedelta(days=days) > expiry,
        rollout_due=due is not None and machine.created is not None and machine.created < due < now,
        wanted_version=owner.version if machine.object.spec.version != owner.version else None,
        config=not config_matches(owner, machine),
        infrastructure=not infrastructure_matches(owner, machine),
    )


def infrastructure_matches(owner: Owner, machine: ControlPlaneMachine) -> bool:
    """Return whether the InfraMachine was cloned from the wanted template; unknown origin counts as a match."""
    if machine.infrastructure is None:
        return True
    found = machine.infrastructure.metadata.annotations
    wanted = cloned_from(owner)
    if any(key not in found for key in wanted):
        return True
    return all(found[key] == value for key, value in wanted.items())


def is_cloned(machine: ControlPlaneMachine) -> bool:
    """Return whether the InfraMachine records the template that it was cloned from."""
    found = machine.infrastructure.metadata.annotations if machine.infrastructure is not None else {}
    return CLONED_FROM_NAME_ANNOTATION in found and CLONED_FROM_GROUP_KIND_ANNOTATION in found


def config_matches(owner: Owner, machine: ControlPlaneMachine) -> bool:
    """Return whether the KubeadmConfig is what a joining (or, for the first Machine, an initializing) Machine would get now."""
    if machine.object.spec.bootstrap.config_ref is None or machine.config is None:
        return True
    found = machine.config.at("spec") or {}
    if _same(found, config_spec(owner, join=True), join=True):
        return True
    return _is_init(found) and _same(found, config_spec(owner, join=False), join=False)


def _is_init(spec: Mapping[str, Any]) -> bool:
    return (spec.get("joinConfiguration") or {}).get("controlPlane") is None


def joining_configs(owner: Owner, config: Unstructured) -> tuple[Json, Json]:
    """Return a KubeadmConfig's spec and the wanted one, both in the form for a joining Machine, normalised for comparison."""
    return _levelled(config.at("spec") or {}, config_spec(owner, join=True), join=True)


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any], *, join: bool) -> bool:
    current, desired = _levelled(found, wanted, join=join)
    return current == desired


def _levelled(found: Mapping[str, Any], wanted: Mapping[str, Any], *, join: bool) -> tuple[Json, Json]:
    current, desired = _dumped(found), _dumped(wanted)
    if join and _is_init(current):
        _to_join(current, desired)
    _align(current, desired)
    return _normalised(current), _normalised(desired)


def _dumped(spec: Mapping[str, Any]) -> Json:
    """Return the spec as its model dumps it, without empty lists and objects, except those with a meaning."""
    return to_json(convert(spec, KubeadmConfigSpec))


def _to_join(current: Json, desired: Json) -> None:
    init = current.pop("initConfiguration", {})
    join = current.setdefault("joinConfiguration", {})
    for field in ("timeouts", "patches", "skipPhases", "nodeRegistration"):
        _put(join, field, init.get(field))
    endpoint = init.get("localAPIEndpoint")
    join["controlPlane"] = {"localAPIEndpoint": endpoint} if endpoint else {}
    _put(join, "caCertPath", (desired.get("joinConfiguration") or {}).get("caCertPath"))


def _align(current: Json, desired: Json) -> None:
    """Ignore differences in fields that kubeadm or other controllers set and that never cause a rollout."""
    wanted = desired.get("clusterConfiguration") or {}
    cluster = current.setdefault("clusterConfiguration", {})
    for field in ("controlPlaneEndpoint", "dns"):
        _put(cluster, field, deepcopy(wanted.get(field)))


def _put(target: Json, field: str, value: Any) -> None:
    if value is None:
        target.pop(field, None)
    else:
        target[field] = value


def _normalised(spec: Json) -> Json:
    spec.setdefault("format", "cloud-config")
    for section in ("initConfiguration", "joinConfiguration"):
        part = spec.setdefault(section, {})
        part.setdefault("nodeRegistration", {}).setdefault("imagePullPolicy", "IfNotPresent")
        part.pop("discovery", None)
        part.get("timeouts", {}).pop("controlPlaneComponentHealthCheckSeconds", None)
    cluster = spec.get("clusterConfiguration") or {}
    etcd = cluster.get("etcd") or {}
    for part in (cluster.get("apiServer"), cluster.get("controllerManager"), cluster.get("scheduler"), etcd.get("local")):
        if part and not part.get("extraEnvs"):
            part.pop("extraEnvs", None)
    return _pruned(spec)


def _pruned(value: Json) -> Json:
    """Return the value without empty objects, except the one whose presence has a meaning."""
    out: Json = {}
    for key, item in value.items():
        if isinstance(item, dict):
            inner = _pruned(item)
            if inner or key == "controlPlane":
                out[key] = inner
        else:
            out[key] = item
    return out
