"""Answers the questions of a computation: calls extensions, remembers who blocks, and writes down which hooks are pending."""

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


class HookError(ExtensionError):
    """A hook could not be asked, or its state could not be written. `hook` names it."""

    def __init__(self, text: str, hook: str = "") -> None:
        super().__init__(text)
        self.hook = hook


class Asker:
    """One for all Clusters: it remembers blocking answers, and plans, by Cluster."""

    def __init__(self, client: Client, extensions: Extensions, now: Callable[[], datetime]) -> None:
        self._client = client
        self._extensions = extensions
        self._now = now
        self._standing = StandingAnswers()
        self._plans: dict[tuple[str, ...], tuple[datetime, Json]] = {}

    async def run(self, computing: Computing[T], cluster: Json) -> T:
        """The result of a computation on a Cluster; marks are made in `cluster`, too."""
        try:
            question = next(computing)
            while True:
                try:
                    answer = await self._answer(question, cluster)
                except ExtensionError as error:
                    question = computing.throw(error)
                else:
                    question = computing.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _answer(self, question: Any, cluster: Json) -> Any:
        match question:
            case AskHook():
                return await self.ask(question, cluster)
            case Mark(pending, step):
                await self.mark(cluster, pending, step)
                return None
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
        raise AssertionError(f"{question!r} is no question")

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
        """What a hook answers: nobody registered, it is done; a blocking answer that still stands is not asked for again."""
        hook = question.hook
        if not await self._extensions.handlers(ListHandlers(hook, cluster)):
            return Answer()
        key = (hook, cluster["metadata"].get("uid", ""), question.version)
        standing = self._standing.of(key, self._now())
        if standing is not None:
            return standing
        try:
            response = await self._extensions.call_all(CallAll(hook, cluster, question.request))
        except ExtensionError as error:
            raise HookError(str(error), hook) from error
        answer = Answer.of(response)
        self._standing.keep(key, answer, self._now())
        return answer

    async def mark(self, cluster: Json, pending: frozenset[str], step: str | None = None) -> None:
        """Write down which hooks are pending, and the step of the upgrade with them."""
        before = hooks.pending_hooks(cluster)
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
            raise HookError(f"failed to {text}: {error}", (new or gone)[0]) from error
        hooks.note_pending(cluster, pending)
