"""Admission policies declared by objects: conditions and changes in CEL, bound to resources and parameters by bindings.

The link joins a server's chain with the first binding; servers without bindings do no work for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from clusterwright.api.jsonvalues import merge_patched
from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.selectors import object_selector
from clusterwright.apiserver.admission.matching import Seen, covered, request_of, seen_as, selected, targeted
from clusterwright.apiserver.attributes import Attributes
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.effort import metered
from clusterwright.apiserver.expressions import evaluate, value_of
from clusterwright.apiserver.managedfields.merging import SchemaMismatch, merge
from clusterwright.apiserver.patchtypes import jsonpatch
from clusterwright.apiserver.status import StatusError, forbidden_error

_GROUP: Final = "admissionregistration.k8s.io"
VALIDATING: Final = "ValidatingAdmissionPolicy"
MUTATING: Final = "MutatingAdmissionPolicy"
_TABLES: Final = {
    VALIDATING: (f"validatingadmissionpolicies.{_GROUP}", f"validatingadmissionpolicybindings.{_GROUP}"),
    MUTATING: (f"mutatingadmissionpolicies.{_GROUP}", f"mutatingadmissionpolicybindings.{_GROUP}"),
}
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
R = TypeVar("R")
_VARIABLE: Final = re.compile(r"\bvariables\s*\.\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Bound:
    """A policy and one of its bindings."""

    kind: str
    policy: str
    binding: str
    spec: Json
    binding_spec: Json

    @property
    def is_strict(self) -> bool:
        """Whether a failure of the policy refuses the write."""
        return (self.spec.get("failurePolicy") or "Fail") == "Fail"

    def refused(self, text: str) -> str:
        """Return the message of a refused request."""
        return f"{self.kind} '{self.policy}' with binding '{self.binding}' denied request: {text}"


class _Failed(Exception):
    """A policy cannot be evaluated; its failurePolicy decides whether the write is refused."""


class Policies:
    """An admission link that applies the policies of the server's objects."""

    def __init__(self, server: Core) -> None:
        self._server = server
        self._cache: dict[str, tuple[tuple[int, int], list[Bound]]] = {}

    async def _metered(self, work: Callable[..., R], *arguments: Any) -> R:
        """Evaluate expressions on the event loop if they are light, else on the worker."""
        return await metered(self._server.worker, work, *arguments)

    def _bound(self, kind: str) -> list[Bound]:
        policies, bindings = (self._server.store.table(name) for name in _TABLES[kind])
        cached = self._cache.get(kind)
        if cached is not None and cached[0] == (policies.rv, bindings.rv):
            return cached[1]
        specs = {entry.name: msgspec.json.decode(entry.raw).get("spec") or {} for entry in policies.range()}
        found: list[Bound] = []
        for entry in bindings.range():
            spec = msgspec.json.decode(entry.raw).get("spec") or {}
            name = spec.get("policyName") or ""
            if name in specs:
                found.append(Bound(kind, name, entry.name, specs[name], spec))
        found.sort(key=lambda bound: (bound.policy, bound.binding))
        self._cache[kind] = ((policies.rv, bindings.rv), found)
        return found

    async def mutate(self, attributes: Attributes) -> None:
        """Apply the mutating policies one after the other, and those with reinvocationPolicy IfNeeded again after later changes."""
        if attributes.resource.group == _GROUP or attributes.object is None:
            return
        changed_after: dict[Bound | str, bool] = {}
        bound = self._bound(MUTATING)
        for one in bound:
            if await self._apply(one, attributes):
                changed_after = dict.fromkeys(changed_after, True)
            changed_after[f"{one.policy}/{one.binding}"] = False
        for one in bound:
            if one.spec.get("reinvocationPolicy") == "IfNeeded" and changed_after.get(f"{one.policy}/{one.binding}"):
                await self._apply(one, attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Evaluate all validating policies. Raises StatusError with all reasons if one denies the write."""
        if attributes.resource.group == _GROUP:
            return
        denied: list[tuple[str, str]] = []
        for bound in self._bound(VALIDATING):
            try:
                async for variables in self._cases(bound, attributes):
                    for text, reason in await self._metered(_violations, bound, variables):
                        self._decide(bound, attributes, denied, text, reason)
            except _Failed as e:
                if bound.is_strict:
                    denied.append((bound.refused(str(e)), "Invalid"))
        if denied:
            raise _refusal(attributes, denied)

    @staticmethod
    def _decide(bound: Bound, attributes: Attributes, denied: list[tuple[str, str]], text: str, reason: str) -> None:
        actions = bound.binding_spec.get("validationActions") or ["Deny"]
        if "Deny" in actions:
            denied.append((bound.refused(text), reason))
        if "Warn" in actions:
            attributes.warnings.append(f"Validation failed for {bound.kind} '{bound.policy}' with binding '{bound.binding}': {text}")

    async def _cases(self, bound: Bound, attributes: Attributes) -> Any:
        """Yield the variables for each parameter object; nothing if the policy does not apply to the write."""
        seen = await self._seen(bound, attributes)
        if seen is None:
            return
        namespace = self._server.store.table("namespaces").objects.get(attributes.namespace)
        plain: Json = {
            "object": seen.object,
            "oldObject": seen.old_object,
            "request": request_of(self._server, seen),
            "namespaceObject": msgspec.json.decode(namespace.raw) if namespace is not None and attributes.resource.namespaced else None,
        }
        for params in self._params(bound, attributes):
            variables = _Variables({**plain, "params": params}, bound.spec.get("variables") or ())
            if await self._metered(_conditions_hold, bound, variables):
                yield variables

    async def _seen(self, bound: Bound, attributes: Attributes) -> Seen | None:
        target = None
        for number, match in enumerate((bound.spec.get("matchConstraints"), bound.binding_spec.get("matchResources"))):
            if match is None:
                continue
            policy = match.get("matchPolicy") or "Equivalent"
            rules = match.get("resourceRules") or ()
            if rules or number == 0:
                found = targeted(rules, policy, attributes, self._server.registry)
                if found is None:
                    return None
                target = target or found
            if covered(match.get("excludeResourceRules") or (), attributes, attributes.resource):
                return None
            namespaces, objects = (object_selector(match.get(name) or {}) for name in ("namespaceSelector", "objectSelector"))
            if not selected(self._server, namespaces, objects, attributes):
                return None
        return None if target is None else await seen_as(self._server, target, attributes)

    def _params(self, bound: Bound, attributes: Attributes) -> list[Json | None]:
        kind, reference = bound.spec.get("paramKind"), bound.binding_spec.get("paramRef")
        if kind is None:
            return [None]
        if reference is None:
            return [None]
        gvk = GroupVersionKind.of(kind.get("apiVersion") or "", kind.get("kind") or "")
        resource = self._server.registry.by_kind(gvk.group, gvk.version, gvk.kind)
        if resource is None:
            raise _Failed(
                f"failed to configure policy: failed to find resource referenced by paramKind: '{gvk.api_version}, Kind={gvk.kind}'"
            )
        namespace = (reference.get("namespace") or attributes.namespace) if resource.namespaced else ""
        table = self._server.store.table(resource.storage_key)
        found = [e for e in table.range(namespace) if not reference.get("name") or e.name == reference["name"]]
        if not reference.get("name"):
            matches = object_selector(reference.get("selector") or {})
            found = [e for e in found if matches(e.labels)]
        if not found and reference.get("parameterNotFoundAction") != "Allow":
            raise _Failed("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")
        return [msgspec.json.decode(e.raw) for e in found]

    async def _apply(self, bound: Bound, attributes: Attributes) -> bool:
        """Apply one mutating policy; return whether it changed the object."""
        before = msgspec.json.encode(attributes.object)
        try:
            async for variables in self._cases(bound, attributes):
                for mutation in bound.spec.get("mutations") or ():
                    await self._change(variables, mutation, bound, attributes)
        except _Failed as e:
            if bound.is_strict:
                raise _refusal(attributes, [(bound.refused(str(e)), "Invalid")]) from None
        return msgspec.json.encode(attributes.object) != before

    async def _change(self, variables: _Variables, mutation: Json, bound: Bound, attributes: Attributes) -> None:
        seen = await self._seen(bound, attributes)
        if seen is None or seen.object is None:
            return
        variables.plain["object"] = seen.object
        is_patch = mutation.get("patchType") == "JSONPatch"
        expression = ((mutation.get("jsonPatch") if is_patch else mutation.get("applyConfiguration")) or {}).get("expression") or ""
        value = await self._metered(partial(variables.value, mutation=True), expression)
        handler = seen.resource.handler
        try:
            whole = msgspec.json.decode(msgspec.json.encode(seen.object))
            if is_patch:
                made = jsonpatch.json_patch(whole, value)
            elif handler.schema is None:
                made = merge_patched(whole, value)
            else:
                made = merge(whole, value, handler.schema.merge_type)
            if not isinstance(made, dict) or not isinstance(made.get("metadata"), dict):
                raise _Failed("it leaves no object")
            handler.decode(made)
        except (StatusError, SchemaMismatch, TypeError, AttributeError) as e:
            raise _Failed(f"its mutation cannot be applied: {e}") from None
        handler.default(made)
        versions = self._server.registry.versions(attributes.resource)
        (attributes.object,) = await versions.convert_all([made], attributes.resource.api_version)


class _Variables:
    """The variables of expressions: the data of the request, and those of the policy, evaluated on first use."""

    def __init__(self, plain: Json, own: Iterable[Json]) -> None:
        self.plain = plain
        self._own = {v.get("name") or "": v.get("expression") or "" for v in own}
        self._made: Json = {}

    def needed_by(self, expression: str, pending: frozenset[str] = frozenset()) -> Mapping[str, Any]:
        """Return the variables of one expression. Raises _Failed."""
        for name in _VARIABLE.findall(expression):
            if name in self._own and name not in self._made:
                if name in pending:
                    raise _Failed(f"variable '{name}' refers to itself")
                inner = self._own[name]
                self._made[name] = self._evaluated(inner, self.needed_by(inner, pending | {name}))
        return {**self.plain, "variables": self._made}

    def value(self, expression: str, *, mutation: bool = False) -> Any:
        """Return the value of an expression. Raises _Failed."""
        return self._evaluated(expression, self.needed_by(expression), mutation=mutation)

    @staticmethod
    def _evaluated(expression: str, variables: Mapping[str, Any], *, mutation: bool = False) -> Any:
        try:
            return value_of(expression, variables, mutation=mutation)
        except ValueError as e:
            raise _Failed(f"expression '{expression}' resulted in error: {e}") from None


def _conditions_hold(bound: Bound, variables: _Variables) -> bool:
    for condition in bound.spec.get("matchConditions") or ():
        expression = condition.get("expression") or ""
        try:
            if not evaluate(expression, variables.needed_by(expression)):
                return False
        except ValueError as e:
            raise _Failed(f"match condition '{condition.get('name')}' failed: {e}") from None
    return True


def _violations(bound: Bound, variables: _Variables) -> list[tuple[str, str]]:
    """Return the violations of the write: text and reason of each."""
    found: list[tuple[str, str]] = []
    for validation in bound.spec.get("validations") or ():
        expression = validation.get("expression") or ""
        reason = validation.get("reason") or "Invalid"
        try:
            result = variables.value(expression)
        except _Failed as e:
            if bound.is_strict:
                found.append((str(e), "Invalid"))
            continue
        if result is not True:
            found.append((_message(validation, expression, variables), reason))
    return found


def _message(validation: Json, expression: str, variables: _Variables) -> str:
    if validation.get("messageExpression"):
        try:
            text = variables.value(validation["messageExpression"])
            if isinstance(text, str) and text.strip() and "\n" not in text:
                return text
        except _Failed:
            pass  # use the plain message
    return str(validation.get("message") or "").strip() or f"failed expression: {expression.strip()}"


def _refusal(attributes: Attributes, denied: list[tuple[str, str]]) -> StatusError:
    text, reason = denied[0]
    causes = [{"message": message} for message, _ in denied]
    error = forbidden_error(attributes.resource.group, attributes.resource.plural, attributes.name, text, causes)
    error.code = _CODES.get(reason, 422)
    error.status.update(reason=reason, code=error.code)
    return error


class Activation:
    """Inserts the link into a server's chain with the first binding."""

    def __init__(self, server: Core) -> None:
        self._server = server
        self._is_active = False
        self._tables = [server.store.table(bindings) for _, bindings in _TABLES.values()]
        for table in self._tables:
            table.hooks.append(self)

    def offer(self, event: object) -> None:
        """React to a write of a binding."""
        del event
        self.resume()

    def resume(self) -> None:
        """Insert the link if there are bindings."""
        if not self._is_active and any(table.objects for table in self._tables):
            self._is_active = True
            self._server.admission.insert(0, Policies(self._server))
