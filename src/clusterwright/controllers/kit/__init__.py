"""The pass of all controllers, its parts, and the registry.

How to write a controller:

1. `snapshot.py`: two frozen dataclasses. `ThingSnapshot` derives from `kit.snapshots.Snapshot[Thing]` and has every fact that is read:
   lookups of provider objects (`kit.lookup`), and of other kinds a small frozen `Facts` with a constructor `of(obj)`. It is made once,
   by `observe`. `ThingDone` derives from `ThingSnapshot` and has the outcome of each step; its defaults mean that the step did nothing.
2. `guards.py`: questions about either of them (`@guard("the seed's words", about=...)`; `about` names the objects that were asked).
3. `plan.py`: tables of what to do. A row carries its `act`, a member of your own Enum whose value says it in words. A
   `Table[ThingSnapshot]` decides on what was read, a `Table[ThingDone]` may also ask for outcomes; mypy keeps them apart.
4. `conditions.py`: one table per condition, named for it; the v1beta1 twin is on the row (`v1beta1=false("Reason", severity="Info")`),
   or, where it is decided otherwise, a table of its own (`Table(..., v1beta1="Type")`).
5. `status.py`: phase (rows end in `Phase("Running")`) and counters, pure.
6. `reconciler.py`: a class that derives from `kit.reconciler.Kind[Thing, ClusterFacts, ThingSnapshot, ThingDone]`:

       class Things(Kind[Thing, ClusterFacts, ThingSnapshot, ThingDone]):
           async def owner(self, obj): return ClusterFacts.of(await self._deps.client.get(Cluster, ...))   # None: wait for it
           async def observe(self, obj, owner): return ThingSnapshot(object=obj, now=self._deps.clock.now(), ...)
           async def act(self, run):
               match run.decide(plan.STEPS).chosen(plan.Step):      # notes row, vote and error
                   case plan.Step.CREATE: ...                       # run.fail(text, cause), run.record(...), run.save(obj)
                   case None: pass
                   case never: assert_never(never)
               run.done = replace(run.done, created=True)           # run.seen stays as it was read
           def conclude(self, run): run.conclude(*conditions.TABLES)

       SHAPE = Shape(kind=Thing, done=ThingDone, finalizer="...", owned=("Paused", *(t.name for t in TABLES)))
       def make(deps): return KindReconciler(deps, SHAPE, Things(deps))

   A kind that does nothing that a table asks about uses `ThingSnapshot` for both. A second controller of a kind, or a kind without
   status: `Shape(main=False)`. A pass that waits before it acts returns the decision of a table from `unready`, `owner` or `observe`;
   `written` follows the patch.

7. `build.py`: `CONTROLLER = ControllerDefinition(...)` with its watches: named mappers of `kit.watching` and `runtime.mapping`, and
   `changed(Facts.of)` with the very Facts that the snapshot holds. A watch on anything else says `why`. The kind itself is watched anyway.
8. One line in `kit.registry.ENTRIES`, one in each import-linter contract on controllers, and `python -m tools.docs`.

You get: finalizer, pause, the one patch (observedGeneration moves when nothing failed), limits on conditions, the trace of the
rows that fired, Events for failures, and `PassFailed`: all errors of a pass joined, foreseen, and not in a hurry where only the
connection to a workload cluster is missing.
"""
