"""`x-kubernetes-validations`: compile the CEL rules of a schema and validate objects with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.apiserver.effort import LIGHT, TooMuch, left_on_loop, spend
from clusterwright.apiserver.schema.celtypes import type_of
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.schema.validation import ABSENT, old_items
from clusterwright.apiserver.status import OMITTED, ErrorType, FieldError, duplicate, forbidden, invalid, required
from clusterwright.cel.metering import OBJECT_LIMIT, CostExceeded
from clusterwright.cel.program import CompileError, NotInstantiated, Program, compile_expression
from clusterwright.cel.types import BOOL, STRING, Type, optional_of
from clusterwright.cel.values import NONE, CelError, Optional

_REASONS: Final = frozenset({"FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"})
UNCHECKED: Final = FieldError(
    ErrorType.INVALID,
    "",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
)
"""Stands for rules that are skipped on an object with an invalid structure."""

_BLOCKING: Final = frozenset({ErrorType.NOT_SUPPORTED, ErrorType.REQUIRED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID})


def blocks_rules(errors: list[FieldError]) -> bool:
    """Return whether structural errors prevent the rules from running."""
    return any(e.type in _BLOCKING for e in errors)


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. `program` is None when it did not compile; `problem` says why."""

    source: Mapping[str, Any]
    program: Program | None
    problem: str
    message: Program | None
    message_problem: str
    uses_old: bool
    optional_old: bool
    field_path: str

    @property
    def text(self) -> str:
        """The rule's message, or the rule itself."""
        return self.source.get("message") or f"failed rule: {str(self.source.get('rule', '')).strip()}"

    @property
    def label(self) -> str:
        """The name of the rule in evaluation errors: its message, or its text."""
        return self.source.get("message") or str(self.source.get("rule", "")).strip()


def compiled_rules(node: Node, kind: Type | None) -> tuple[Rule, ...]:
    """Return the compiled rules of one node, cached on the node."""
    return tuple(_compile(node, kind, source) for source in node.source.get("x-kubernetes-validations") or ())


def _compile(node: Node, kind: Type | None, source: Mapping[str, Any]) -> Rule:
    optional_old = bool(source.get("optionalOldSelf"))
    text = str(source.get("rule") or "")
    program: Program | None = None
    message: Program | None = None
    problem = message_problem = ""
    if not text.strip():
        pass  # says nothing, and forbids nothing
    elif kind is None:
        problem = "failed to convert to declType for CEL validation rules"
    else:
        variables = {"self": kind, "oldSelf": optional_of(kind) if optional_old else kind}
        try:
            program = compile_expression(text, variables)
            if program.type != BOOL and program.type.name != "dyn":
                problem, program = "cel expression must evaluate to a bool", None
        except CompileError as e:
            problem = f"{_stage(e)} failed: {e}"
        expression = source.get("messageExpression")
        if expression and not problem:
            try:
                message = compile_expression(str(expression), variables)
                if message.type.name not in (STRING.name, "dyn"):
                    message_problem, message = "messageExpression must evaluate to a string", None
            except CompileError as e:
                message_problem = f"messageExpression {_stage(e).removeprefix('program ')} failed: {e}"
    path = ""
    if source.get("fieldPath"):
        try:
            path = field_path(str(source["fieldPath"]), node)[0]
        except ValueError:
            path = ""
    uses_old = program is not None and "oldSelf" in program.uses
    return Rule(source, program, problem, message, message_problem, uses_old, optional_old, path)


def _stage(error: CompileError) -> str:
    return "program instantiation" if isinstance(error, NotInstantiated) else "compilation"


def field_path(path: str, node: Node, *, allow_brackets: bool = True) -> tuple[str, Node]:
    """Return a JSON path below a node in the form of error fields, and the schema it leads to; raises ValueError with the reason."""
    out, current = "", node
    i = 0
    while i < len(path):
        if path[i] == ".":
            end = i + 1
            while end < len(path) and path[end] not in ".[]":
                end += 1
            name = path[i + 1 : end]
            if not name:
                raise ValueError("unexpected end of JSON path")
        elif path[i] == "[":
            if not allow_brackets:
                raise ValueError("array notation is not allowed")
            end = path.find("]", i)
            quoted = path[i + 1 : end] if end > 0 else path[i + 1 :]
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise ValueError(f"expected single quoted string but got {quoted}")
            if end < 0:
                raise ValueError("unexpected end of JSON path")
            name = quoted[1:-1].replace("\\'", "'").replace("\\\\", "\\")
            end += 1
        else:
            token = re.match(r"[^.\[\]]+|.", path[i:], re.DOTALL)
            raise ValueError(f"expected [ or . but got: {token[0] if token else ''}")
        if current.properties:
            child = current.properties.get(name)
            if child is None:
                raise ValueError("does not refer to a valid field")
            out += f".{name}"
        elif current.additional is not None:
            child = current.additional
            out += f"[{name}]"
        else:
            raise ValueError("does not refer to a valid field")
        current = child
        i = end
    return out.removeprefix("."), current


class _OutOfBudget(Exception):
    """The rules have used up their allowance for one object."""


_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class RuleSet:
    """The rules of a whole schema, ready to run. Ratcheting ignores an unchanged value that violates a rule without `oldSelf`."""

    def __init__(self, node: Node, *, ratcheting: bool = True) -> None:
        self.node = node
        self._ratcheting = ratcheting
        self.is_costly = False
        """Whether validating an object took so long that other requests were delayed."""
        self._rules: dict[int, tuple[Rule, ...]] = {}
        if node.has_rules:
            kind, _ = type_of(node, root=True)
            self._prepare(node, kind, root=True)

    def _prepare(self, node: Node, kind: Type | None, *, root: bool = False) -> None:
        if not node.has_rules:
            return
        self._rules[id(node)] = compiled_rules(node, kind)
        for part in node.all_of:
            self._prepare_part(part, node, kind)
        children = [*node.properties.values(), *([node.additional] if node.additional else []), *([node.items] if node.items else [])]
        for child in children:
            if child.has_rules:
                child_kind, convert = type_of(child, root=child.embedded)
                child.programs = convert
                if child_kind is not None:  # what CEL cannot see has no rules, nor has anything below it
                    self._prepare(child, child_kind)

    def _prepare_part(self, part: Node, structure: Node, kind: Type | None) -> None:
        """Prepare the rules of an alternative: its types are those of the structure."""
        if not part.has_rules:
            return
        self._rules[id(part)] = compiled_rules(part, kind)
        part.type, part.programs = structure.type, structure.programs
        for name, child in part.properties.items():
            found = structure.child(name)
            if found is not None and child.has_rules:
                child_kind, child.programs = type_of(found)
                self._prepare_part(child, found, child_kind)
        if part.items is not None and structure.items is not None and part.items.has_rules:
            item_kind, part.items.programs = type_of(structure.items)
            self._prepare_part(part.items, structure.items, item_kind)
        for inner in part.all_of:
            self._prepare_part(inner, structure, kind)

    def problems(self) -> list[tuple[Node, int, Rule]]:
        """Return the rules that did not compile, with their node and index."""
        nodes: list[tuple[Node, int, Rule]] = []

        def walk(node: Node) -> None:
            for i, rule in enumerate(self._rules.get(id(node), ())):
                if rule.problem or rule.message_problem:
                    nodes.append((node, i, rule))
            for child in [
                *node.properties.values(),
                *([node.additional] if node.additional else []),
                *([node.items] if node.items else []),
            ]:
                if child.has_rules:
                    walk(child)

        if self.node.has_rules:
            walk(self.node)
        return nodes

    def rules_of(self, node: Node) -> tuple[Rule, ...]:
        """Return the compiled rules of one node."""
        return self._rules.get(id(node), ())

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """Return the violations of rules. `old` is the replaced object (None on create).

        Raises TooMuch if that costs more than the event loop may spend.
        """
        out: list[FieldError] = []
        if self.node.has_rules:
            allowed = left_on_loop()
            limit = min(OBJECT_LIMIT, allowed)
            budget: list[float] = [limit]
            try:
                self._validate(self.node, value, old, ABSENT if old is None else old, None, "", out, budget)
            except _OutOfBudget:
                if limit == allowed:
                    self.is_costly = True
                    raise TooMuch from None
                out.append(invalid("", self.node.type, _OUT_OF_BUDGET))
            spent = limit - budget[0]
            self.is_costly = self.is_costly or spent > LIGHT
            if allowed <= OBJECT_LIMIT:
                spend(spent)
        return out

    def _validate(
        self,
        node: Node,
        value: Any,
        old: Any,
        correlated: Any,
        parent_same: bool | None,
        path: str,
        out: list[FieldError],
        budget: list[float],
    ) -> None:
        if value is None:
            return
        same: bool | None = None if correlated is ABSENT else value == correlated
        unchanged = same if same is not None else bool(parent_same)
        for rule in self._rules.get(id(node), ()):
            self._run(node, rule, value, old, unchanged, path, out, budget)
        for part in node.all_of:
            if part.has_rules:
                self._validate(part, value, old, ABSENT, unchanged, path, out, budget)
        if type(value) is list:
            items = node.items
            if items is not None and items.has_rules:
                old_item = old_items(node, old)
                for i, item in enumerate(value):
                    before = old_item(item)
                    self._validate(items, item, None if before is ABSENT else before, before, unchanged, f"{path}[{i}]", out, budget)
        elif type(value) is dict:
            before_map = old if type(old) is dict else None
            for key, item in value.items():
                child = node.properties.get(key)
                here = f"{path}.{key}" if path else key
                if child is None:
                    child = node.additional
                    here = f"{path}[{key}]"
                if child is not None and child.has_rules:
                    before = before_map.get(key, ABSENT) if before_map is not None else ABSENT
                    self._validate(child, item, None if before is ABSENT else before, before, unchanged, here, out, budget)

    def _run(
        self, node: Node, rule: Rule, value: Any, old: Any, unchanged: bool, path: str, out: list[FieldError], budget: list[float]
    ) -> None:
        shown_type = node.type
        if rule.program is None:
            if rule.problem:
                out.append(invalid(path, shown_type, f"rule compile error: {rule.problem}"))
            return
        if rule.uses_old and old is None and not rule.optional_old:
            return
        convert = node.programs
        current, previous = value, old
        try:
            if convert is not None:
                current, previous = convert(value), None if old is None else convert(old)
            if rule.optional_old:
                previous = NONE if old is None else Optional(previous, True)
            if rule.program.evaluate(current, previous, budget=budget) is True:
                return
        except CostExceeded as e:
            if budget[0] <= 0:
                raise _OutOfBudget from None
            out.append(
                invalid(
                    path,
                    shown_type,
                    f"'{e}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.label}",
                )
            )
            return
        except CelError as e:
            text = str(e)
            if text.startswith("no such overload"):
                text = f"'{text}': call arguments did not match a supported operator, function or macro signature for rule: {rule.label}"
            else:
                text = f"{text} evaluating rule: {rule.label}"
            out.append(invalid(path, shown_type, text))
            return
        if unchanged and self._ratcheting and not rule.uses_old:
            return
        detail = self._message(rule, current, previous, budget) or rule.text
        where = f"{path}.{rule.field_path}" if path and rule.field_path else rule.field_path or path
        out.append(_error(rule, where, OMITTED if shown_type in ("object", "array") else value, detail))

    @staticmethod
    def _message(rule: Rule, value: Any, old: Any, budget: list[float]) -> str:
        if rule.message is None:
            return ""
        try:
            text = rule.message.evaluate(value, old, budget=budget)
        except CelError:
            if budget[0] <= 0:
                raise _OutOfBudget from None
            return ""
        if not isinstance(text, str) or not text.strip() or "\n" in text or len(text) > 5 * 1024:
            return ""
        return text.strip()


def _error(rule: Rule, path: str, value: Any, detail: str) -> FieldError:
    match rule.source.get("reason"):
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid(path, value, detail)
