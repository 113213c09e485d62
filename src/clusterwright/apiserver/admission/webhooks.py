"""Admission webhooks declared by objects: which are called, in which order, and how answers are applied."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.selectors import Matcher, object_selector
from clusterwright.api.wire import UNREADABLE
from clusterwright.apiserver.admission.matching import Seen, request_of, seen_as, selected, targeted
from clusterwright.apiserver.attributes import Attributes
from clusterwright.apiserver.callouts import CalloutFailed
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.effort import metered
from clusterwright.apiserver.expressions import evaluate
from clusterwright.apiserver.patchtypes import jsonpatch
from clusterwright.apiserver.status import StatusError, failure, internal

_GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"mutatingwebhookconfigurations.{_GROUP}"
_VALIDATING: Final = f"validatingwebhookconfigurations.{_GROUP}"
_EXEMPT: Final = frozenset({"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of one configuration."""

    configuration: str
    name: str
    client: Json
    rules: tuple[Json, ...]
    failure_policy: str
    timeout: float
    namespace_selector: Matcher
    object_selector: Matcher
    match_conditions: tuple[Json, ...]
    side_effects: str
    reinvocation: str
    versions: tuple[str, ...]
    match_policy: str


def _webhook(configuration: str, hook: Json) -> Webhook:
    everything: Json = {}
    return Webhook(
        configuration=configuration,
        name=hook.get("name") or "",
        client=hook.get("clientConfig") or {},
        rules=tuple(hook.get("rules") or ()),
        failure_policy=hook.get("failurePolicy") or "Fail",
        timeout=float(hook.get("timeoutSeconds") or 10),
        namespace_selector=object_selector(hook.get("namespaceSelector") or everything),
        object_selector=object_selector(hook.get("objectSelector") or everything),
        match_conditions=tuple(hook.get("matchConditions") or ()),
        side_effects=hook.get("sideEffects") or "",
        reinvocation=hook.get("reinvocationPolicy") or "Never",
        versions=tuple(hook.get("admissionReviewVersions") or ("v1",)),
        match_policy=hook.get("matchPolicy") or "Equivalent",
    )


class Webhooks:
    """An admission link that calls the webhooks of the server's configurations."""

    def __init__(self, server: Core) -> None:
        self._server = server
        self._cache: dict[str, tuple[int, list[Webhook]]] = {}

    def _hooks(self, table_name: str) -> list[Webhook]:
        table = self._server.store.table(table_name)
        cached = self._cache.get(table_name)
        if cached is not None and cached[0] == table.rv:
            return cached[1]
        found: list[Webhook] = []
        for entry in table.range():  # by name of the configuration, then in their order
            configuration = msgspec.json.decode(entry.raw)
            found.extend(_webhook(entry.name, hook) for hook in configuration.get("webhooks") or ())
        self._cache[table_name] = (table.rv, found)
        return found

    async def mutate(self, attributes: Attributes) -> None:
        """Call the mutating webhooks one after the other, and those with reinvocationPolicy IfNeeded again after later changes."""
        hooks = self._hooks(_MUTATING)
        if not hooks or attributes.resource.plural in _EXEMPT:
            return
        changed_after: dict[str, bool] = {}
        for hook in hooks:
            seen = await self._seen(hook, attributes)
            if seen is not None and await self._ask_mutating(hook, attributes, seen):
                changed_after = dict.fromkeys(changed_after, True)
                changed_after[hook.name] = False
            else:
                changed_after.setdefault(hook.name, False)
        for hook in hooks:
            if hook.reinvocation == "IfNeeded" and changed_after.get(hook.name):
                seen = await self._seen(hook, attributes)
                if seen is not None:
                    await self._ask_mutating(hook, attributes, seen)

    async def validate(self, attributes: Attributes) -> None:
        """Call all validating webhooks concurrently. Raises the first refusal, in their order."""
        hooks = self._hooks(_VALIDATING)
        if not hooks or attributes.resource.plural in _EXEMPT:
            return
        asked = [(hook, seen) for hook in hooks if (seen := await self._seen(hook, attributes)) is not None]
        results = await asyncio.gather(*(self._ask(hook, seen) for hook, seen in asked), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _seen(self, hook: Webhook, attributes: Attributes) -> Seen | None:
        """Return the write as the webhook sees it; None if the webhook does not apply to it."""
        target = targeted(hook.rules, hook.match_policy, attributes, self._server.registry)
        if target is None or not selected(self._server, hook.namespace_selector, hook.object_selector, attributes):
            return None
        seen = await seen_as(self._server, target, attributes)
        if not hook.match_conditions:
            return seen
        variables = {"object": seen.object, "oldObject": seen.old_object, "request": request_of(self._server, seen)}
        return seen if await metered(self._server.worker, self._conditions_hold, hook, variables) else None

    def _conditions_hold(self, hook: Webhook, variables: Json) -> bool:
        for condition in hook.match_conditions:
            try:
                if not evaluate(condition.get("expression") or "", variables):
                    return False
            except ValueError as e:
                if hook.failure_policy == "Ignore":
                    return False
                raise self._refused(hook, f"match condition {condition.get('name')} failed: {e}") from None
        return True

    def _refused(self, hook: Webhook, problem: str) -> StatusError:
        return internal(f'failed calling webhook "{hook.name}": {problem}')

    async def _ask_mutating(self, hook: Webhook, attributes: Attributes, seen: Seen) -> bool:
        response = await self._ask(hook, seen)
        patch = (response or {}).get("patch")
        if not patch or seen.object is None:
            return False
        try:
            operations = msgspec.json.decode(base64.b64decode(patch))
            before = msgspec.json.encode(seen.object)
            patched = jsonpatch.json_patch(msgspec.json.decode(before), operations)
        except (ValueError, RecursionError, StatusError) as e:  # malformed base64 and JSON raise ValueError
            raise self._refused(hook, f"its patch cannot be applied: {e}") from None
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise self._refused(hook, "its patch leaves no object")
        handler = seen.resource.handler
        handler.decode(patched)
        handler.default(patched)
        changed = msgspec.json.encode(patched) != before
        if changed or seen.resource is attributes.resource:
            versions = self._server.registry.versions(attributes.resource)
            (attributes.object,) = await versions.convert_all([patched], attributes.resource.api_version)
        return changed

    async def _ask(self, hook: Webhook, seen: Seen) -> Json | None:
        """Return the webhook's response; None if the call failed and failurePolicy is Ignore. Raises StatusError when it refuses."""
        attributes = seen.attributes
        if attributes.dry_run and hook.side_effects not in {"None", "NoneOnDryRun"}:
            text = f'admission webhook "{hook.name}" does not support dry run'
            raise failure(400, "BadRequest", text)
        request = request_of(self._server, seen)
        version = next((v for v in hook.versions if v in {"v1", "v1beta1"}), "v1")
        review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        try:
            body = msgspec.json.encode(review)
            raw = await self._server.callouts.post(hook.client, body, timeout=hook.timeout, query=f"?timeout={int(hook.timeout)}s")
            answer: Any = msgspec.json.decode(raw)
            response = answer.get("response") if isinstance(answer, dict) else None
            if not isinstance(response, dict) or response.get("uid") != request["uid"]:
                raise CalloutFailed("received an invalid webhook response: expected response.uid to be the request's")
        except (CalloutFailed, *UNREADABLE) as e:
            problem = str(e)
            if hook.failure_policy == "Ignore":
                attributes.warnings.append(f'failed calling webhook "{hook.name}", failing open: {problem}')
                return None
            raise self._refused(hook, f"failed to call webhook: {problem}") from None
        attributes.warnings.extend(str(w) for w in response.get("warnings") or ())
        if not response.get("allowed"):
            raise _denied(hook, response.get("status") or {})
        return response


def _denied(hook: Webhook, status: Json) -> StatusError:
    message, reason = status.get("message") or "", status.get("reason") or ""
    text = f'admission webhook "{hook.name}" denied the request'
    text += f": {message}" if message else f": {reason}" if reason else " without explanation"
    code = status.get("code") or 400
    return failure(code if isinstance(code, int) and 400 <= code < 600 else 400, reason, text, status.get("details"))
