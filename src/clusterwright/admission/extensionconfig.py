"""Admission of ExtensionConfig."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from clusterwright.admission.hook import Hook
from clusterwright.admission.rule import Default, Fault, Guard, Review, Rule, at
from clusterwright.admission.selectors import valid_selector
from clusterwright.admission.sets import FORBIDDEN, INVALID, REQUIRED, below, gated, is_filled
from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label, dns_label_1035
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.golang.urls import parse_request_uri

_CLIENT: Final = "spec.clientConfig"
_SERVICE: Final = "spec.clientConfig.service"


def _selector(obj: Json, review: Review) -> None:
    del review
    spec = below(obj, "spec")
    below(spec, "namespaceSelector")
    if spec.get("clientConfig") == {}:
        del spec["clientConfig"]  # as good as none, and so the answer says


def _port(obj: Json, review: Review) -> None:
    del review
    service = at(obj, "spec", "clientConfig", "service")
    if is_filled(service) and service.get("port") is None:
        service["port"] = 443


def _name(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if problems := dns_label(value or ""):
        yield Fault(problems=" ".join(problems))


def _of_service(guard: Callable[[Any], Any]) -> Guard:
    """Return a guard that applies only with a service."""
    return lambda review, value: guard(value) if is_filled(at(review.new, "spec", "clientConfig", "service")) else False


def _each(problems: Callable[[str], tuple[str, ...]]) -> Guard:
    return _of_service(lambda value: [Fault(value or "", text=text) for text in problems(value or "")])


def _not_a_request(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if value:
        try:
            parse_request_uri(value)
        except ValueError as error:
            yield Fault(error=error)


def _not_https(review: Review, value: Any) -> bool:
    del review
    try:
        return bool(value) and parse_request_uri(value).scheme != "https"
    except ValueError:
        return False  # said already


EXTENSION_CONFIG: Final = Hook(
    model=ExtensionConfig,
    default_group="runtime.addons.cluster.x-k8s.io",
    gate=gated("EX-1", "RuntimeSDK"),
    defaults=(
        Default("EX-D1", "spec.namespaceSelector", _selector),
        Default("EX-D2", f"{_SERVICE}.port", _port),
    ),
    rules=(
        Rule("EX-2", INVALID, "metadata.name", _name, "ExtensionConfig name should be a valid DNS1123 label name: [{problems}]"),
        Rule("EX-3", REQUIRED, _CLIENT, lambda _, v: not at(v, "url") and not is_filled(at(v, "service")), "either url or service must be defined"),
        Rule("EX-4", FORBIDDEN, _CLIENT, lambda _, v: bool(at(v, "url")) and is_filled(at(v, "service")), "only one of url or service can be defined"),
        Rule("EX-5", INVALID, f"{_CLIENT}.url", _not_a_request, "must be a valid URL, e.g. https://example.com: {error}"),
        Rule("EX-6", INVALID, f"{_CLIENT}.url", _not_https, "'https' is the only allowed URL scheme, e.g. https://example.com"),
        Rule("EX-7", REQUIRED, f"{_SERVICE}.name", _of_service(lambda v: not v), "must not be empty"),
        Rule("EX-8", INVALID, f"{_SERVICE}.name", _each(dns_label_1035), "{text}"),
        Rule("EX-9", REQUIRED, f"{_SERVICE}.namespace", _of_service(lambda v: not v), "must not be empty"),
        Rule("EX-10", INVALID, f"{_SERVICE}.namespace", _each(dns_label), "{text}"),
        Rule("EX-11", INVALID, f"{_SERVICE}.path", _not_a_request, "must be a valid URL path e.g. /path/to/hook: {error}"),
        Rule("EX-12", INVALID, f"{_SERVICE}.path", lambda _, v: bool(v) and v[0] != "/", 'must start with "/" to be a valid URL path'),
        Rule("EX-13", INVALID, f"{_SERVICE}.port", lambda _, v: v is not None and not 1 <= v <= 65535, "must be between 1 and 65535, inclusive"),
        Rule("EX-14", REQUIRED, "spec.namespaceSelector", lambda _, v: v is None, "must be defined"),
        valid_selector("EX-15", "spec.namespaceSelector"),
    ),
)  # fmt: skip
