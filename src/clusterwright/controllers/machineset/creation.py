"""Create Machines, each with its clones; clean up after failures."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from clusterwright.api.core import Machine
from clusterwright.api.meta import Json, ObjectKey, Unstructured
from clusterwright.api.scheme import gvk_of
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, MACHINE_SET_NAME_LABEL
from clusterwright.controllers.applying import Applier
from clusterwright.controllers.external import ContractUnknown, contract_of, get_external
from clusterwright.controllers.machineset import desired
from clusterwright.controllers.machineset.desired import FIELD_MANAGER, METADATA_MANAGER, Maker
from clusterwright.controllers.machineset.snapshot import Refusal
from clusterwright.controllers.refusals import deleted_leftovers
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound

MACHINE = gvk_of(Machine)
REFUSED = "MachineCreationFailed"
"""The reason of the deprecated condition after the API server refused a Machine."""


class CreationFailed(Exception):
    """A Machine could not be created. `refusal` is the text for the deprecated condition."""

    def __init__(self, refusal: Refusal, cause: Exception) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.__cause__ = cause


@dataclass(frozen=True, slots=True)
class Creator:
    """Creates Machines of one MachineSet."""

    client: Client
    applier: Applier
    maker: Maker

    @property
    def _owner(self) -> ObjectKey:
        return self.maker.metadata.key

    async def create(self, name: str, *, was_refused: bool) -> Unstructured:
        """Return a BootstrapConfig, an InfraMachine and a Machine, all of this name. Raises CreationFailed.

        After a refusal, delete what was created before. After a failure that may have taken effect, keep it: the next pass derives the same
        name and continues. Read both templates before creating anything: objects that are created and deleted requeue us, so that a missing
        template would cause an endless loop. For the same reason, start with a dry run of the Machine if the last one `was_refused` by a
        quota, a policy or a webhook.
        """
        maker, made = self.maker, list[Unstructured]()
        machine = desired.new_machine(maker, name)
        sources = [("InfrastructureTemplateCloningFailed", maker.infrastructure_ref)]
        if maker.config_ref is not None:
            sources.insert(0, ("BootstrapTemplateCloningFailed", maker.config_ref))
        templates = [await self._template(reason, reference) for reason, reference in sources]
        if was_refused:
            try:
                await self.client.apply(machine, field_manager=FIELD_MANAGER, dry_run=True)
            except ApiError as error:
                raise CreationFailed(Refusal(REFUSED, f"failed to create Machine {name}: {error}"), error) from error
        for (reason, reference), template in zip(sources, templates, strict=True):
            made.append(await self._clone(reason, reference, template, name, machine, made))  # what was made must be known
        try:
            return await self.applier.create(self._owner, machine, FIELD_MANAGER)
        except ApiError as error:
            raise await self._failed(REFUSED, f"failed to create Machine {name}: {error}", error, machine, made) from error

    def _text(self, reference: Mapping[str, Any], error: Exception) -> str:
        return f"failed to clone {reference.get('kind', '')} {self.maker.metadata.namespace}/{reference.get('name', '')}: {error}"

    async def _template(self, reason: str, reference: Mapping[str, Any]) -> Unstructured:
        """Return the referenced template. Raises CreationFailed."""
        try:
            return (await get_external(self.client, desired.typed_reference(reference), self.maker.metadata.namespace)).object
        except (ApiError, ContractUnknown) as error:
            raise CreationFailed(Refusal(reason, self._text(reference, error)), error) from error

    async def _clone(
        self, reason: str, reference: Mapping[str, Any], template: Unstructured, name: str, machine: Json, made: list[Unstructured]
    ) -> Unstructured:
        maker = self.maker
        mine: list[Unstructured] = []
        try:
            intent = desired.clone(maker, template, reference, name)
            clone = await self.applier.create(self._owner, intent, FIELD_MANAGER)
            mine.append(clone)
            if clone.metadata.deletion_timestamp is not None:
                # left from a creation that was refused: the name is free again when it is gone
                raise ApiError(f"waiting for {clone.kind} {clone.key} to be deleted")
            self.applier.made_with(self._owner, clone, desired.metadata_intent(maker, clone), METADATA_MANAGER)
            return clone
        except ApiError as error:
            raise await self._failed(reason, self._text(reference, error), error, machine, [*made, *mine]) from error

    async def _failed(self, reason: str, text: str, error: Exception, machine: Json, made: list[Unstructured]) -> CreationFailed:
        texts = [text, *await deleted_leftovers(self.client, machine, made, error)]
        return CreationFailed(Refusal(reason, "; ".join(texts)), error)

    async def sweep(self, names: set[str]) -> None:
        """Delete clones for Machines that were never created: they still belong to the MachineSet. `names` are those of all Machines."""
        maker = self.maker
        for reference in (maker.config_ref, maker.infrastructure_ref):
            if reference is None or not str(reference.get("kind", "")).endswith("Template"):
                continue
            await self._sweep(reference, names)

    async def _sweep(self, reference: Mapping[str, Any], names: set[str]) -> None:
        maker = self.maker
        labels = {k: v for k, v in maker.labels.items() if k in {CLUSTER_NAME_LABEL, MACHINE_SET_NAME_LABEL}}
        with suppress(ContractUnknown, NotFound):
            gvk = (await contract_of(self.client, str(reference.get("apiGroup", "")), str(reference["kind"]).removesuffix("Template"))).gvk
            for obj in await self.client.list(gvk, namespace=maker.metadata.namespace, labels=labels):
                metadata = obj.metadata
                is_ours = any(r.uid == maker.metadata.uid for r in metadata.owner_references)
                if is_ours and metadata.name not in names and metadata.deletion_timestamp is None:
                    with suppress(NotFound):
                        await self.client.delete(gvk, obj.key, uid=metadata.uid)
