"""The building blocks of rows in the table of built-in kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.apiserver.builtins import columns
from clusterwright.apiserver.builtins.handler import Builtin, Change
from clusterwright.apiserver.interfaces import Checks, Column, Resource

GENERATION: Final = {"generation": True}
STRICT: Final = {"unconditional_update": False}
UPSERT: Final = {"create_on_update": True}
RETURNED: Final = {"returns_deleted": True}
_CHECKS: Final[Mapping[str, Checks]] = {
    **dict.fromkeys(
        (
            "ConfigMap", "Secret", "ServiceAccount", "Endpoints", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Namespace",
            "Node", "StorageClass", "Job", "Ingress", "PersistentVolumeClaim",
        ),
        Checks(content=4, finalizers=2),
    ),
    **dict.fromkeys(("LimitRange", "EndpointSlice"), Checks(changes=1)),
    **dict.fromkeys(("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"), Checks(changes=1, finalizers=0)),
    "Lease": Checks(finalizers=0),
    "PodDisruptionBudget": Checks(changes=1, content=2, finalizers=0),
    "CustomResourceDefinition": Checks(finalizers=0),
}  # fmt: skip
"""Kinds whose metadata is checked more or less often than usual."""
_ABSENT: Final = (None, "")
_ZERO: Final = (None, 0)


def fields(*names: str) -> dict[str, tuple[str, ...]]:
    """Return field selectors whose labels equal the paths."""
    return {n: tuple(n.split(".")) for n in names}


_EXTENDING: Final = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"})
"""Groups whose kinds extend the API server or change its admission."""


def builtin(
    group: str,
    kind: str,
    go_type: str,
    *,
    version: str = "v1",
    plural: str = "",
    namespaced: bool = True,
    short: tuple[str, ...] = (),
    all_category: bool = False,
    status: bool = False,
    table: columns.Table | None = None,
    resource: dict[str, Any] | None = None,
    handler: type[Builtin] = Builtin,
    **rules: Any,
) -> Resource:
    """Return one row of the table: the resource of a built-in kind, and its handler with its `rules`."""
    gvk = GroupVersionKind(group, version, kind)
    if table is not None:
        rules["columns"], rules["cells"] = table
    made = handler(gvk, go_type, status=status, **rules)
    lower = kind.lower()
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=plural or (lower[:-1] + "ies" if lower.endswith("y") else lower + ("es" if lower.endswith("s") else "s")),
        singular=lower,
        namespaced=namespaced,
        list_kind=f"{kind}List",
        short_names=short,
        categories=("all",) if all_category else ("api-extensions",) if group in _EXTENDING else (),
        status=status,
        checks=_CHECKS.get(kind, Checks()),
        handler=made,
        **{"generation": False, **(resource or {})},
    )


def filled(values: Mapping[str, Any], *, zero: Mapping[str, Any] | None = None) -> Change:
    """Return defaults from data: a path (`spec.ports[].protocol`) and the value for an absent field (or, with `zero`, for 0).

    The parents of a path must exist, except for the first.
    """
    steps = [
        (path.replace("[]", ".[]").split("."), value, empty)
        for empty, table in ((_ABSENT, values), (_ZERO, zero or {}))
        for path, value in table.items()
    ]

    def default(obj: Json) -> None:
        for path, value, empty in steps:
            _fill(obj, path, value, empty, first=True)

    return default


def _fill(target: Any, path: list[str], value: Any, empty: tuple[Any, ...], *, first: bool = False) -> None:
    head, *rest = path
    if head == "[]":
        for item in target if isinstance(target, list) else ():
            _fill(item, rest, value, empty)
    elif not isinstance(target, dict):
        return
    elif rest:
        if first:
            target.setdefault(head, {})
        _fill(target.get(head), rest, value, empty)
    elif target.get(head) in empty:
        target[head] = dict(value) if isinstance(value, dict) else value


def shown(*cells: tuple[str, str] | tuple[str, str, str]) -> columns.Table:
    """Return columns from data: a name, a path (`a.b`; `len a.b` counts), and the type if it is not text. Age is an own entry."""

    def value(obj: Json, path: str) -> Any:
        words = path.split()
        found: Any = obj
        for step in words[-1].split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if words[0] == "len":
            return len(found or ())
        if isinstance(found, list):
            return ",".join(map(str, found))
        return "<unset>" if found is None else found

    def row(obj: Json, now: Any) -> list[Any]:
        made = [columns.cell_age(obj, now) if name == "Age" else value(obj, path) for name, path, *_ in cells]
        return [(obj.get("metadata") or {}).get("name", ""), *made]

    described = (
        columns.AGE if name == "Age" else Column(name, kind[0] if kind else "string", "", f"{name} of the object")
        for name, _, *kind in cells
    )
    return tuple(described), row
