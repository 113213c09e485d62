"""Validate FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label, dns_subdomain
from clusterwright.apiserver.flows import MANDATORY, defaults
from clusterwright.apiserver.status import FieldError, forbidden, invalid, not_supported, required

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_MOST_QUEUES: Final = 10_000_000
_HASH_BITS: Final = 60
_NAMESPACES: Final = "each member of this list must be '*' or a DNS-1123 label; "


@cache
def _fixed() -> dict[tuple[str, str], Json]:
    return {(o["kind"], o["metadata"]["name"]): o["spec"] for o in defaults() if o["metadata"]["name"] in MANDATORY}


def validate_schema(obj: Json) -> list[FieldError]:
    """Return the errors of a FlowSchema."""
    name, spec = obj["metadata"].get("name") or "", obj.get("spec") or {}
    errors = list(_schema(name, spec))
    fixed = _fixed().get(("FlowSchema", name))
    if fixed is not None and spec != fixed:
        errors.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return errors


def _schema(name: str, spec: Json) -> Iterator[FieldError]:
    precedence, at = spec.get("matchingPrecedence") or 0, "spec.matchingPrecedence"
    if precedence <= 0:
        yield invalid(at, precedence, "must be a positive value")
    if precedence > 10_000:
        yield invalid(at, precedence, "must not be greater than 10000")
    if precedence == 1 and name != "exempt":
        yield invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        yield not_supported("spec.distinguisherMethod.type", method, ("ByNamespace", "ByUser"))
    level, at = (spec.get("priorityLevelConfiguration") or {}).get("name") or "", "spec.priorityLevelConfiguration.name"
    if level:
        yield from (invalid(at, level, problem) for problem in dns_subdomain(level))
    else:
        yield required(at, "must reference a priority level")
    for n, rules in enumerate(spec.get("rules") or ()):
        yield from _rules(rules, f"spec.rules[{n}]")


def _rules(rules: Json, at: str) -> Iterator[FieldError]:
    subjects, resources, urls = (rules.get(name) or () for name in ("subjects", "resourceRules", "nonResourceRules"))
    if not subjects:
        yield required(f"{at}.subjects", "subjects must contain at least one value")
    for n, subject in enumerate(subjects):
        yield from _subject(subject, f"{at}.subjects[{n}]")
    if not resources and not urls:
        yield required(at, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for n, rule in enumerate(resources):
        yield from _resource_rule(rule, f"{at}.resourceRules[{n}]")
    for n, rule in enumerate(urls):
        yield from _url_rule(rule, f"{at}.nonResourceRules[{n}]")


def _subject(subject: Json, at: str) -> Iterator[FieldError]:
    kind = subject.get("kind") or ""
    own = _SUBJECTS.get(kind)
    if own is None:
        yield not_supported(f"{at}.kind", kind, sorted(_SUBJECTS))
        return
    named = subject.get(own)
    if named is None:
        yield required(f"{at}.{own}", f"{own} is required when subject kind is '{kind}'")
    else:
        if not named.get("name"):
            yield required(f"{at}.{own}.name")
        elif kind == "ServiceAccount" and named["name"] != "*":
            yield from (invalid(f"{at}.{own}.name", named["name"], problem) for problem in dns_subdomain(named["name"]))
        if kind == "ServiceAccount":
            namespace = named.get("namespace") or ""
            if not namespace:
                yield required(f"{at}.{own}.namespace", "must specify namespace for service account")
            yield from (invalid(f"{at}.{own}.namespace", namespace, problem) for problem in dns_label(namespace) if namespace)
    for other, field in _SUBJECTS.items():
        if field != own and subject.get(field) is not None:
            yield forbidden(f"{at}.{field}", f"{field} is forbidden when subject kind is not '{other}'")


def _alone(values: list[Any], at: str, nothing: str, others: str) -> Iterator[FieldError]:
    """Check that a list is not empty, and that a wildcard is its only item."""
    if not values:
        yield required(at, nothing)
    elif "*" in values and len(values) > 1:
        yield invalid(at, values, f"if '*' is present, must not specify other {others}")


def _verbs(rule: Json, at: str) -> Iterator[FieldError]:
    verbs = rule.get("verbs") or []
    yield from _alone(verbs, f"{at}.verbs", "verbs must contain at least one value", "verbs")
    if "*" not in verbs and not set(verbs) <= set(_VERBS):
        yield not_supported(f"{at}.verbs", verbs, _VERBS)


def _resource_rule(rule: Json, at: str) -> Iterator[FieldError]:
    yield from _verbs(rule, at)
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        yield from _alone(rule.get(field) or [], f"{at}.{field}", f"resource rules must supply at least one {one}", many)
    namespaces, where = rule.get("namespaces") or [], f"{at}.namespaces"
    if namespaces or not rule.get("clusterScope"):
        yield from _alone(namespaces, where, "resource rules that are not cluster scoped must supply at least one namespace", "namespaces")
    for n, namespace in enumerate(namespaces if "*" not in namespaces else ()):
        yield from (invalid(f"{where}[{n}]", namespace, _NAMESPACES + problem) for problem in dns_label(namespace))


def _url_rule(rule: Json, at: str) -> Iterator[FieldError]:
    yield from _verbs(rule, at)
    urls, where = rule.get("nonResourceURLs") or [], f"{at}.nonResourceURLs"
    yield from _alone(urls, where, "nonResourceURLs must contain at least one value", "non-resource URLs")
    for n, url in enumerate(urls if "*" not in urls else ()):
        if problem := _url_problem(url):
            yield invalid(f"{where}[{n}]", url, problem)


def _url_problem(url: str) -> str:
    wildcards = url.count("*")
    problems = (
        (not url, "must not be empty"),
        (not url.startswith("/"), "must start with slash"),
        (" " in url, "must not contain white-space"),
        ("//" in url, "must not contain double slash"),
        (wildcards > 1 or (wildcards == 1 and not url.endswith("/*")), "wildcard can only do suffix matching"),
    )
    return next((text for is_so, text in problems if is_so), "")


def validate_level(obj: Json) -> list[FieldError]:
    """Return the errors of a PriorityLevelConfiguration."""
    name, spec = obj["metadata"].get("name") or "", obj.get("spec") or {}
    errors = list(_level(name, spec))
    fixed = _fixed().get(("PriorityLevelConfiguration", name))
    if fixed is not None and name == "exempt" and {**spec, "exempt": None} != {**fixed, "exempt": None}:
        errors.append(invalid("spec", spec, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"))
    elif fixed is not None and name != "exempt" and spec != fixed:
        errors.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))
    return errors


def _level(name: str, spec: Json) -> Iterator[FieldError]:
    kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
    if (name == "exempt") != (kind == "Exempt"):
        yield invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            yield forbidden("spec.limited", "must be nil if the type is not Limited")
        yield from _shares(exempt or {}, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            yield forbidden("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            yield required("spec.limited", "must not be empty when type is Limited")
            return
        yield from _shares(limited, "spec.limited")
        if (limited.get("borrowingLimitPercent") or 0) < 0:
            yield invalid(
                "spec.limited.borrowingLimitPercent", limited["borrowingLimitPercent"], "if specified, must be a non-negative integer"
            )
        yield from _response(limited.get("limitResponse") or {}, "spec.limited.limitResponse")
    else:
        yield not_supported("spec.type", kind, ("Exempt", "Limited"))


def _shares(level: Json, at: str) -> Iterator[FieldError]:
    shares, lendable = level.get("nominalConcurrencyShares") or 0, level.get("lendablePercent") or 0
    if shares < 0:
        yield invalid(f"{at}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if not 0 <= lendable <= 100:
        yield invalid(f"{at}.lendablePercent", lendable, "must be between 0 and 100, inclusive")


def _response(response: Json, at: str) -> Iterator[FieldError]:
    kind, queuing = response.get("type") or "", response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            yield forbidden(f"{at}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind != "Queue":
        yield not_supported(f"{at}.type", kind, ("Queue", "Reject"))
    elif queuing is None:
        yield required(f"{at}.queuing", "must not be empty if limited.limitResponse.type is Limited")
    else:
        yield from _queuing(queuing, f"{at}.queuing")


def _queuing(queuing: Json, at: str) -> Iterator[FieldError]:
    length, queues, hand = (queuing.get(name) or 0 for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield invalid(f"{at}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield invalid(f"{at}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield invalid(f"{at}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield invalid(f"{at}.handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid(f"{at}.handSize", hand, f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:  # bits that it takes to deal a hand
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        yield invalid(f"{at}.handSize", hand, text)
