# ruff: noqa: E501 - tables are laid out to be read as such
"""In-place updates: decide whether an outdated Machine can be updated in place, and start the update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from clusterwright.api.core import Machine
from clusterwright.api.meta import Json, Unstructured
from clusterwright.api.wellknown import (
    DELETE_MACHINE_ANNOTATION,
    PENDING_HOOKS_ANNOTATION,
    REMEDIATE_MACHINE_ANNOTATION,
    UPDATE_IN_PROGRESS_ANNOTATION,
)
from clusterwright.controllers.applying import take_over
from clusterwright.controllers.kit.lookup import Found
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run
from clusterwright.controllers.kubeadmcontrolplane.machines import desired
from clusterwright.controllers.kubeadmcontrolplane.machines.comparison import is_cloned, joining_configs
from clusterwright.controllers.kubeadmcontrolplane.machines.machine import ControlPlaneMachine
from clusterwright.controllers.kubeadmcontrolplane.names import FIELD_MANAGER, METADATA_MANAGER
from clusterwright.controllers.owned_machines import UPDATE_MACHINE_HOOK, pending_hooks
from clusterwright.controllers.update_advice import Hook
from clusterwright.controllers.update_patches import reduced
from clusterwright.golang.jsonpatch import PatchFailed
from clusterwright.runtime.errors import ApiError, Forbidden, Invalid
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, guard
from clusterwright.topology.extensions import ExtensionError

HOOK: Final = Hook(name="CanUpdateMachine", path=("spec",), machine="machine")
_MARK: Final = {UPDATE_IN_PROGRESS_ANNOTATION: ""}


# ----------------------------------------------------------------------------------------- whether it is tried


class Rollout(Enum):
    """How to bring the chosen Machine up to date."""

    REPLACE = "delete it"
    WAIT = "wait for the others to become healthy"
    ASK = "ask the runtime extension whether it can update it in place; delete it if not"


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceFacts:
    """The chosen Machine; whether the preflight checks pass with it, and without it."""

    machine: ControlPlaneMachine
    is_enabled: bool
    is_needed: bool
    passed: bool
    passed_without: bool


@guard("gate InPlaceUpdates")
def enabled(f: InPlaceFacts) -> bool:
    return f.is_enabled


@guard("somebody asked for its deletion or its remediation")
def marked(f: InPlaceFacts) -> bool:
    return bool({DELETE_MACHINE_ANNOTATION, REMEDIATE_MACHINE_ANNOTATION} & f.machine.annotations.keys())


@guard("a new Machine is wanted, whatever it is like: spec.rollout.after or before")
def renewal_wanted(f: InPlaceFacts) -> bool:
    return f.machine.differences.rollout_due or f.machine.differences.certificates_expiring


@guard("fewer Machines than wanted are what the spec asks for")
def needed(f: InPlaceFacts) -> bool:
    return f.is_needed


@guard("preflight checks pass")
def passed(f: InPlaceFacts) -> bool:
    return f.passed


@guard("preflight checks pass without it")
def passed_without(f: InPlaceFacts) -> bool:
    return f.passed_without


# fmt: off
IN_PLACE: Table[InPlaceFacts] = Table(
    "InPlaceUpdate",
    Row("disabled", ~enabled,                 KEEP, act=Rollout.REPLACE),
    Row("marked",   marked,                   KEEP, act=Rollout.REPLACE),
    Row("renewal",  renewal_wanted,           KEEP, act=Rollout.REPLACE),
    Row("enough",   ~needed,                  KEEP, act=Rollout.REPLACE),
    Row("ailing",   ~passed & passed_without, KEEP, act=Rollout.REPLACE),
    Row("blocked",  ~passed,                  KEEP, act=Rollout.WAIT),
    Row("ask",      OTHERWISE,                KEEP, act=Rollout.ASK),
    about="Whether the Machine chosen by a rollout is updated in place. A Machine that alone makes the preflight checks fail is replaced instead.",
)
# fmt: on


# ------------------------------------------------------------------------------------------------------ asking


async def can_update(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> bool:
    """Return whether an extension can update the Machine in place; False if there is none. Raises PassFailed."""
    try:
        return await _can_update(writer, run, machine)
    except (ApiError, ExtensionError, PatchFailed) as error:
        raise PassFailed(f"failed to determine if Machine {machine.name} can be updated in-place: {error}") from error


async def _can_update(writer: MachineWriter, run: Run, machine: ControlPlaneMachine) -> bool:
    seen, extensions = run.done, writer.deps.extensions
    if machine.infrastructure is None or machine.config is None or not isinstance(seen.template, Found) or not is_cloned(machine):
        return False
    subject: Json = dict(machine.stored.json)
    handler = await HOOK.handler(extensions, subject)
    if not handler:
        return False
    wanted = desired.updated_machine(seen.owner, machine.stored, version=seen.owner.version)
    desired_machine = await _levelled(writer, "desired Machine", wanted)
    template = desired.new_infrastructure(seen.owner, seen.template.object, name=machine.infrastructure.key.name)
    try:
        current_infrastructure = await _levelled(writer, "current InfraMachine", _like(machine.infrastructure.json, template["metadata"]))
        desired_infrastructure = await _levelled(writer, "desired InfraMachine", template)
    except PassFailed as error:
        if isinstance(error.__cause__, Invalid | Forbidden):  # who is asked about the change refuses it
            return False
        raise
    current_config, desired_config = joining_configs(seen.owner, machine.config)
    config = _like(machine.config.json, desired.new_config(seen.owner, name=machine.config.key.name, join=True)["metadata"])
    current = {
        "machine": reduced(subject),
        "infrastructureMachine": reduced(current_infrastructure),
        "bootstrapConfig": reduced({**config, "spec": current_config}),
    }
    target = {
        "machine": reduced(desired_machine),
        "infrastructureMachine": reduced(desired_infrastructure),
        "bootstrapConfig": reduced({**config, "spec": desired_config}),
    }
    return await HOOK.can_update(extensions, handler, subject, current, target)


async def _levelled(writer: MachineWriter, what: str, intent: Json) -> Json:
    """Return the object as the API server would store it, so that defaults are not differences. Raises PassFailed."""
    try:
        return dict((await writer.deps.client.apply(intent, field_manager=FIELD_MANAGER, dry_run=True)).json)
    except ApiError as error:
        text = f"failed to generate {HOOK.name} request: server side apply dry-run failed for {what}: {error}"
        raise PassFailed(text) from error


def _like(obj: Mapping[str, Any], metadata: Mapping[str, Any]) -> Json:
    """Return an object with the labels and annotations of another: those are synced without an update."""
    own = obj.get("metadata") or {}
    kept = {field: own[field] for field in ("name", "namespace") if field in own}
    changed = {field: dict(metadata[field]) for field in ("labels", "annotations") if metadata.get(field)}
    spec = {"spec": obj["spec"]} if obj.get("spec") is not None else {}
    return {"apiVersion": obj.get("apiVersion", ""), "kind": obj.get("kind", ""), "metadata": {**kept, **changed}, **spec}


# --------------------------------------------------------------------------------------------------- beginning


async def begin_update(writer: MachineWriter, run: Run, name: str) -> None:
    """Start an in-place update, or complete an interrupted start: every step may be repeated.

    The Machine is marked first and its hook set last, so that the Machine controller sees the complete update. Raises PassFailed.
    """
    machine, owner, client, template = run.done.machine(name), run.done.owner, writer.deps.client, run.seen.template
    where = f"failed to complete triggering in-place update for Machine {machine.key}"
    try:
        if not machine.is_marked_for_update:
            answer = await client.patch(Machine, machine.key, {"metadata": {"annotations": _MARK}})
            writer.replace_machine(run, name, answer)
        if machine.infrastructure is None or not isinstance(template, Found) or not is_cloned(machine):
            raise PassFailed(f"{where}, could not compute desired InfraMachine")
        if machine.config is None:
            raise PassFailed(f"{where}, could not compute desired KubeadmConfig")
        infrastructure = desired.new_infrastructure(owner, template.object, name=machine.infrastructure.key.name)
        for part in (machine.infrastructure, machine.config):
            await take_over(client, await client.live.get(part.gvk, part.key), FIELD_MANAGER, METADATA_MANAGER)
        await client.apply(
            _spec_intent(machine.infrastructure, infrastructure.get("spec"), {**desired.cloned_from(owner), **_MARK}),
            field_manager=FIELD_MANAGER,
        )
        if machine.config.at("spec", "initConfiguration") is not None:
            await client.patch(machine.config.gvk, machine.config.key, {"spec": {"initConfiguration": None}})
        config = desired.config_spec(owner, join=True)
        await client.apply(_spec_intent(machine.config, config, _MARK), field_manager=FIELD_MANAGER)
        machine = run.done.machine(name)
        await client.apply(desired.updated_machine(owner, machine.stored, version=owner.version), field_manager=FIELD_MANAGER)
        hooks = pending_hooks(machine.object)
        if UPDATE_MACHINE_HOOK not in hooks:
            pending = {PENDING_HOOKS_ANNOTATION: ",".join(sorted([*hooks, UPDATE_MACHINE_HOOK]))}
            # this pass goes on with the Machine as it judged it
            await client.patch(Machine, machine.key, {"metadata": {"annotations": pending}})
    except PassFailed:
        raise
    except ApiError as error:
        raise PassFailed(f"{where}: {error}") from error
    writer.deps.events.record(machine.object, "Normal", "SuccessfulStartInPlaceUpdate", "Machine starting in-place update")


def _spec_intent(obj: Unstructured, spec: object, annotations: dict[str, str]) -> Json:
    metadata = obj.metadata
    return {
        "apiVersion": str(obj.json.get("apiVersion", "")),
        "kind": obj.kind,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid, "annotations": annotations},
        **({"spec": spec} if spec else {}),
    }
