"""The pass, the same for all kinds: read, owner, finalizer, pause, observe, act, conclude, patch, trace, result.

A kind says what it is (`Shape`) and fills in the steps that are its own (`Kind`); the order, the early exits, the one patch, the
Events, the trace and the way of failing are here and the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from clusterwright.api.meta import Object, ObjectKey, Unstructured
from clusterwright.conditions import ConditionConflict
from clusterwright.controllers.kit.owners import Owner
from clusterwright.controllers.kit.passing import Pass, Seen, failure
from clusterwright.controllers.wiring import PassTools
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError, NotFound, Terminal, is_expected
from clusterwright.runtime.finalizers import Finalization, ensure_finalizer, without_finalizer
from clusterwright.runtime.logging import leaves
from clusterwright.runtime.patch import Patcher
from clusterwright.runtime.paused import PAUSE, ensure_paused_condition
from clusterwright.runtime.reconcile import Result
from clusterwright.runtime.reports import Report, is_report
from clusterwright.tables import Decision

T = TypeVar("T", bound=Object)
O = TypeVar("O", bound=Owner)  # noqa: E741  # next to T and S, in that order, it is the owner
S = TypeVar("S", bound=Seen[Any])
D = TypeVar("D", bound=Seen[Any])

STEP = "reconcile"
"""The name under which traces show where a pass ended early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Generic[T]):
    """A reconciled kind as data."""

    kind: type[T]
    finalizer: str = ""
    """The finalizer; empty: there is nothing to clean up."""
    finalizer_in_act: bool = False
    """Whether the kind adds its finalizer itself (`Pass.save`) with another write, before it creates anything."""
    owned: tuple[str, ...]
    """The types of conditions that only this controller sets; it wins conflicts over them."""
    owned_v1beta1: tuple[str, ...] = ()
    done: type[Any] | None = None
    """The type of the pass's outcome, derived from the snapshot type. None: tables read only the snapshot and the changed object."""
    main: bool = True
    """Whether this is the kind's main controller: the one that writes the condition Paused and `status.observedGeneration`.

    Other controllers of the kind, and controllers of kinds without status, write neither; only a paused owner ends their passes.
    """


class Kind(Protocol[T, O, S, D]):
    """The steps of a pass that a kind defines. Derive from it: the optional ones have defaults."""

    async def owner(self, obj: T) -> O | Decision | None:
        """Return the facts of the owner, usually the Cluster. A paused owner ends the pass.

        None, or the decision that gives the reason, ends the pass: the owner does not exist yet, and its creation starts the next pass.
        """

    async def observe(self, obj: T, owner: O) -> S | Decision | None:
        """Read everything that decisions need into one frozen snapshot. A failed read is a value in it, which tables handle.

        None, or the decision that gives the reason, ends the pass: there is nothing to do for this object now.
        """

    async def act(self, run: Pass[T, S, D]) -> None:
        """Carry out what the tables decide.

        An ApiError (such as PassFailed) or Terminal ends this step; `conclude` still runs, then the pass fails.
        """

    def conclude(self, run: Pass[T, S, D]) -> None:
        """Let the condition tables decide, and set the rest of the status. Pure."""

    async def written(self, run: Pass[T, S, D]) -> None:
        """Carry out actions that must follow the patch. This is not called after a failure."""
        return

    def unready(self) -> Decision | None:
        """Return the decision that makes every pass of this kind wait now, or None."""
        return None

    def concerns(self, obj: T) -> bool:
        """Return whether this controller handles the object at all; otherwise it is left alone completely."""
        return True

    def forget(self, key: ObjectKey) -> None:
        """Drop the state that is kept about an object that is gone."""
        return

    async def gone(self, key: ObjectKey) -> None:
        """Handle an object that no longer existed when its pass began."""
        self.forget(key)


class KindReconciler(Generic[T, O, S, D]):
    """Reconciles one kind."""

    def __init__(self, deps: PassTools, shape: Shape[T], kind: Kind[T, O, S, D]) -> None:
        self._deps = deps
        self._shape = shape
        self._kind = kind
        self._patcher = Patcher(deps.client, deps.clock, deps.random)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Run one pass."""
        original: Original[T] | None = None
        if (unready := self._kind.unready()) is not None:
            return self._halt(key, unready)
        try:
            original = await self._deps.client.read(self._shape.kind, key)
            if original is None:
                self._deps.reports.leave(key)
                await self._kind.gone(key)
                return self._end(key, "not-found")
            run = await self._begin(original)
        except ApiError as error:
            self._end(key, "failed")
            if original is not None:
                self._tell(original.object, [error])
            raise
        if not isinstance(run, Pass):
            return run
        try:
            await self._kind.act(run)
        except (ApiError, Terminal) as error:
            run.fail(error)
        self._kind.conclude(run)
        self._deps.trace(key, run.rows)
        await self._write(run)
        if run.errors:
            raise failure(run.errors)
        await self._kind.written(run)
        return Result.soonest(*run.votes)

    async def _begin(self, original: Original[T]) -> Pass[T, S, D] | Result:
        """Return the object and its owner if there is something to do, else the result."""
        deps, key, shape = self._deps, original.object.key, self._shape
        if not self._kind.concerns(original.object):
            deps.reports.leave(key)
            self._kind.forget(key)
            return self._end(key, "not-ours")
        owner = await self._kind.owner(original.object)
        if owner is None or isinstance(owner, Decision):
            return self._end(key, "no-owner") if owner is None else self._halt(key, owner)
        if not shape.finalizer_in_act and await self._adds_finalizer(original):
            return self._end(key, "finalizer-added")
        paused, obj, rows = owner.paused, original.object, dict[str, str]()
        if shape.main:
            check = await ensure_paused_condition(self._patcher, deps.clock, original, cluster_paused=paused)
            paused, obj, rows = check.is_paused, check.object, {PAUSE.name: check.row}
            if check.is_news and not paused and deps.reports.wait(key) is None:  # a pass that comes to its end replaces this
                deps.reports.leave(key, [partial(self._report, obj, partial(self._patch, original, obj))])
        if paused:
            deps.reports.leave(key)
            return self._end(key, "paused", rows)
        seen = await self._kind.observe(obj, owner)
        if seen is None or isinstance(seen, Decision):
            return self._end(key, "nothing-to-do", rows) if seen is None else self._halt(key, seen, rows)
        step = "normal" if original.object.metadata.deletion_timestamp is None else "deleting"
        return Pass(original, seen, self._begun(seen), self._patch, {STEP: step, **rows})

    def _begun(self, seen: S) -> D:
        """Return the initial outcome of a pass: what was read."""
        done: Any = seen
        if self._shape.done is not None:
            done = self._shape.done(**{field.name: getattr(seen, field.name) for field in fields(done)})
        begun: D = done
        return begun

    async def _adds_finalizer(self, original: Original[T]) -> bool:
        finalizer = self._shape.finalizer
        return bool(finalizer) and await ensure_finalizer(self._patcher, original, finalizer) is Finalization.ADDED

    def _end(self, key: ObjectKey, step: str, rows: Mapping[str, str] | None = None) -> Result:
        """End the pass at a step before it acts."""
        self._deps.trace(key, {STEP: step, **(rows or {})})
        return Result.await_change()

    def _halt(self, key: ObjectKey, decision: Decision, rows: Mapping[str, str] | None = None) -> Result:
        """End the pass before it acts, as a table decided."""
        self._deps.trace(key, {STEP: decision.row, **(rows or {}), decision.table: decision.row})
        return Result.soonest(decision.requeue)

    async def _write(self, run: Pass[T, S, D]) -> None:
        """Write the patch; then record the Events, even if the patch failed."""
        before, after = run.original.object, run.object
        failed = bool(run.errors)
        complete = not failed
        if before.metadata.deletion_timestamp is not None and before.metadata.finalizers and not after.metadata.finalizers:
            # nobody will read the status of what is gone with this write
            self._kind.forget(before.key)
            after, complete = without_finalizer(before, self._shape.finalizer), False
        send = partial(self._patch, run.original, after, complete=complete)
        reports = list(run.reports)
        try:
            if is_report(before, after):
                reports += [partial(self._report, before, send)] if after != before else []
            else:
                await send()
        except (ApiError, ConditionConflict, ExceptionGroup) as error:
            for part in leaves(error):
                if isinstance(part, Exception):
                    run.fail(part)
        self._deps.reports.leave(before.key, reports)
        for event in run.events:
            self._deps.events.record(before, event.type, event.reason, event.message)
        self._tell(before, run.errors)

    async def _report(self, obj: T, send: Report) -> None:
        try:
            await send()
        except NotFound:
            return
        except (ApiError, ConditionConflict, ExceptionGroup) as error:
            self._tell(obj, [part for part in leaves(error) if isinstance(part, Exception)])
            raise

    def _tell(self, obj: T, errors: Sequence[Exception]) -> None:
        """Record failures as Events, even if nothing else can be written."""
        for text in dict.fromkeys(str(e) or type(e).__name__ for e in errors if not is_expected(e)):
            self._deps.events.record(obj, "Warning", "ReconcileError", text)

    async def _patch(self, original: Original[T], after: T, *, complete: bool = False) -> Unstructured | None:
        return await self._patcher.patch(
            original,
            after,
            owned_conditions=self._shape.owned,
            owned_v1beta1_conditions=self._shape.owned_v1beta1,
            observed_generation=complete and self._shape.main,
        )
