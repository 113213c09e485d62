"""Validate admission policies: their expressions must compile, and required fields must be set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.expressions import problem_of
from clusterwright.apiserver.status import FieldError, invalid, required

VARIABLES: Final = ("object", "oldObject", "request", "namespaceObject", "params", "variables")
"""The variables of policy expressions."""


def validating(obj: Json) -> list[FieldError]:
    """Return the errors of a ValidatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    errors = _common(spec)
    rules = spec.get("validations") or []
    if not rules and not spec.get("auditAnnotations"):
        errors.append(required("spec.validations", "validations or auditAnnotations must be set"))
    for i, rule in enumerate(rules):
        errors += _expression(rule.get("expression"), f"spec.validations[{i}].expression")
        if rule.get("messageExpression"):
            errors += _expression(rule["messageExpression"], f"spec.validations[{i}].messageExpression")
    return errors


def mutating(obj: Json) -> list[FieldError]:
    """Return the errors of a MutatingAdmissionPolicy."""
    spec = obj.get("spec") or {}
    errors = _common(spec)
    if not spec.get("mutations"):
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for i, mutation in enumerate(spec.get("mutations") or ()):
        part = "jsonPatch" if mutation.get("patchType") == "JSONPatch" else "applyConfiguration"
        where = f"spec.mutations[{i}].{part}"
        errors += _expression((mutation.get(part) or {}).get("expression"), f"{where}.expression", mutation=True)
    return errors


def binding(obj: Json) -> list[FieldError]:
    """Return the errors of a binding of either."""
    spec = obj.get("spec") or {}
    errors = [] if spec.get("policyName") else [required("spec.policyName")]
    reference = spec.get("paramRef")
    if reference is not None and bool(reference.get("name")) == (reference.get("selector") is not None):
        errors.append(required("spec.paramRef.name", "name or selector must be specified, and not both"))
    return errors


def validating_binding(obj: Json) -> list[FieldError]:
    """Return the errors of a ValidatingAdmissionPolicyBinding."""
    errors = binding(obj)
    actions = (obj.get("spec") or {}).get("validationActions") or []
    if not actions:
        errors.append(required("spec.validationActions", "at least one validation action is required"))
    elif {"Deny", "Warn"} <= set(actions):
        told = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers "
            "serves no purpose)"
        )
        errors.append(invalid("spec.validationActions", actions, told))
    return errors


def _common(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("variables", "matchConditions"):
        for i, item in enumerate(spec.get(name) or ()):
            errors += _expression(item.get("expression"), f"spec.{name}[{i}].expression")
    return errors


def _expression(text: str | None, path: str, *, mutation: bool = False) -> Iterable[FieldError]:
    if not (text or "").strip():
        return [required(path, "expression is not specified")]
    problem = problem_of(text or "", VARIABLES, mutation=mutation)
    return [invalid(path, text, f"compilation failed: {problem}")] if problem else []
