"""A pass over a MachineSet works out again only what has changed: with hundreds of Machines the rest would be most of its time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clusterwright.api.core import Machine, MachineSet
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.controllers.machineset import desired
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.testing import virtual_plane


def test_the_state_of_a_machine_is_worked_out_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def count(name: str) -> None:
        make = getattr(desired, name)

        def counted(*args: Any, **options: Any) -> Json:
            asked.append(name)
            return dict(make(*args, **options))

        monkeypatch.setattr(desired, name, counted)

    for name in ("updated_machine", "metadata_intent"):
        count(name)

    async def main() -> None:
        async with virtual_plane() as p:
            await p.apply(samples.cluster("c", has_control_plane_object=True))
            await p.apply(samples.control_plane("c", replicas=1))
            await p.apply(samples.workers("c", "w", replicas=3))
            await p.until_available("c", control_plane=1, workers=3)
            await asyncio.sleep(30)
            (machines,) = await p.client.list(MachineSet)

            async def after(patch: Json, kind: Any, key: ObjectKey) -> dict[str, int]:
                asked.clear()
                await p.client.patch(kind, key, patch)
                await asyncio.sleep(5)
                return {name: asked.count(name) for name in ("updated_machine", "metadata_intent")}

            nothing = await after({"metadata": {"annotations": {"note": "1"}}}, MachineSet, machines.key)
            assert nothing == {"updated_machine": 0, "metadata_intent": 0}, "a pass over Machines that are in step"

            label = {"spec": {"template": {"metadata": {"labels": {"tier": "gold"}}}}}
            every = await after(label, MachineSet, machines.key)
            assert every["updated_machine"] >= 3
            assert every["metadata_intent"] >= 6
            found = await p.client.list(Machine, labels={"tier": "gold"})
            assert len(found) == 3

            one = await after({"metadata": {"labels": {"tier": "lead"}}}, Machine, found[0].key)
            assert one["updated_machine"] <= 2, "only the Machine that somebody has changed"
            assert len(await p.client.list(Machine, labels={"tier": "gold"})) == 3

    run_virtual(main())
