"""Answer the questions of a computation: call extensions, remember blocking answers, and record pending hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from clusterwright.api.core import Cluster
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.wellknown import PENDING_HOOKS_ANNOTATION, UPGRADE_STEP_ANNOTATION
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError
from clusterwright.topology import hooks
from clusterwright.topology.answers import Answer, StandingAnswers
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError, Extensions, ListHandlers, Turn
from clusterwright.topology.hooks import AskHook, Computing, Mark

T = TypeVar("T")
_PLAN_FOR: Final = timedelta(minutes=10)


class Asker:
    """Asks extensions for all Clusters; it remembers blocking answers and plans by Cluster."""

    def __init__(self, client: Client, extensions: Extensions, now: Callable[[], datetime]) -> None:
        self._client = client
        self._extensions = extensions
        self._now = now
        self._standing = StandingAnswers()
        self._plans: dict[tuple[str, ...], tuple[datetime, Json]] = {}

    async def run(self, computing: Computing[T], cluster: Json) -> T:
        """Return the result of a computation on a Cluster. Raises what the computation raises."""
        pending = hooks.pending_hooks(cluster)
        try:
            question = next(computing)
            while True:
                try:
                    answer = await self._answer(question, cluster, pending)
                except ExtensionError as error:
                    question = computing.throw(error)
                else:
                    pending = question.pending if isinstance(question, Mark) else pending
                    question = computing.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _answer(self, question: Any, cluster: Json, pending: frozenset[str]) -> Any:
        match question:
            case AskHook():
                return await self.ask(question, cluster)
            case Mark(wanted, step):
                return await self.mark(cluster, pending, wanted, step)
            case CallHandler(hook="GenerateUpgradePlan"):
                return await self._plan(question)
            case CallHandler():
                return await self._extensions.call(question)
            case CallAll():
                return await self._extensions.call_all(question)
            case ListHandlers():
                return await self._extensions.handlers(question)
            case Turn():
                return await asyncio.sleep(0)
        raise AssertionError(f"{question!r} is not a question")

    async def _plan(self, question: CallHandler) -> Json:
        request, metadata = question.request, question.subject["metadata"]
        key = (
            metadata.get("uid", ""),
            question.handler,
            str(question.subject["spec"]["topology"].get("classRef")),
            request["fromControlPlaneKubernetesVersion"],
            request.get("fromWorkersKubernetesVersion", ""),
            request["toKubernetesVersion"],
        )
        kept = self._plans.get(key)
        if kept is not None and kept[0] > self._now():
            return kept[1]
        response = await self._extensions.call(question)
        self._plans = {k: v for k, v in self._plans.items() if v[0] > self._now()}
        self._plans[key] = (self._now() + _PLAN_FOR, response)
        return response

    async def ask(self, question: AskHook, cluster: Json) -> Answer:
        """Return the answer of a hook: a valid blocking one, or a new one. A hook without handlers does not block.

        Raises ExtensionError.
        """
        hook = question.hook
        if not await self._extensions.handlers(ListHandlers(hook, cluster)):
            return Answer()
        key = (hook, cluster["metadata"].get("uid", ""), question.version)
        standing = self._standing.of(key, self._now())
        if standing is not None:
            return standing
        answer = Answer.of(await self._extensions.call_all(CallAll(hook, cluster, question.request)))
        self._standing.keep(key, answer, self._now())
        return answer

    async def mark(self, cluster: Json, before: frozenset[str], pending: frozenset[str], step: str | None = None) -> None:
        """Record the pending hooks, and the step of the upgrade; `before` were pending. Raises ExtensionError."""
        if pending == before:
            return
        annotations: Json = {PENDING_HOOKS_ANNOTATION: hooks.as_annotation(pending)}
        if step is not None:
            annotations[UPGRADE_STEP_ANNOTATION] = step
        key = ObjectKey(cluster["metadata"].get("namespace", ""), cluster["metadata"]["name"])
        try:
            await self._client.patch(Cluster, key, {"metadata": {"annotations": annotations}})
        except ApiError as error:
            new, gone = sorted(pending - before), sorted(before - pending)
            text = f'mark "{",".join(new)}" hook(s) as pending' if new else f'mark "{",".join(gone)}" hook as done'
            raise ExtensionError(f"failed to {text}: {error}") from error


def marked(cluster: Json, pending: frozenset[str]) -> Json:
    """Return a Cluster whose annotation lists the pending hooks."""
    copy = {**cluster, "metadata": dict(cluster["metadata"])}
    hooks.note_pending(copy, pending)
    return copy
