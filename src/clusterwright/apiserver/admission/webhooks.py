"""Admission webhooks declared by objects: who is asked, in which order, and what an answer (or none) means."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec

from clusterwright.api.meta import Json
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.admission.expressions import evaluate
from clusterwright.apiserver.auth.identity import user_info
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.patchtypes import jsonpatch
from clusterwright.apiserver.selectors import Matcher, object_selector
from clusterwright.apiserver.status import StatusError, failure, internal

_GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"mutatingwebhookconfigurations.{_GROUP}"
_VALIDATING: Final = f"validatingwebhookconfigurations.{_GROUP}"
_EXEMPT: Final = frozenset({"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})

Post = Callable[["Webhook", bytes], Awaitable[bytes]]
"""Carries a review to a webhook; raises WebhookFailed when there is no answer."""


class WebhookFailed(Exception):
    """A webhook could not be asked, or answered nonsense."""


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

    def covers(self, attributes: Attributes) -> bool:
        """Whether a rule names this operation on this resource."""
        resource = attributes.resource
        plural = f"{resource.plural}/{attributes.subresource}" if attributes.subresource else resource.plural
        for rule in self.rules:
            scope = rule.get("scope") or "*"
            if (
                _any(rule.get("operations"), attributes.operation)
                and _any(rule.get("apiGroups"), resource.group)
                and _any(rule.get("apiVersions"), resource.version)
                and any(_resource(r, plural) for r in rule.get("resources") or ())
                and (scope == "*" or (scope == "Namespaced") == resource.namespaced)
            ):
                return True
        return False


def _any(values: Iterable[str] | None, wanted: str) -> bool:
    return any(v in {"*", wanted} for v in values or ())


def _resource(pattern: str, plural: str) -> bool:
    if pattern in {"*/*", plural}:
        return True
    name, _, sub = pattern.partition("/")
    resource, _, subresource = plural.partition("/")
    if not sub:
        return not subresource and name == "*"
    return (name in {"*", resource}) and sub in {"*", subresource}


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
    )


class Webhooks:
    """An admission link that asks the webhooks of the server's configurations."""

    def __init__(self, server: Core, post: Post | None = None) -> None:
        self._server = server
        self._post = post or HttpPost(server)
        self._cache: dict[str, tuple[int, list[Webhook]]] = {}

    def _hooks(self, table_name: str) -> list[Webhook]:
        table = self._server.store.table(table_name)
        cached = self._cache.get(table_name)
        if cached is not None and cached[0] == table.rv:
            return cached[1]
        found: list[Webhook] = []
        for entry in table.range():  # by name of the configuration, then in the order written
            configuration = msgspec.json.decode(entry.raw)
            found.extend(_webhook(entry.name, hook) for hook in configuration.get("webhooks") or ())
        self._cache[table_name] = (table.rv, found)
        return found

    async def mutate(self, attributes: Attributes) -> None:
        """Ask the mutating webhooks one after the other; those that wish are asked again after later changes."""
        hooks = self._hooks(_MUTATING)
        if not hooks or attributes.resource.plural in _EXEMPT:
            return
        changed_after: dict[str, bool] = {}
        for hook in hooks:
            if self._matches(hook, attributes) and await self._ask_mutating(hook, attributes):
                changed_after = dict.fromkeys(changed_after, True)
                changed_after[hook.name] = False
            else:
                changed_after.setdefault(hook.name, False)
        for hook in hooks:
            if hook.reinvocation == "IfNeeded" and changed_after.get(hook.name) and self._matches(hook, attributes):
                await self._ask_mutating(hook, attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Ask all validating webhooks at once; the first refusal, in their order, counts."""
        hooks = [h for h in self._hooks(_VALIDATING) if self._matches(h, attributes)]
        if not hooks or attributes.resource.plural in _EXEMPT:
            return
        results = await asyncio.gather(*(self._ask(h, attributes) for h in hooks), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _matches(self, hook: Webhook, attributes: Attributes) -> bool:
        if not hook.covers(attributes):
            return False
        candidates = [o for o in (attributes.object, attributes.old_object) if o is not None]
        if candidates and not any(hook.object_selector(_labels(o)) for o in candidates):
            return False
        if attributes.resource.namespaced:
            entry = self._server.store.table("namespaces").objects.get(attributes.namespace)
            if not hook.namespace_selector(entry.labels if entry is not None else {}):
                return False
        elif (attributes.resource.group, attributes.resource.plural) == ("", "namespaces"):
            return any(hook.namespace_selector(_labels(o)) for o in candidates) and self._conditions_hold(hook, attributes)
        return self._conditions_hold(hook, attributes)

    def _conditions_hold(self, hook: Webhook, attributes: Attributes) -> bool:
        if not hook.match_conditions:
            return True
        variables = {
            "object": attributes.object,
            "oldObject": attributes.old_object,
            "request": _request(self._server, attributes),
        }
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

    async def _ask_mutating(self, hook: Webhook, attributes: Attributes) -> bool:
        response = await self._ask(hook, attributes)
        patch = (response or {}).get("patch")
        if not patch or attributes.object is None:
            return False
        try:
            operations = msgspec.json.decode(base64.b64decode(patch))
            before = msgspec.json.encode(attributes.object)
            patched = jsonpatch.json_patch(msgspec.json.decode(before), operations)
        except (binascii.Error, ValueError, msgspec.MsgspecError, StatusError) as e:
            raise self._refused(hook, f"its patch cannot be applied: {e}") from None
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise self._refused(hook, "its patch leaves no object")
        handler = attributes.resource.handler
        handler.decode(patched)
        handler.default(patched)
        attributes.object = patched
        return msgspec.json.encode(patched) != before

    async def _ask(self, hook: Webhook, attributes: Attributes) -> Json | None:
        """The webhook's response, None if it failed and may be ignored; raises StatusError when it refuses."""
        if attributes.dry_run and hook.side_effects not in {"None", "NoneOnDryRun"}:
            text = f'admission webhook "{hook.name}" does not support dry run'
            raise failure(400, "BadRequest", text)
        request = _request(self._server, attributes)
        version = next((v for v in hook.versions if v in {"v1", "v1beta1"}), "v1")
        review = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        try:
            raw = await asyncio.wait_for(self._post(hook, msgspec.json.encode(review)), hook.timeout)
            answer: Any = msgspec.json.decode(raw)
            response = answer.get("response") if isinstance(answer, dict) else None
            if not isinstance(response, dict) or response.get("uid") != request["uid"]:
                raise WebhookFailed("received an invalid webhook response: expected response.uid to be the request's")
        except (WebhookFailed, msgspec.DecodeError, TimeoutError) as e:
            problem = "context deadline exceeded" if isinstance(e, TimeoutError) else str(e)
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


def _labels(obj: Json) -> Json:
    return (obj.get("metadata") or {}).get("labels") or {}


def _request(server: Core, attributes: Attributes) -> Json:
    resource = attributes.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    named = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    request: Json = {
        "uid": server.new_uid(),
        "kind": kind,
        "resource": named,
        "requestKind": kind,
        "requestResource": named,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": user_info(attributes.user),
        "object": attributes.object,
        "oldObject": attributes.old_object,
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    return request


class HttpPost:
    """Asks webhooks over HTTPS, by URL or by Service (whose endpoints the server must know)."""

    def __init__(self, server: Core) -> None:
        self._server = server

    async def __call__(self, hook: Webhook, body: bytes) -> bytes:
        """POST the review."""
        url, host = self._target(hook)
        context = ssl.create_default_context()
        bundle = hook.client.get("caBundle")
        if bundle:
            try:
                context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
            except (ValueError, ssl.SSLError) as e:
                raise WebhookFailed(f"its caBundle cannot be read: {e}") from None
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(
                    url,
                    data=body,
                    headers={"Content-Type": "application/json", "Accept": "application/json"},
                    ssl=context if url.startswith("https") else True,
                    server_hostname=host or None,
                ) as response,
            ):
                if response.status != 200:
                    raise WebhookFailed(f"the server rejected our request with status {response.status}")
                return await response.read()
        except (aiohttp.ClientError, OSError) as e:
            raise WebhookFailed(str(e)) from None

    def _target(self, hook: Webhook) -> tuple[str, str]:
        url = hook.client.get("url")
        if url:
            return f"{url}?timeout={int(hook.timeout)}s", ""
        service = hook.client.get("service") or {}
        namespace, name, port = service.get("namespace") or "", service.get("name") or "", service.get("port") or 443
        host = f"{name}.{namespace}.svc"
        path = service.get("path") or ""
        address = self._endpoint(namespace, name, port)
        if address is None:
            raise WebhookFailed(f'service "{name}" not found or has no endpoints')
        return f"https://{address}{path}?timeout={int(hook.timeout)}s", host

    def _endpoint(self, namespace: str, name: str, port: int) -> str | None:
        entry = self._server.store.table("endpoints").objects.get(f"{namespace}/{name}")
        if entry is None:
            return None
        for subset in msgspec.json.decode(entry.raw).get("subsets") or ():
            for address in subset.get("addresses") or ():
                ports = [p.get("port") for p in subset.get("ports") or ()]
                return f"{address.get('ip')}:{ports[0] if ports else port}"
        return None
