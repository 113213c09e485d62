"""Entry points whose work must not grow faster than n log n: each has a name, an input of size n, and what is run on it.

What languages evaluate is taken from their registries, so that a new function has a row without anybody's doing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from types import SimpleNamespace
from typing import Any

import msgspec

from clusterwright.api import selectors
from clusterwright.api.core import Machine
from clusterwright.api.jsonvalues import equal, merge_patched
from clusterwright.api.meta import Condition, ObjectMeta
from clusterwright.api.yamlreader import load
from clusterwright.apiserver.auth.escalation import check_grants
from clusterwright.apiserver.auth.rbac import RbacAuthorizer
from clusterwright.apiserver.auth.rules import Rule
from clusterwright.apiserver.encoding import bodies
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.managedfields.sets import difference, dump, intersection, union
from clusterwright.apiserver.managedfields.sets import load as load_set
from clusterwright.apiserver.patchtypes import jsonpatch, strategic
from clusterwright.apiserver.schema.rules import RuleSet
from clusterwright.apiserver.schema.structural import Node
from clusterwright.apiserver.schema.validation import find_duplicates, find_errors
from clusterwright.apiserver.status import StatusError
from clusterwright.cel.catalogue import OVERLOADS
from clusterwright.cel.overloads import Overload, equal_unordered
from clusterwright.cel.program import compile_expression
from clusterwright.cel.types import INT, Type, list_of
from clusterwright.cli import jsonpath
from clusterwright.conditions.combine import aggregate
from clusterwright.conditions.merge import Reporter
from clusterwright.controllers.machinedeployment.rollout import Sized, proportional
from clusterwright.controllers.machineset.deletion_order import in_order
from clusterwright.controllers.machineset.desired import Maker, new_names
from clusterwright.golang import envsubst
from clusterwright.golang import jsonpatch as class_patches
from clusterwright.golang.quoting import quote
from clusterwright.golang.regex import matcher
from clusterwright.golang.yaml import to_json
from clusterwright.gotemplate import parse
from clusterwright.gotemplate.metering import free
from clusterwright.gotemplate.sprig import FUNCTIONS
from clusterwright.kubeadm.naming import slot
from clusterwright.topology.patches.values import rendered
from security.template_calls import calls

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """An entry point. `make` is not measured."""

    make: Callable[[int], Any]
    run: Callable[[Any], Any]
    largest: int = 10_000


def _names(n: int) -> list[str]:
    return [f"name-{i}" for i in range(n)]


def _object(n: int) -> dict[str, Any]:
    return {name: {"a": [1, "x"], "b": None} for name in _names(n)}


def _text(n: int) -> str:
    return "".join(f"key-{i}: value {i}\n" for i in range(n))


# ---------------------------------------------------------------- small languages


def _sprig(name: str) -> Row:
    function = FUNCTIONS[name]
    meter = (free,) if getattr(function, "metered", False) else ()

    def run(made: list[list[Any]]) -> None:
        for arguments in made:
            with contextlib.suppress(ValueError, TypeError, LookupError, ArithmeticError):
                function(*meter, *arguments)

    return Row(lambda n: list(calls(name, n, nested=False)), run, 4_000)


def _sample(kind: Type, n: int) -> Any:
    match kind.name:
        case "string":
            return "aB1." * n
        case "bytes":
            return b"ab1." * n
        case "int":
            return n
        case "double":
            return 1.5
        case "bool":
            return True
        case "list":
            inner = kind.params[0]
            if inner.name == "list":
                return [[i] for i in range(n)]
            return list(range(n)) if inner.name in ("int", "A", "dyn") else _names(n)
        case "map":
            return {name: name for name in _names(n)}
        case "A" | "dyn":
            return -1
    return None


def _cel(overload: Overload) -> Row:
    def run(arguments: list[Any]) -> None:
        with contextlib.suppress(Exception):  # what it answers is tested elsewhere
            overload.run(*arguments)

    # What is searched for is short: the product of both is charged, see `test_costs`.
    return Row(lambda n: [_sample(p, 1 if at and p.name == "string" else n) for at, p in enumerate(overload.params)], run, 4_000)


def _macro(expression: str) -> Row:
    program = compile_expression(expression, {"self": list_of(INT)})
    return Row(lambda n: list(range(n)), lambda value: program.evaluate(value, budget=[1e12]))


def languages() -> Iterator[tuple[str, Row]]:
    for name in FUNCTIONS:
        yield f"sprig {name}", _sprig(name)
    for name, overloads in OVERLOADS.items():
        for at, overload in enumerate(overloads):
            if any(_sample(p, 1) is not None and p.name in ("string", "bytes", "list", "map") for p in overload.params):
                yield f"cel {name} {at}", _cel(overload)
    for macro in ("all(x, x >= 0)", "exists(x, x < 0)", "exists_one(x, x == 1)", "map(x, x + 1)", "filter(x, x > 1)"):
        yield f"cel macro {macro}", _macro(f"self.{macro}")


# ---------------------------------------------------------------- everything else

_ITEM = {"type": "object", "properties": {"a": {"type": "integer"}, "k": {"type": "integer"}, "v": {"type": "string"}}}
_RULED = {**_ITEM, "x-kubernetes-validations": [{"rule": "self.a < oldSelf.a"}]}
_LIST = Node(
    {
        "type": "object",
        "properties": {
            "x": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "y": {"type": "array", "x-kubernetes-list-type": "set", "items": _ITEM},
            "z": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": _RULED},
            "u": {"type": "array", "uniqueItems": True, "items": _ITEM},
            "e": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        },
    }
)


def _machine(name: str) -> Machine:
    return Machine(metadata=ObjectMeta(name=name, uid=name))


def _operations(op: str) -> Callable[[int], tuple[Any, Any]]:
    def make(n: int) -> tuple[Any, Any]:
        operations: list[dict[str, Any]] = [{"op": op, "path": f"/l/{i}", "value": i} for i in range(n)]
        if op == "add":
            operations = [{"op": "add", "path": "/l/0", "value": {"a": 1}} for _ in range(n)]
        if op == "remove":
            operations = [{"op": "remove", "path": "/l/0"} for _ in range(n)]
        if op in ("move", "copy"):
            operations = [{"op": op, "from": f"/m/name-{i}", "path": f"/o/{i}"} for i in range(n)]
        return {"l": list(range(n)), "m": _object(n), "o": {}}, operations

    return make


class _Tenant(RbacAuthorizer):
    """Somebody who has other rights than those that they grant."""

    def allows(self, server: Any, user: User, info: Any) -> bool:
        return False

    def rules(self, server: Any, user: User, namespace: str) -> list[Rule]:
        return [Rule(verbs=("get",), api_groups=("apps",), resources=("*",))]


def _granted(role: Any) -> None:
    server: Any = SimpleNamespace(authorizer=_Tenant())
    with contextlib.suppress(StatusError):
        check_grants(server, User("tenant"), "roles", "ns", role, None)


def _new_names(n: int) -> list[str]:
    maker = Maker(api_version="v", metadata=ObjectMeta(name="ms", uid="u"), spec={"clusterName": "c"})
    return list(islice(new_names(maker, present=[], taken=[]), n))


ROWS: Mapping[str, Row] = {
    "template many variables": Row(
        lambda n: "".join(f"{{{{$v{i} := 1}}}}{{{{$v{i} = 2}}}}{{{{$v0 = 1}}}}" for i in range(n)), parse, 1_000
    ),
    "template one line": Row(lambda n: "{{.a}} {{if .b}}x{{end}}" * n, parse, 2_000),
    "template of a patch": Row(lambda n: {"v": _names(n)}, lambda v: rendered("{{range .v}}- {{.}}\n{{end}}", v), 1_000),
    **{
        f"json patch {op}": Row(_operations(op), lambda made: jsonpatch.json_patch(*made), 8_000)
        for op in ("add", "remove", "replace", "test", "move", "copy")
    },
    **{
        f"json patch of a class {op}": Row(_operations(op), lambda made: class_patches.apply(*made))
        for op in ("add", "remove", "replace", "test", "move", "copy")
    },
    "merge patch": Row(lambda n: (_object(n), _object(n)), lambda made: merge_patched(*made)),
    "json equality": Row(lambda n: (_object(n), _object(n)), lambda made: equal(*made)),
    "strategic merge": Row(
        lambda n: ({"metadata": {"finalizers": _names(n)}}, {"metadata": {"finalizers": _names(2 * n)}}),
        lambda made: strategic.merge(made[0], made[1], SimpleNamespace(go_type="io.k8s.api.core.v1.ConfigMap")),
    ),
    "jsonpath": Row(lambda n: {"items": [{"a": i} for i in range(n)]}, jsonpath.compiled("{.items[*].a}")),
    "label selector": Row(lambda n: ",".join(f"a{i} in (x,y)" for i in range(n)), selectors._parsed_text.__wrapped__),
    "label selector of one value each": Row(lambda n: ",".join(f"a{i}=x" for i in range(n)), selectors._parsed_text.__wrapped__),
    "selector values": Row(
        lambda n: {"matchExpressions": [{"key": "a", "operator": "In", "values": _names(n)}]},
        lambda s: selectors.object_selector(s)({"a": "none"}),
    ),
    "field selector": Row(lambda n: ",".join("metadata.name!=x" for _ in range(n)), selectors.field_requirements.__wrapped__),
    "regular expression": Row(lambda n: "ab" * n, matcher("^(a|b)*c$")),
    "envsubst": Row(lambda n: "".join(f"${{A{i}:=x}} text " for i in range(n)), lambda t: envsubst.substitute(envsubst.parse(t), {})),
    "go quoting": Row(lambda n: "a\n" * n, quote),
    "yaml of a template": Row(_text, to_json),
    "yaml merge keys": Row(lambda n: "a: {" + ", ".join(f"<<: {{k{i}: 1}}" for i in range(n)) + "}", to_json),
    "yaml body": Row(lambda n: _text(n).encode(), load),
    "json body": Row(lambda n: msgspec.json.encode(_object(n)), lambda t: bodies.duplicate_fields(t, bodies.decode_json(t))),
    "schema duplicates in a set": Row(lambda n: {"x": _names(n)}, lambda v: find_duplicates(_LIST, v)),
    "schema duplicates in a set of objects": Row(lambda n: {"y": [{"a": i} for i in range(n)]}, lambda v: find_duplicates(_LIST, v)),
    "schema duplicates in a map": Row(lambda n: {"z": [{"k": i} for i in range(n)]}, lambda v: find_duplicates(_LIST, v)),
    "schema errors of a map that changed": Row(
        lambda n: ({"z": [{"k": i, "v": 1} for i in range(n)]}, {"z": [{"k": i, "v": 2} for i in range(n)]}),
        lambda made: find_errors(_LIST, made[0], old=made[1]),
    ),
    "schema rules of a map that changed": Row(
        lambda n: ({"z": [{"k": i, "a": 1} for i in range(n)]}, {"z": [{"k": i, "a": 2} for i in range(n)]}),
        lambda made: RuleSet(_LIST).validate(made[0], made[1]),
    ),
    "schema unique items": Row(lambda n: {"u": [{"a": i} for i in range(n)]}, lambda v: find_errors(_LIST, v)),
    "schema enumeration": Row(lambda n: {"e": ["b"] * n}, lambda v: find_errors(_LIST, v)),
    "cel equality of sets": Row(lambda n: (_names(n), _names(n)[::-1]), lambda made: equal_unordered(made[0], made[1], ())),
    "field sets": Row(
        lambda n: [load_set({f"f:{name}": {"f:a": {}} for name in _names(n)}) for _ in range(2)],
        lambda s: dump(difference(union(*s), intersection(*s))),
    ),
    "aggregated conditions": Row(
        lambda n: [Reporter("Machine", name, (Condition(type="Ready", status="False", reason="R", message=name),)) for name in _names(n)],
        lambda r: aggregate(r, "Ready"),
    ),
    "order of deletion": Row(lambda n: [_machine(name) for name in _names(n)], lambda m: in_order(m, "Random", NOW)),
    "slot of names": Row(_names, slot),
    "division of replicas": Row(
        lambda n: [Sized(name=name, wanted=3) for name in _names(n)],
        lambda s: proportional(replicas=10, surge=1, is_rolling=True, new="name-1", sets=s),
    ),
    "names of Machines": Row(lambda n: n, _new_names, 1_000),
    "grants of a role": Row(
        lambda n: {"metadata": {"name": "r"}, "rules": [{"verbs": _names(n), "apiGroups": _names(n), "resources": ["r"]}]},
        _granted,
        2_400,
    ),
}
"""Every other entry point by its name."""
