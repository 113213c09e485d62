"""Check the handlers that an extension registers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from clusterwright.api.names import dns_label
from clusterwright.runtimesdk.hooks import ExtensionHandler, is_known

MAX_TIMEOUT: Final = 30
DEFAULT_TIMEOUT: Final = 10
POLICIES: Final = ("Ignore", "Fail")


class BadHandlers(ValueError):
    """The handlers cannot be registered; the text lists all errors."""


def defaulted(handlers: Sequence[ExtensionHandler]) -> tuple[ExtensionHandler, ...]:
    """Return the handlers with their defaults; raises BadHandlers."""
    made = tuple(
        ExtensionHandler(
            h.name,
            h.request_hook,
            DEFAULT_TIMEOUT if h.timeout_seconds is None else h.timeout_seconds,
            "Fail" if h.failure_policy is None else h.failure_policy,
        )
        for h in handlers
    )
    problems = list(dict.fromkeys(_problems(made)))
    if problems:
        raise BadHandlers(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return made


def _problems(handlers: Sequence[ExtensionHandler]) -> Iterator[str]:
    seen: set[str] = set()
    for h in handlers:
        if h.name in seen:
            yield f"duplicate name for handler {h.name} found"
        seen.add(h.name)
        wrong = dns_label(h.name)
        if wrong:
            yield f"handler name {h.name} is not valid: [{' '.join(wrong)}]"
        if not 0 <= (h.timeout_seconds or 0) <= MAX_TIMEOUT:
            yield f"handler {h.name} timeoutSeconds {h.timeout_seconds} must be between 0 and {MAX_TIMEOUT}"
        if h.failure_policy not in POLICIES:
            yield f'handler {h.name} failurePolicy {h.failure_policy} must equal "Ignore" or "Fail"'
        version, hook = h.request_hook.api_version, h.request_hook.hook
        if version.count("/") > 1:
            yield f"handler {h.name} requestHook APIVersion {version} is not valid: unexpected GroupVersion string: {version}"
        elif not is_known(version, hook):
            yield f"handler {h.name} requestHook {version}/{hook} is not in the Runtime SDK catalog"
