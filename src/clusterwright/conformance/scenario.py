"""The dynamic part: it creates, pauses, changes and deletes objects of a provider through the API, and records what happens.

The subjects, by purpose:

    first        paused by its annotation before it may be made, and again while it is deleted
    second       paused by its Cluster before it may be made; has labels added in place, and a finalizer of somebody else
    refused      writes of its status are refused for a while
    interrupted  the provider restarts while it is made
    scaled       of an InfraMachinePool: its MachinePool is scaled to two machines and back to one
    unowned      never has an owner
    managed      of an InfraCluster: has the annotation cluster.x-k8s.io/managed-by
"""

from __future__ import annotations

import asyncio
from functools import partial

from clusterwright.api.wellknown import MANAGED_BY_ANNOTATION, PAUSED_ANNOTATION
from clusterwright.conformance.evidence import IN_PLACE, MADE, SCALED, Run
from clusterwright.conformance.pools import SIZES, is_whole
from clusterwright.conformance.stage import NORMAL, Pace, Plan, Stage

__all__ = ["NORMAL", "Pace", "Plan", "Scenario"]


class Scenario(Stage):
    """One run over one kind."""

    async def play(self) -> Run:
        """Play everything, remove what was created, and return what happened."""
        async with self.recorder:
            try:
                await self._play()
            finally:
                await self._clean()
        if self.plan.writes is not None:
            self.run.writes = self.plan.writes()
        return self.run

    async def _play(self) -> None:
        pace = self.plan.pace
        await self._try_template()
        await self._create_subject("unowned")
        async with self._stage("unowned"):
            await asyncio.sleep(pace.settle)
        await self._own()
        await self._pause()
        await self._disturb()
        await self.recorder.until(lambda: self._is_made("interrupted"), pace.within)
        await asyncio.sleep(pace.settle)
        async with self._stage("steady"):
            await asyncio.sleep(pace.steady)
        await self._read_secrets()
        await self._read_machines()
        await self._touch()
        await self._resize()
        if self.plan.restart is not None:
            async with self._stage("restarted"):
                await self.plan.restart()
                await asyncio.sleep(pace.settle * 2)
        await self._read_events()
        await self._delete()

    async def _own(self) -> None:
        """Give the first two subjects their owners; they are paused, or have no data, so that nothing may be made yet."""
        if self.is_booted:
            await self._create_cluster(self._cluster_name("second"))
        for purpose in ("first", "second"):
            await self._create_subject(purpose, {} if self.is_booted else {PAUSED_ANNOTATION: ""})
            await self._create_owner(purpose, has_data=False)
        if self.seen.role == "InfraCluster":
            await self._create_subject("managed", {MANAGED_BY_ANNOTATION: "somebody"})
            await self._create_owner("managed", has_data=False)
        owned = [purpose for purpose in ("first", "second", "managed") if purpose in self.run.subjects]
        await self.recorder.until(lambda: all(map(self._is_owned, owned)), self.plan.pace.within)
        if self.is_booted:
            async with self._stage("without-data"):
                await asyncio.sleep(self.plan.pace.settle)

    async def _pause(self) -> None:
        """Pause one subject by its annotation and one by its Cluster, give them all they wait for, and let them continue."""
        await self._annotate("first", PAUSED_ANNOTATION, "")
        await self._pause_cluster(paused=True)
        await self._annotate("second", PAUSED_ANNOTATION, None)
        await asyncio.sleep(self.plan.pace.settle)  # what is on its way when the pause begins may arrive
        async with self._stage("paused-object"), self._stage("paused-cluster"):
            if self.is_booted:
                for purpose in ("first", "second"):
                    await self._give_data(purpose)
            await asyncio.sleep(self.plan.pace.settle * 2)
        if "managed" in self.run.subjects:
            self.run.spans["managed"] = (self.run.spans["paused-object"][0], self.run.spans["paused-object"][1])
        await self._pause_cluster(paused=False)
        await self._annotate("first", PAUSED_ANNOTATION, None)
        async with self._stage("resumed"):
            await self.recorder.until(lambda: self._is_made("first") and self._is_made("second"), self.plan.pace.within)
            await asyncio.sleep(self.plan.pace.settle)

    async def _disturb(self) -> None:
        """Create a subject whose status cannot be written for a while, and one during which the provider restarts."""
        pace = self.plan.pace
        async with self._refusing():
            await self._create_whole("refused")
            async with self._stage("refused"):
                await asyncio.sleep(pace.settle * 3)
        async with self._stage("recovered"):
            await self.recorder.until(lambda: self._is_made("refused"), pace.within)
            await asyncio.sleep(pace.settle)  # the last state is before the end
        await self._create_whole("interrupted")
        if self.plan.restart is not None:
            await self.recorder.until(lambda: self._is_begun("interrupted"), pace.settle * 2)
            await self.plan.restart()

    async def _touch(self) -> None:
        """Add a label and an annotation to a provisioned object, as in-place changes do."""
        async with self._stage("touched"):
            await self._patch("second", {"metadata": {"labels": {IN_PLACE: "yes"}, "annotations": {IN_PLACE: "yes"}}})
            await asyncio.sleep(self.plan.pace.settle * 2)

    def _has_size(self, size: int) -> bool:
        return is_whole(self.seen, self.run.subjects[SCALED].last, size)

    async def _resize(self) -> None:
        """Scale a pool to two machines and back."""
        if not self.is_pool:
            return
        await self._create_whole(SCALED)
        await self.recorder.until(lambda: self._is_made(SCALED), self.plan.pace.within)
        for stage, size in SIZES:
            async with self._stage(stage):
                await self._scale(size)
                await self.recorder.until(partial(self._has_size, size), self.plan.pace.within)
                await asyncio.sleep(self.plan.pace.settle)

    async def _delete(self) -> None:
        """Delete everything; the first subject is paused when its deletion begins."""
        pace = self.plan.pace
        await self._delete_subject("unowned")
        async with self._stage("unowned-deleted"):
            await self.recorder.until(lambda: self.run.subjects["unowned"].last is None, pace.within)
        await self._annotate("first", PAUSED_ANNOTATION, "")
        await asyncio.sleep(pace.settle)
        async with self._stage("paused-deletion"):
            await self._delete_subject("first")
            await asyncio.sleep(pace.settle * 2)
        await self._annotate("first", PAUSED_ANNOTATION, None)
        async with self._stage("deleted"):
            made = [purpose for purpose in MADE if purpose in self.run.subjects]
            for purpose in made:
                await self._delete_owner(purpose)
            await self._annotate_finalizer("second")
            await self.recorder.until(lambda: all(self.run.subjects[p].last is None for p in made), pace.within)
