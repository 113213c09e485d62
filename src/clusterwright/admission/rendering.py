"""Render the rules as a page of documentation, from the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clusterwright.admission.hook import Hook
from clusterwright.admission.registry import EMBEDDED, HOOKS, KEPT_ELSEWHERE
from clusterwright.admission.rule import CREATE, DELETE, UPDATE, WRITE, Delegated, Rule

_WHEN = {WRITE: "create, update", CREATE: "create", UPDATE: "update", DELETE: "delete"}
_HEAD = """# Rules of admission

Rendered from the code by `make docs`; do not edit. Each rule has an id; a refusal names the field and, but for those marked bare,
comes with a cause for every broken rule at once. `[]` is the index of an item, `[name]` its name. Words in braces are filled in.
"""


def as_markdown() -> str:
    """Return all hooks, their defaults first."""
    return "\n".join([_HEAD, *(_hook(hook) for hook in (*HOOKS, *EMBEDDED)), _elsewhere()])


def _hook(hook: Hook) -> str:
    title = f"{hook.kind.kind}/{hook.subresource}" if hook.subresource else hook.kind.kind
    lines = [f"## {title}", ""]
    if hook.defaults:
        lines += [f"`{hook.name('default')}` fills in:", "", "| Rule | Field |", "|---|---|"]
        lines += [f"| {', '.join(row.ids)} | `{row.field}` |" for row in hook.defaults]
        lines.append("")
    bare = "" if hook.form == "causes" else " (bare)"
    lines += [f"`{hook.name()}` refuses{bare}:", "", "| Rule | On | Error | Field | Message |", "|---|---|---|---|---|"]
    lines += _rows(hook)
    return "\n".join([*lines, ""])


def _rows(hook: Hook) -> Iterator[str]:
    if hook.gate is not None:
        yield _row(hook, hook.gate, " (bare)")
    for rule in hook.required:
        yield _row(hook, rule, " (by defaulting)")
    for rule in hook.defaulted:
        yield _row(hook, rule, " (by defaulting)")
    for rule in hook.rules:
        yield _row(hook, rule, "")


def _row(hook: Hook, rule: Rule, note: str) -> str:
    shown = "as each of them says" if isinstance(rule, Delegated) else rule.message
    kind = "" if isinstance(rule, Delegated) else rule.type.value[0].removeprefix("FieldValue")
    path = rule.path if rule.path != "{}" else "(each changed path)"
    field = rule.field if path == re.sub(r"\[[^\]]*\]", "[{}]", rule.field) else path
    cells = (", ".join(rule.ids), _WHEN[rule.on & hook.on] + note, kind, f"`{field}`" if field else "", shown.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def _elsewhere() -> str:
    lines = ["## Kept elsewhere", "", "| Rule | Where it holds |", "|---|---|"]
    return "\n".join([*lines, *(f"| {id} | {where} |" for id, where in KEPT_ELSEWHERE.items()), ""])
