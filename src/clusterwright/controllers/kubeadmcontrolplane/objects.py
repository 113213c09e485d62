"""Creating Machines with what belongs to them, and keeping existing ones in step with the template."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from clusterwright.api.core import Machine
from clusterwright.api.core.shared import MachineDeletionSpec
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers import field_ownership as ownership
from clusterwright.controllers.applying import turn_of
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import desired, names
from clusterwright.controllers.kubeadmcontrolplane.observe import find_external
from clusterwright.controllers.kubeadmcontrolplane.scale import domain_for_new
from clusterwright.controllers.kubeadmcontrolplane.scope import KUBEADM_CONFIG, EndOfPass, Scope
from clusterwright.controllers.kubeadmcontrolplane.uptodate import is_cloned
from clusterwright.kubeadm.naming import BadNamingTemplate, machine_name, slot
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, Conflict, ConnectionFailed, NotFound, ServerTimeout

MACHINE = gvk_of(Machine)
_NODE_DELETION_DEFAULT = 10
_STRIP_TRIES = 3


# ----------------------------------------------------------------------------------------- creation


async def create_machine(scope: Scope, *, join: bool) -> None:
    """Create an InfraMachine, a KubeadmConfig and a Machine. Raises PassFailed.

    The name is the same whenever the situation is, so that a pass that does not see its own last creation repeats it and makes
    nothing new. What was made before a refusal is taken away again; after a failure that may have taken effect it stays, and
    the next pass goes on with it.
    """
    reason = "FailedScaleUp" if join else "FailedInitialization"
    try:
        await _create(scope, join=join)
    except (ApiError, BadNamingTemplate, ValueError) as error:
        text = f"Failed to create control plane Machine for cluster {scope.cluster_key} control plane: {error}"
        scope.dependencies.events.record(scope.control_plane, "Warning", reason, text)
        raise PassFailed(text) from error
    scope.annotations.pop(names.REMEDIATION_IN_PROGRESS, None)


async def _create(scope: Scope, *, join: bool) -> None:
    owner, client = scope.owner, scope.dependencies.client
    try:
        name = _next_name(scope)
    except BadNamingTemplate as error:
        raise PassFailed(f"failed to compute desired Machine: cannot generate Machine name: {error}") from error
    reference = scope.control_plane.spec.machine_template.spec.infrastructure_ref
    template = scope.template or await find_external(scope.dependencies, reference, scope.key.namespace)
    if template is None:
        raise PassFailed(f"{reference.kind} {reference.name} does not exist")
    infrastructure = desired.new_infrastructure(owner, template, name=name)
    config = desired.new_config(owner, name=name, join=join)
    machine = desired.new_machine(
        owner,
        name=name,
        failure_domain=domain_for_new(scope.all_machines, scope.failure_domains),
        infrastructure_ref={"apiGroup": reference.api_group, "kind": infrastructure["kind"], "name": name},
        config_ref={"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name},
    )
    made: list[Unstructured] = []
    for intent, failure in (
        (infrastructure, "InfrastructureTemplateCloningFailed"),
        (config, "BootstrapTemplateCloningFailed"),
        (machine, "MachineGenerationFailed"),
    ):
        try:
            async with turn_of(client, intent):  # or who adopts it gets between the two
                answer = await client.apply(intent, field_manager=names.FIELD_MANAGER)
                if answer.metadata.deletion_timestamp is not None:
                    # left from a creation that was refused: the name is free again when it is gone
                    raise PassFailed(f"waiting for {answer.kind} {answer.key} to be deleted")
                if intent is not machine:
                    made.append(answer)
                    await _give_up_metadata(client, answer)
        except ApiError as error:
            scope.set_v1beta1("MachinesCreated", "False", "Error", failure, str(error))
            errors = [str(error)]
            if await _was_refused(client, machine, error):
                errors += await _clean_up(client, made)
            raise PassFailed("; ".join(errors)) from error


def _next_name(scope: Scope) -> str:
    naming = scope.control_plane.spec.machine_naming
    situation = [m.uid or m.name for m in scope.machines.values()]
    if names.REMEDIATION_IN_PROGRESS in scope.annotations:
        situation.append(scope.annotations[names.REMEDIATION_IN_PROGRESS])
    taken = {*scope.machines, *scope.inspection.nodes, *(m.name for m in scope.inspection.members or ())}
    return machine_name(
        template=naming.template if naming is not None else "",
        cluster=scope.cluster.metadata.name,
        control_plane=scope.key.name,
        uid=scope.control_plane.metadata.uid,
        slot=slot(situation),
        taken=taken,
    )


async def _give_up_metadata(client: Client, created: Unstructured) -> None:
    """Leave labels and annotations to the metadata manager."""
    for attempt in range(1, _STRIP_TRIES + 1):
        patch = ownership.without_metadata_ownership(created.json, names.FIELD_MANAGER)
        if patch is None:
            return
        try:
            await client.patch(created.gvk, created.key, patch, type="json")
            return
        except Conflict:
            if attempt == _STRIP_TRIES:
                raise
        created = await client.live.get(created.gvk, created.key)


async def _was_refused(client: Client, machine: Json, error: ApiError) -> bool:
    """Whether there is certainly no Machine: not after a broken connection, nor where the API server shows one."""
    if isinstance(error, ConnectionFailed | ServerTimeout):
        return False
    try:
        return await client.live.find(MACHINE, ObjectKey(machine["metadata"]["namespace"], machine["metadata"]["name"])) is None
    except ApiError:
        return False


async def sweep(scope: Scope) -> None:
    """Delete what was made for a Machine that never came to be: a KubeadmConfig and an InfraMachine that still belong to us."""
    client, reference = scope.dependencies.client, scope.control_plane.spec.machine_template.spec.infrastructure_ref
    labels = {k: v for k, v in desired.labels(scope.owner).items() if k in {names.CLUSTER_NAME, names.CONTROL_PLANE_NAME}}
    kinds = [KUBEADM_CONFIG]
    if scope.template is not None and reference.kind.endswith("Template"):
        kinds.append(GroupVersionKind(reference.api_group, scope.template.gvk.version, reference.kind.removesuffix("Template")))
    uid = scope.control_plane.metadata.uid
    for kind in kinds:
        for obj in await client.list(kind, namespace=scope.key.namespace, labels=labels):
            metadata = obj.metadata
            is_ours = any(r.uid == uid for r in metadata.owner_references)
            if is_ours and metadata.name not in scope.machines and metadata.deletion_timestamp is None:
                with suppress(NotFound):
                    await client.delete(kind, obj.key, uid=metadata.uid)


async def _clean_up(client: Client, made: list[Unstructured]) -> list[str]:
    errors: list[str] = []
    for obj in made:
        try:
            await client.delete(obj.gvk, obj.key, uid=obj.metadata.uid)
        except NotFound:
            continue
        except ApiError as error:
            errors.append(f"failed to clean up {obj.kind} {obj.key}: {error}")
    return errors


# --------------------------------------------------------------------------------------- keeping in step


async def sync_machines(scope: Scope) -> None:
    """Bring metadata, timeouts and gates of every Machine, and metadata of what belongs to it, in step with the template.

    Raises EndOfPass after managedFields had to be mended (to look again soon) or a Machine was gone, PassFailed otherwise.
    """
    mended = False
    try:
        for name in sorted(scope.machines):
            machine = scope.machines[name]
            if machine.deleting:
                await _sync_deleting(scope, name)
                continue
            live = Unstructured(msgspec.json.decode(scope.originals[name].raw))
            intent = desired.updated_machine(scope.owner, machine)
            answer = await _ensure(scope, live, intent, names.FIELD_MANAGER, only_mend=mended)
            if answer is not None:
                mended |= answer is live
                scope.refresh(name, answer)
            for neighbour in ("infrastructure", "config"):
                obj = getattr(scope.machines[name], neighbour)
                if not isinstance(obj, Unstructured):
                    continue
                intent = desired.metadata_intent(scope.owner, obj)
                answer = await _ensure(scope, obj, intent, names.METADATA_MANAGER, only_mend=mended)
                if answer is not None:
                    mended |= answer is obj
                    scope.machines[name] = scope.machines[name].with_(**{neighbour: answer})
    except NotFound:
        raise EndOfPass from None
    except ApiError as error:
        raise PassFailed(f"failed to sync Machines: {error}") from error
    if mended:
        raise EndOfPass(names.SOON)


async def _ensure(scope: Scope, known: Unstructured, intent: Json, manager: str, *, only_mend: bool) -> Unstructured | None:
    """Apply the intent unless it is in force; what the API server answered, or None. `known` itself: its managedFields were mended.

    Caches do not keep managedFields. They are looked at once in the life of this process and object, and whenever the intent
    is new or its values are not there: then we may own what has to go.
    """
    client, identity, digest = scope.dependencies.client, (known.metadata.uid, manager), ownership.digest(intent)
    if scope.applied.get(identity) == digest and ownership.contains(known.json, intent):
        return None
    fresh = await client.live.get(known.gvk, known.key)
    repair = ownership.repaired(fresh.json, manager)
    if repair is not None:
        await client.patch(fresh.gvk, fresh.key, repair, type="json")
        return known
    if only_mend:
        return None
    answer: Unstructured | None = None
    if not ownership.is_in_force(fresh.json, intent, manager):
        answer = await client.apply(intent, field_manager=manager)
    scope.applied[identity] = digest
    return answer


async def _sync_deleting(scope: Scope, name: str) -> None:
    """A Machine on its way out only follows timeouts and taints."""
    original = scope.originals[name]
    template = scope.control_plane.spec.machine_template.spec
    wanted = template.deletion or MachineDeletionSpec()
    old = original.object.spec.deletion or MachineDeletionSpec()
    node_deletion = wanted.node_deletion_timeout_seconds
    deletion = replace(
        old,
        node_drain_timeout_seconds=wanted.node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds=wanted.node_volume_detach_timeout_seconds,
        node_deletion_timeout_seconds=_NODE_DELETION_DEFAULT if node_deletion is None else node_deletion,
    )
    after = replace(original.object, spec=replace(original.object.spec, deletion=deletion, taints=template.taints))
    answer = await scope.patcher.patch(original, after)
    if answer is not None:
        scope.refresh(name, answer)


# ------------------------------------------------------------------------------------- updates in place


async def trigger_in_place_update(scope: Scope, name: str) -> None:
    """Begin an update in place, or complete a beginning that was interrupted: every step may be repeated.

    The Machine is marked first and its hook last, so that the Machine controller acts on the whole. Raises PassFailed.
    """
    machine, owner, client = scope.machines[name], scope.owner, scope.dependencies.client
    where = f"failed to complete triggering in-place update for Machine {machine.key}, could not compute desired"
    if machine.infrastructure is None or scope.template is None or not is_cloned(machine):
        raise PassFailed(f"{where} InfraMachine")
    if machine.config is None:
        raise PassFailed(f"{where} KubeadmConfig")
    mark = {names.UPDATE_IN_PROGRESS: ""}
    try:
        if not machine.update_in_progress:
            await _annotate(scope, name, mark)
        infrastructure = desired.new_infrastructure(owner, scope.template, name=machine.infrastructure.key.name)
        await client.apply(
            _spec_intent(machine.infrastructure, infrastructure.get("spec"), {**desired.cloned_from(owner), **mark}),
            field_manager=names.FIELD_MANAGER,
        )
        config = desired.config_spec(owner, join=True)
        if machine.config.at("spec", "initConfiguration") is not None:
            await client.patch(machine.config.gvk, machine.config.key, {"spec": {"initConfiguration": None}})
        await client.apply(_spec_intent(machine.config, config, mark), field_manager=names.FIELD_MANAGER)
        intent = desired.updated_machine(owner, scope.machines[name], version=owner.version)
        await client.apply(intent, field_manager=names.FIELD_MANAGER)
        hooks = [h for h in scope.machines[name].annotations.get(names.PENDING_HOOKS, "").split(",") if h]
        if "UpdateMachine" not in hooks:
            await _annotate(scope, name, {names.PENDING_HOOKS: ",".join(sorted([*hooks, "UpdateMachine"]))}, last=True)
    except ApiError as error:
        raise PassFailed(f"failed to trigger in-place update for Machine {machine.key}: {error}") from error
    scope.dependencies.events.record(
        scope.control_plane, "Normal", "SuccessfulStartInPlaceUpdate", f"Machine {name} starting in-place update"
    )


def _spec_intent(obj: Unstructured, spec: object, annotations: dict[str, str]) -> Json:
    metadata = obj.metadata
    return {
        "apiVersion": str(obj.json.get("apiVersion", "")),
        "kind": obj.kind,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid, "annotations": annotations},
        **({"spec": spec} if spec else {}),
    }


async def _annotate(scope: Scope, name: str, annotations: dict[str, str], *, last: bool = False) -> None:
    """Annotate the Machine; after the `last` step the scope keeps the Machine as this pass judged it."""
    answer = await scope.dependencies.client.patch(MACHINE, scope.machines[name].key, {"metadata": {"annotations": annotations}})
    if not last:
        scope.refresh(name, answer)
