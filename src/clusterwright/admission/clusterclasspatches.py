"""The rows PA-1 to PA-27: patches of a ClusterClass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from clusterwright.admission.classes import WORKERS, class_workers
from clusterwright.admission.rule import Fault, Guard, Review, Rule, at, items
from clusterwright.admission.sets import FORBIDDEN, INVALID, REQUIRED, is_filled
from clusterwright.admission.showing import ordered
from clusterwright.admission.templates import patch_template_problem
from clusterwright.api.meta import Json
from clusterwright.api.names import qualified_name
from clusterwright.apiserver.status import ErrorType
from clusterwright.golang.numbers import atoi
from clusterwright.golang.quoting import quote

INLINE: Final = "inline"
_PATCH: Final = "spec.patches[]"
_DEFINITION: Final = f"{_PATCH}.definitions[]"
_JSON: Final = f"{_DEFINITION}.jsonPatches[]"
_MATCH: Final = "matchResources"


def _builtins() -> frozenset[str]:
    below = {
        "cluster": (
            "name namespace uid metadata.labels metadata.annotations topology topology.classRef.name topology.classRef.namespace "
            "topology.class topology.classNamespace topology.version network network.serviceDomain network.services network.pods"
        ),
        "controlPlane": "name replicas version metadata.labels metadata.annotations machineTemplate.infrastructureRef.name",
        **dict.fromkeys(
            ("machineDeployment", "machinePool"),
            "class name replicas topologyName version metadata.labels metadata.annotations bootstrap.configRef.name infrastructureRef.name",
        ),
    }
    return frozenset(f"builtin.{top}{f'.{path}' if path else ''}" for top, paths in below.items() for path in ("", *paths.split()))


BUILTINS: Final = _builtins()
"""The variables that exist without a definition."""


def _unreadable(name: str) -> Callable[[Review, Any], Iterator[Fault]]:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        if value and (error := patch_template_problem(value, name)):
            yield Fault(value, error=error)

    return guard


def _pretty(value: Any) -> str:
    """Return a value as text over several lines, for these errors."""
    return json.dumps(ordered(value if value is not None else {}), indent=2, ensure_ascii=False)


def _repeated(review: Review, value: Any) -> Iterator[Fault]:
    del review
    seen: set[str] = set()
    for n, patch in enumerate(value or ()):
        name = patch.get("name") or ""
        if name and name in seen:
            yield Fault(name, (n,), name=quote(name))
        seen.add(name)


# ----------------------------------------------------------------------------------------- JSON patches


def _writes(value: Any) -> bool:
    return at(value, "op") in ("add", "replace")


def _not_below_spec(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if not (at(value, "path") or "").startswith("/spec"):
        yield Fault(_pretty(value))


def _indexes(value: Any) -> Iterator[int]:
    for part in (at(value, "path") or "").split("/"):
        try:
            yield atoi(part)
        except ValueError:
            continue


def _wrong_index(review: Review, value: Any) -> Iterator[Fault]:
    del review
    for index in _indexes(value):
        if at(value, "op") == "add" and index != 0:
            yield Fault(at(value, "path"))


def _any_index(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if at(value, "op") in ("replace", "remove"):
        for _ in _indexes(value):
            yield Fault(at(value, "path"), op=at(value, "op"))


def _sources(both: bool) -> Guard:
    """Return the sources of a value: a literal, or a reference; null is a value."""

    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        given, taken = at(value, "value") is not None, at(value, "valueFrom") is not None
        if _writes(value) and (given and taken if both else not given and not taken):
            yield Fault(_pretty(value))

    return guard


def _value_from(both: bool) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        source = at(value, "valueFrom")
        if not _writes(value) or source is None:
            return
        template, variable = bool(source.get("template")), bool(source.get("variable"))
        if template and variable if both else not template and not variable:
            yield Fault(_pretty(source))

    return guard


def _no_template(review: Review, value: Any) -> Iterator[Fault]:
    if _writes(value):
        yield from _unreadable("valueFrom.template")(review, at(value, "valueFrom", "template"))


def _no_builtin(review: Review, value: Any) -> Iterator[Fault]:
    del review
    variable = at(value, "valueFrom", "variable") or ""
    if _writes(value) and variable.startswith("builtin.") and variable not in BUILTINS:
        yield Fault(variable)


def _no_variable(review: Review, value: Any) -> Iterator[Fault]:
    variable = at(value, "valueFrom", "variable") or ""
    if not _writes(value) or not variable or variable.startswith("builtin."):
        return
    words = variable.replace("[", ".").split(".")
    name = next((word for word in words if word), "")
    if not name or name not in {v.get("name") or "" for v in items(review.new, "spec", "variables")}:
        yield Fault(variable, name=variable)


# ----------------------------------------------------------------------------------------- selectors


def _enabled(selector: Any) -> bool:
    resources = at(selector, _MATCH)
    return (
        at(resources, "infrastructureCluster") is True
        or at(resources, "controlPlane") is True
        or any(at(resources, key, "names") for key in ("machineDeploymentClass", "machinePoolClass"))
    )


def _disabled(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if not _enabled(value):
        yield Fault(_pretty(value))


def _selects(selector: Any, reference: Any) -> bool:
    return all((at(selector, key) or "") == (at(reference, key) or "") for key in ("apiVersion", "kind"))


def _unlike(key: str, *parts: tuple[str, ...]) -> Guard:
    """Return whether the matcher is on and no template of these parts matches the selector."""

    def guard(review: Review, value: Any) -> Iterator[Fault]:
        references = [at(review.new, "spec", *part, "templateRef") for part in parts]
        # the first is always there, the others only where they are defined
        candidates = [references[0], *filter(is_filled, references[1:])]
        if at(value, _MATCH, key) is True and not any(_selects(value, reference) for reference in candidates):
            yield Fault(True)

    return guard


def _pattern_problem(name: str) -> str:
    """Return the error of a name with a star."""
    if "*" not in name:
        return ""
    if name.count("*") > 1:
        return 'selector can at most contain a single "*" rune'
    if not name.startswith("*") and not name.endswith("*"):
        return '"*" rune can only appear at the beginning, or ending of the selector'
    if qualified_name(name.replace("*", "a")):
        return "selector does not comply with the Kubernetes naming standards"
    return ""


def matches(pattern: str, name: str) -> bool:
    """Return whether a name, with a star at its beginning or end, matches a class."""
    if pattern in ("*", name):
        return True
    if pattern.startswith("*") and name.endswith(pattern.removeprefix("*")):
        return True
    return pattern.endswith("*") and name.startswith(pattern.removesuffix("*"))


def _names(selector: Any, key: str) -> Iterator[tuple[int, str]]:
    """Yield the names up to the first bad one."""
    for n, name in enumerate(at(selector, _MATCH, key, "names") or ()):
        yield n, name or ""
        if _pattern_problem(name or ""):
            return


def _bad_names(key: str) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        for n, name in _names(value, key):
            if text := _pattern_problem(name):
                yield Fault(name, (n,), text=text)

    return guard


def _unused_names(key: str, kind: str) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        for n, name in _names(value, key):
            if not _pattern_problem(name) and not any(_meant(value, name, entry) for entry in class_workers(review.new, kind)):
                yield Fault(name, (n,))

    return guard


def _meant(selector: Any, name: str, entry: Json) -> bool:
    parts = ("infrastructure", "bootstrap")
    return matches(name, entry.get("class") or "") and any(_selects(selector, at(entry, part, "templateRef")) for part in parts)


# ----------------------------------------------------------------------------------------- the rows


def _shown(path: str) -> str:
    return path.replace("[]", "[{}]")


def patches(ids: str) -> tuple[Rule, ...]:
    """Return all rows about `spec.patches`."""

    def row(id: str, *parts: Any, **options: Any) -> Rule:
        return Rule(f"{ids} {id}", *parts, **options)

    selector, value_from = f"{_DEFINITION}.selector", f"{_shown(_JSON)}.valueFrom"
    resources = f"{_shown(selector)}.{_MATCH}"
    enabled = "selector is enabled but matches neither the bootstrap ref nor the infrastructure ref of a {kind} class"
    per_kind = tuple(
        rule
        for kind, of, key, first in zip(WORKERS, ("MachineDeployment", "MachinePool"), ("machineDeploymentClass", "machinePoolClass"), (24, 26), strict=True)
        for rule in (
            row(f"PA-{first}", INVALID, selector, _bad_names(key), "{text}", path=f"{resources}.{key}.names[{{}}]"),
            row(f"PA-{first + 1}", INVALID, selector, _unused_names(key, kind), enabled.replace("{kind}", of), path=f"{resources}.{key}.names[{{}}]"),
        )
    )  # fmt: skip
    return (
        row("PA-1", REQUIRED, f"{_PATCH}.name", lambda _, v: not v, "patch name must be defined"),
        row("PA-2", REQUIRED, f"{_PATCH}.name", lambda _, v: v == INLINE, f'"{INLINE}" can not be used as the name of a patch'),
        row("PA-3", INVALID, "spec.patches", _repeated, "patch names must be unique. Patch with name {name} is defined more than once",
            path="spec.patches[{}].name"),
        row("PA-4", INVALID, f"{_PATCH}.enabledIf", _unreadable("enabledIf"), "template can not be parsed: {error}"),
        row("PA-5", REQUIRED, _PATCH, lambda _, v: at(v, "definitions") is None and at(v, "external") is None, "one of definitions or external must be defined"),
        row("PA-6", INVALID, _PATCH, lambda _, v: at(v, "definitions") is not None and at(v, "external") is not None,
            "only one of definitions or external can be defined"),
        row("PA-7", FORBIDDEN, f"{_PATCH}.external", lambda r, v: v is not None and not r.enabled("RuntimeSDK"),
            "patch.external can be used only if the RuntimeSDK feature flag is enabled"),
        row("PA-8", INVALID, f"{_PATCH}.external",
            lambda _, v: v is not None and not v.get("generatePatchesExtension") and not v.get("validateTopologyExtension"),
            "one of validateTopologyExtension and generatePatchesExtension must be defined"),
        row("PA-9", ErrorType.NOT_SUPPORTED, _JSON, lambda _, v: [] if at(v, "op") in ("add", "replace", "remove") else [Fault(_pretty(v))],
            'supported values: "add", "remove", "replace"', path=f"{_shown(_JSON)}.op"),
        row("PA-10", INVALID, _JSON, _not_below_spec, 'jsonPatch path must start with "/spec"', path=f"{_shown(_JSON)}.path"),
        row("PA-11", INVALID, _JSON, _wrong_index, 'arrays can only be accessed using "0" (prepend) or "-" (append)', path=f"{_shown(_JSON)}.path"),
        row("PA-12", INVALID, _JSON, _any_index, "elements in arrays can not be accessed in a {op} operation", path=f"{_shown(_JSON)}.path"),
        row("PA-13", INVALID, _JSON, _sources(both=False), "jsonPatch must define one of value or valueFrom"),
        row("PA-14", INVALID, _JSON, _sources(both=True), "jsonPatch can not define both value and valueFrom"),
        row("PA-16", INVALID, _JSON, _value_from(both=False), "valueFrom must set either template or variable", path=value_from),
        row("PA-17", INVALID, _JSON, _value_from(both=True), "valueFrom can not set both template and variable", path=value_from),
        row("PA-18", INVALID, _JSON, _no_template, "template can not be parsed: {error}", path=f"{value_from}.template"),
        row("PA-19", INVALID, _JSON, _no_builtin, "not a defined builtin variable", path=f"{value_from}.variable"),
        row("PA-20", INVALID, _JSON, _no_variable, "variable with name {name} cannot be found", path=f"{value_from}.variable"),
        row("PA-21", INVALID, selector, _disabled, "no selector enabled"),
        row("PA-22", INVALID, selector, _unlike("infrastructureCluster", ("infrastructure",)), "selector is enabled but does not match the infrastructure ref",
            path=f"{resources}.infrastructureCluster"),
        row("PA-23", INVALID, selector, _unlike("controlPlane", ("controlPlane",), ("controlPlane", "machineInfrastructure")),
            "selector is enabled but matches neither the controlPlane ref nor the controlPlane machineInfrastructure ref", path=f"{resources}.controlPlane"),
        *per_kind,
    )  # fmt: skip
