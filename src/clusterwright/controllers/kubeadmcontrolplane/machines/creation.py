"""Create a Machine with its dependent objects; clean up after failures."""

from __future__ import annotations

from contextlib import suppress

from clusterwright.api.meta import GroupVersionKind, Unstructured
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CONTROL_PLANE_NAME_LABEL, REMEDIATION_IN_PROGRESS_ANNOTATION
from clusterwright.controllers.kit.lookup import Found
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane.conditions_v1beta1 import mark
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import MachineWriter, Run, annotate
from clusterwright.controllers.kubeadmcontrolplane.machines import desired
from clusterwright.controllers.kubeadmcontrolplane.machines.selection import domain_for_new
from clusterwright.controllers.kubeadmcontrolplane.names import FIELD_MANAGER, METADATA_MANAGER
from clusterwright.controllers.kubeadmcontrolplane.observing import KUBEADM_CONFIG
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneDone
from clusterwright.controllers.refusals import deleted_leftovers
from clusterwright.kubeadm.naming import BadNamingTemplate, machine_name, slot
from clusterwright.runtime.errors import ApiError, NotFound


async def create_machine(writer: MachineWriter, run: Run, *, join: bool) -> None:
    """Create an InfraMachine, a KubeadmConfig and a Machine. Raises PassFailed.

    The same situation gives the same name, so that a pass that does not see its own last creation repeats it and creates nothing new. After
    a refusal, remove what was created before; after a failure that may have taken effect, keep it for the next pass.
    """
    try:
        name = _next_name(writer, run.done)
        with writer.unconfirmed.creating(run.done.key, name):
            await _create(writer, run, name, join=join)
    except (ApiError, ValueError) as error:
        which = "additional" if join else "initial"
        text = f"Failed to create {which} control plane Machine for cluster {run.seen.cluster.key}: {error}"
        run.record("Warning", "FailedScaleUp" if join else "FailedInitialization", text)
        raise PassFailed(text) from error
    annotate(run, {REMEDIATION_IN_PROGRESS_ANNOTATION: None})


async def _create(writer: MachineWriter, run: Run, name: str, *, join: bool) -> None:
    seen, client = run.done, writer.deps.client
    owner, reference = seen.owner, seen.object.spec.machine_template.spec.infrastructure_ref
    if not isinstance(seen.template, Found):
        raise PassFailed(f"{reference.kind} {reference.name} does not exist")
    infrastructure = desired.new_infrastructure(owner, seen.template.object, name=name)
    config = desired.new_config(owner, name=name, join=join)
    machine = desired.new_machine(
        owner,
        name=name,
        failure_domain=domain_for_new(seen.owned, seen.cluster.failure_domains),
        infrastructure_ref={"apiGroup": reference.api_group, "kind": infrastructure["kind"], "name": name},
        config_ref={"apiGroup": KUBEADM_CONFIG.group, "kind": KUBEADM_CONFIG.kind, "name": name},
    )
    made: list[Unstructured] = []
    for intent, failure in (
        (infrastructure, "InfrastructureTemplateCloningFailed"),
        (config, "BootstrapTemplateCloningFailed"),
        (machine, "MachineGenerationFailed"),
    ):
        try:
            answer = await writer.applier.create(seen.key, intent, FIELD_MANAGER)
            if answer.metadata.deletion_timestamp is not None:
                # left from a creation that was refused: the name is free again when it is gone
                raise PassFailed(f"waiting for {answer.kind} {answer.key} to be deleted")
            if intent is not machine:
                made.append(answer)
                writer.applier.made_with(seen.key, answer, desired.metadata_intent(owner, answer), METADATA_MANAGER)
        except ApiError as error:
            run.mark(mark("MachinesCreated", "False", "Error", failure, str(error)))
            raise PassFailed("; ".join([str(error), *await deleted_leftovers(client, machine, made, error)])) from error


def _next_name(writer: MachineWriter, seen: ControlPlaneDone) -> str:
    """Return the name of a create request that got no answer, or else a new name. Raises PassFailed."""
    present = {m.name for m in seen.owned}
    for name in writer.unconfirmed.names(seen.key):
        if name not in present:
            return name
        writer.unconfirmed.confirm(seen.key, name)
    naming = seen.object.spec.machine_naming
    situation = [m.uid or m.name for m in seen.owned]
    if seen.remediation_in_progress is not None:
        situation.append(seen.remediation_in_progress)
    try:
        return machine_name(
            template=naming.template if naming is not None else "",
            cluster=seen.cluster.key.name,
            control_plane=seen.key.name,
            uid=seen.object.metadata.uid,
            slot=slot(situation),
            taken={*present, *seen.inspection.nodes, *(m.name for m in seen.inspection.members or ())},
        )
    except BadNamingTemplate as error:
        raise PassFailed(f"failed to compute desired Machine: cannot generate Machine name: {error}") from error


async def sweep(writer: MachineWriter, run: Run) -> None:
    """Delete the leftovers of a Machine that was never created: a KubeadmConfig and an InfraMachine that still belong to us."""
    seen, client = run.done, writer.deps.client
    reference, labels = seen.object.spec.machine_template.spec.infrastructure_ref, desired.labels(seen.owner)
    kinds = [KUBEADM_CONFIG]
    if isinstance(seen.template, Found) and reference.kind.endswith("Template"):
        version = seen.template.object.gvk.version
        kinds.append(GroupVersionKind(reference.api_group, version, reference.kind.removesuffix("Template")))
    selector = {name: labels[name] for name in (CLUSTER_NAME_LABEL, CONTROL_PLANE_NAME_LABEL)}
    uid, present = seen.object.metadata.uid, {*(m.name for m in seen.owned), *writer.unconfirmed.names(seen.key)}
    try:
        for kind in kinds:
            for obj in await client.list(kind, namespace=seen.key.namespace, labels=selector):
                metadata = obj.metadata
                is_ours = any(r.uid == uid for r in metadata.owner_references)
                if is_ours and metadata.name not in present and metadata.deletion_timestamp is None:
                    with suppress(NotFound):
                        await client.delete(kind, obj.key, uid=metadata.uid)
    except ApiError as error:
        raise PassFailed(f"failed to delete leftovers: {error}") from error
