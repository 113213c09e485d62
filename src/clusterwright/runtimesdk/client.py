"""Call handlers: URLs, settings, the meaning of answers, and all handlers of a hook."""

from __future__ import annotations

import base64
import posixpath
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from clusterwright.api.kubernetes import Namespace
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.selectors import EVERYTHING
from clusterwright.golang.quoting import quote
from clusterwright.kubeadm.durations import format_duration
from clusterwright.runtime.client import Reader
from clusterwright.runtime.errors import ApiError
from clusterwright.runtimesdk.discovery import BadHandlers, defaulted
from clusterwright.runtimesdk.hooks import (
    HOOKS,
    BadAnswer,
    DiscoveryResponse,
    ExtensionHandler,
    Response,
    RetryResponse,
    as_json,
    read_answer,
)
from clusterwright.runtimesdk.metrics import CallMetrics
from clusterwright.runtimesdk.registry import GROUP, Handler, Registry, RegistryError, discovery_handler
from clusterwright.streams.tls import authorities
from clusterwright.topology.extensions import HOOKS_API_VERSION, CallAll, CallHandler, ExtensionError, Extensions, ListHandlers

MOST_SHOWN = 512
"""The most bytes of an unexpected answer in an error."""

_CACHED_FOR: Final = 600.0


class PostFailed(Exception):
    """The exchange itself failed: connection, TLS, timeout."""


class Post(Protocol):
    """One POST to an extension."""

    async def __call__(self, handler: Handler, url: str, body: bytes) -> tuple[int, bytes]:
        """Return status code and body of the answer; raises PostFailed, NoClient."""


class NoClient(Exception):
    """Nothing can be sent: the TLS set-up is impossible. No failure policy hides this."""


class CallFailed(Exception):
    """The extension did not answer; `failurePolicy: Ignore` turns this into an empty answer."""


class RuntimeClient:
    """Calls registered handlers. Cacheable answers are kept for ten minutes, by `monotonic`."""

    def __init__(
        self, registry: Registry, post: Post, reader: Reader, monotonic: Callable[[], float], metrics: CallMetrics | None = None
    ) -> None:
        self.registry = registry
        self._post = post
        self._reader = reader
        self._monotonic = monotonic
        self._metrics = metrics
        self._answers: dict[tuple[Any, ...], tuple[float, Json]] = {}

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        """Return the handlers of a hook whose selector matches the object's Namespace, by name."""
        hook = f"{question.hook}.{GROUP}"
        try:
            listed = self.registry.list(question.hook)
        except RegistryError as error:
            raise ExtensionError(f'failed to get extension handlers for hook "{hook}": {error}') from error
        found = []
        for handler in listed:
            try:
                if await self._is_meant(handler, question.subject):
                    found.append(handler.name)
            except ApiError as error:
                text = f'failed to get extension handlers for hook "{hook}": failed to get extension handler "{handler.name}": {error}'
                raise ExtensionError(text) from error
        return tuple(found)

    async def call_all(self, question: CallAll) -> Json:
        """Call all handlers of a hook, one after the other, and return the joined response; the first error ends it."""
        hook = f"{question.hook}.{GROUP}"
        messages: list[str] = []
        retries: list[int] = []
        for name in await self.handlers(ListHandlers(question.hook, question.subject)):
            try:
                answer = await self.call(CallHandler(question.hook, name, question.subject, question.request))
            except ExtensionError as error:
                raise ExtensionError(f'failed to call extension handlers for hook "{hook}": {error}') from error
            if answer.get("message"):
                messages.append(answer["message"])
            if answer.get("retryAfterSeconds"):
                retries.append(answer["retryAfterSeconds"])
        together: Json = {"status": "Success", "message": ", ".join(messages)}
        return {**together, "retryAfterSeconds": min(retries, default=0)} if HOOKS[question.hook].may_wait else together

    async def call(self, question: CallHandler) -> Json:
        """Call one handler by its name and return its response."""
        context = f'failed to call extension handler "{question.handler}"'
        try:
            handler = self.registry.get(question.handler)
        except RegistryError as error:
            raise ExtensionError(f"{context}: {error}") from error
        if (handler.group, handler.hook) != (GROUP, question.hook):
            raise ExtensionError(f'{context}: handler does not match GroupHook "{question.hook}.{GROUP}"')
        try:
            is_meant = await self._is_meant(handler, question.subject)
        except ApiError as error:
            raise ExtensionError(context) from error
        if not is_meant:
            metadata = question.subject["metadata"]
            key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
            raise ExtensionError(f"{context}: namespaceSelector did not match object {key}")
        settings = {**handler.settings, **question.settings}
        cache_key = (handler.name, handler.config_version, *sorted(settings.items()))
        if question.cached and (kept := self._answers.get(cache_key)) is not None and kept[0] > self._monotonic():
            return kept[1]
        try:
            url = url_of(handler)
        except ValueError as error:
            raise ExtensionError(f"{context}: failed to get http client: failed to compute URL: {error}") from error
        answer = await self._exchange(handler, url, request_of(question, settings), context)
        if question.cached and answer:
            self._answers = {k: v for k, v in self._answers.items() if v[0] > self._monotonic()}
            self._answers[cache_key] = (self._monotonic() + _CACHED_FOR, answer)
        return answer

    async def discover(self, config: Json) -> tuple[ExtensionHandler, ...]:
        """Return an extension's handlers, registered or not. Raises ExtensionError."""
        name = config["metadata"]["name"]
        context = f'failed to discover extension "{name}"'
        handler = discovery_handler(config)
        try:
            url = url_of(handler)
        except ValueError as error:
            raise ExtensionError(f"{context}: failed to get http client: failed to compute URL: {error}") from error
        try:
            answer = await self._measured(handler, url, {"apiVersion": HOOKS_API_VERSION, "kind": "DiscoveryRequest"})
        except NoClient as error:
            raise ExtensionError(f"{context}: failed to get http client: {error}") from error
        except CallFailed as error:
            raise ExtensionError(f"{context}: {error}") from error
        refuse_failures(answer, context)
        assert isinstance(answer, DiscoveryResponse)
        try:
            return defaulted(answer.handlers)
        except BadHandlers as error:
            raise ExtensionError(f"{context}: failed to validate discovery response: {error}") from error

    async def _exchange(self, handler: Handler, url: str, request: Json, context: str) -> Json:
        """Return a successful answer; an empty one if failures are ignored. Raises ExtensionError."""
        hook = HOOKS[handler.hook]
        try:
            answer = await self._measured(handler, url, request)
        except NoClient as error:
            raise ExtensionError(f"{context}: failed to get http client: {error}") from error
        except CallFailed as error:
            if handler.failure_policy == "Ignore" and not hook.always_fails:
                return {"status": "Success"}
            raise ExtensionError(f"{context}: {error}") from error
        refuse_failures(answer, context)
        if isinstance(answer, RetryResponse) and answer.retry_after_seconds < 0:
            raise ExtensionError(f"{context}: got negative retryAfterSeconds, please check controller logs for errors")
        return as_json(answer)

    async def _measured(self, handler: Handler, url: str, request: Json) -> Response:
        """Return a handler's answer of any status; raises CallFailed, NoClient."""
        if handler.api_version != HOOKS_API_VERSION:
            raise CallFailed(f"http call failed: hook {handler.hook} does not exist in version {handler.api_version}")
        if flaw := flaw_of_bundle(handler.client_config.get("caBundle") or ""):
            raise NoClient(f"failed to create tls config: unable to load root certificates: {flaw}")
        began = self._monotonic()
        try:
            code, body = await self._post(handler, url, msgspec.json.encode(request))
        except PostFailed as error:
            self._observe(handler, url, began)
            raise CallFailed(f"http call failed: {error}") from error
        try:
            answer = _read(handler, code, body)
        except CallFailed:
            self._observe(handler, url, began, code)
            raise
        self._observe(handler, url, began, code, answer.status)
        return answer

    def _observe(self, handler: Handler, url: str, began: float, code: int | None = None, status: str = "") -> None:
        if self._metrics is not None:
            self._metrics.observe(handler, urlsplit(url).netloc, self._monotonic() - began, code, status)

    async def _is_meant(self, handler: Handler, subject: Mapping[str, Any]) -> bool:
        """Return whether a handler serves the Namespace of an object; raises ApiError."""
        if handler.selector is None:
            return False
        if handler.selector == EVERYTHING:
            return True
        namespace = subject["metadata"].get("namespace", "")
        found = await self._reader.get(Namespace, ObjectKey("", namespace))
        return handler.selector.matches(found.metadata.labels)


_check: type[Extensions] = RuntimeClient


@lru_cache(maxsize=256)
def flaw_of_bundle(bundle: str) -> str:
    """Return why a caBundle (base64) has no usable certificate; empty if it has one, or if there is no bundle."""
    if not bundle:
        return ""
    try:
        text = authorities(base64.b64decode(bundle, validate=True))
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ValueError, ssl.SSLError):
        return "no valid certificate authority data seen"
    return ""


def _read(handler: Handler, code: int, body: bytes) -> Response:
    if code != 200:
        text = body[:MOST_SHOWN].decode("utf-8", "replace") + ("..." if len(body) > MOST_SHOWN else "")
        raise CallFailed(f"http call failed: got response with status code {code} != 200: response : {quote(text)}")
    try:
        return read_answer(HOOKS[handler.hook], body)
    except BadAnswer as error:
        raise CallFailed(f"http call failed: failed to decode response: {error}") from error


def refuse_failures(answer: Response, context: str) -> None:
    """Raise ExtensionError with the extension's own message unless the answer is a success."""
    if answer.status == "Success":
        return
    what = "failure response" if answer.status == "Failure" else f"unknown response status {quote(answer.status)}"
    raise ExtensionError(f"{context}: got {what} with message: {answer.message}")


def url_of(handler: Handler) -> str:
    """Return the URL of a handler; raises ValueError."""
    config = handler.client_config
    service = config.get("service")
    if service:
        port = f":{service['port']}" if service.get("port") else ""
        base = f"https://{service.get('name', '')}.{service.get('namespace', '')}.svc{port}/{service.get('path') or ''}"
    elif config.get("url"):
        base = config["url"]
    else:
        raise ValueError("at least one of service and url should be defined in config")
    parts = urlsplit(base)
    if parts.scheme != "https":
        raise ValueError(f"expected https scheme, got {parts.scheme}")
    named = "" if handler.hook == "Discovery" else handler.short_name.lower()
    path = posixpath.normpath(f"/{parts.path}/{HOOKS_API_VERSION}/{handler.hook.lower()}/{named}")
    query = sorted([*parse_qsl(parts.query, keep_blank_values=True), ("timeout", format_duration(int(handler.timeout_seconds)))])
    return urlunsplit((parts.scheme, parts.netloc, "/" + path.lstrip("/"), urlencode(query), ""))


def request_of(question: CallHandler, settings: Mapping[str, str]) -> Json:
    """Return the body of a request."""
    request: Json = {"apiVersion": HOOKS_API_VERSION, "kind": f"{question.hook}Request", **question.request}
    if settings:
        request["settings"] = dict(settings)
    return request
