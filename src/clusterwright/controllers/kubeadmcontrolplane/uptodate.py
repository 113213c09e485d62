"""Whether a Machine is what the spec asks for. Pure.

Specs are compared as the models dump them, so that absent and empty are alike wherever the API says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from clusterwright.api.bootstrap import KubeadmConfigSpec
from clusterwright.api.codec import convert, to_json
from clusterwright.api.meta import Json
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.desired import Owner, cloned_from, config_spec
from clusterwright.controllers.kubeadmcontrolplane.machines import ControlPlaneMachine, UpToDate


def up_to_date(owner: Owner, machine: ControlPlaneMachine, *, now: datetime) -> UpToDate:
    """Why the Machine must be rolled out, if it must. Raises ValueError where the spec cannot be understood."""
    in_place = names.DELETE_MACHINE not in machine.annotations and names.REMEDIATE_MACHINE not in machine.annotations
    messages: list[str] = []
    rollout = owner.spec.get("rollout") or {}
    days = (rollout.get("before") or {}).get("certificatesExpiryDays") or 0
    if days and machine.certificates_expiry is not None and now + timedelta(days=days) > machine.certificates_expiry:
        messages.append("Certificates will expire soon")
        in_place = False
    due = datetime.fromisoformat(rollout["after"]) if rollout.get("after") else None
    if due is not None and machine.created is not None and machine.created < due < now:
        messages.append("KubeadmControlPlane spec.rolloutAfter expired")
        in_place = False
    if machine.version != owner.version:
        messages.append(f"Version {machine.version}, {owner.version} required")
    if not config_matches(owner, machine):
        messages.append("KubeadmConfig is not up-to-date")
    if not infrastructure_matches(owner, machine):
        messages.append(f"{machine.infrastructure_kind} is not up-to-date")
    return UpToDate(messages=tuple(messages), in_place=in_place and bool(messages))


def infrastructure_matches(owner: Owner, machine: ControlPlaneMachine) -> bool:
    """Whether the InfraMachine was cloned from the template that is wanted; what is not known counts as a match."""
    if machine.infrastructure is None:
        return True
    found = machine.infrastructure.metadata.annotations
    wanted = cloned_from(owner)
    if any(key not in found for key in wanted):
        return True
    return all(found[key] == value for key, value in wanted.items())


def is_cloned(machine: ControlPlaneMachine) -> bool:
    """Whether the InfraMachine says which template it was made from."""
    found = machine.infrastructure.metadata.annotations if machine.infrastructure is not None else {}
    return names.CLONED_FROM_NAME in found and names.CLONED_FROM_GROUP_KIND in found


def config_matches(owner: Owner, machine: ControlPlaneMachine) -> bool:
    """Whether the KubeadmConfig is what a joining (or, for the first Machine, an initializing) Machine would get today."""
    if not (machine.spec.get("bootstrap") or {}).get("configRef") or machine.config is None:
        return True
    found = machine.config.at("spec") or {}
    if _same(found, config_spec(owner, join=True), join=True):
        return True
    return _is_init(found) and _same(found, config_spec(owner, join=False), join=False)


def _is_init(spec: Mapping[str, Any]) -> bool:
    return (spec.get("joinConfiguration") or {}).get("controlPlane") is None


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any], *, join: bool) -> bool:
    current, desired = _dumped(found), _dumped(wanted)
    if join and _is_init(current):
        _to_join(current, desired)
    _align(current, desired)
    return _normalised(current) == _normalised(desired)


def _dumped(spec: Mapping[str, Any]) -> Json:
    """The spec as its model writes it: no empty lists and objects but those that mean something."""
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
    """What kubeadm or other flows set, and never a reason to roll out."""
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
    """Without empty objects, but for the one whose presence means something."""
    out: Json = {}
    for key, item in value.items():
        if isinstance(item, dict):
            inner = _pruned(item)
            if inner or key == "controlPlane":
                out[key] = inner
        else:
            out[key] = item
    return out
