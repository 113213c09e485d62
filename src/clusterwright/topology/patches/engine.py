"""Apply the patches of a class, in order, and copy the result into the desired objects."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.golang import jsonpatch
from clusterwright.golang.quoting import quote
from clusterwright.gotemplate import Budget, TemplateError
from clusterwright.topology.extensions import Asking, CallHandler, ExtensionError, Turn
from clusterwright.topology.model import Blueprint, Desired
from clusterwright.topology.patches.items import Item, UnknownClass, items_of, matches
from clusterwright.topology.patches.results import Misshapen, take_over
from clusterwright.topology.patches.values import BadValue, is_enabled, value_of
from clusterwright.topology.patches.variables import PatchVariables, Values, merged, patch_variables
from clusterwright.topology.paths import has

INLINE: Final = "inline"
_encode = msgspec.json.Encoder(order="sorted").encode
MOST_STEPS: Final = 1_000_000
"""The highest cost of all patches of one Cluster in one pass: one to two seconds of CPU time, in slices."""
STEPS_PER_TURN: Final = 4_000
_BYTES_PER_STEP: Final = 128
"""The bytes of a template that one step copies."""


class PatchError(Exception):
    """The patches cannot be applied. `patch` is the name of the failing patch, if it is one."""

    def __init__(self, text: str, patch: str = "") -> None:
        super().__init__(text)
        self.patch = patch


def apply_patches(cluster: Json, blueprint: Blueprint, desired: Desired, *, runtime_sdk: bool) -> Asking[Desired]:
    """Yield the desired state after all patches of the class; call external ones. Raises PatchError.

    `cluster` has the variables, `desired` is changed in place and returned. Without patches nothing is called.
    """
    patches = (blueprint.cluster_class.get("spec") or {}).get("patches") or ()
    if not patches:
        return desired
    if blueprint.contract is None:
        text = f"failed to get contract version for the ControlPlane object: {blueprint.contract_problem}"
        raise PatchError(f"failed to generate patch request: {text}")
    try:
        items = items_of(blueprint, desired, blueprint.contract)
    except UnknownClass as error:
        raise PatchError(f"failed to generate patch request: {error}") from None
    if not any(patch.get("external") for patch in patches):
        is_done = yield from _patched_alone(cluster, blueprint, desired, patches, items)
        if is_done:
            _take_over(items, desired)
            return desired
    spending = Spending()
    for patch in patches:
        variables = _variables(cluster, blueprint, desired, patch)
        yield from _apply(cluster, patch, items, variables, spending, runtime_sdk=runtime_sdk)
    for patch in patches:
        yield from _validate(cluster, blueprint, desired, patch, items)
    _take_over(items, desired)
    return desired


class Spending(Budget):
    """The budget of all patches of one Cluster, in steps of templates; it also decides when other tasks run."""

    def __init__(self) -> None:
        super().__init__(MOST_STEPS)
        self._turn = MOST_STEPS - STEPS_PER_TURN

    def rest(self) -> Asking[None]:
        """Let other tasks run, if much was spent since the last time."""
        if self.left < self._turn:
            self._turn = self.left - STEPS_PER_TURN
            yield Turn()


_ALONE: dict[bytes, Json] = {}
_MOST_ALONE: Final = 8192


def _patched_alone(cluster: Json, blueprint: Blueprint, desired: Desired, patches: Sequence[Json], items: Sequence[Item]) -> Asking[bool]:
    """Apply inline patches item by item, with cached results for the same template, patches and variables.

    Return False, and change nothing, if one of them fails: then all are applied together, because the error covers all items.
    """
    spending = Spending()
    variables = patch_variables(cluster, blueprint.cluster_class, desired, INLINE)
    prefix = hashlib.sha256(_encode((patches, variables.everywhere))).digest()
    patched = []
    for item in items:
        own = item.own_variables(variables)
        key = hashlib.sha256(prefix + _encode((item.role, item.worker_class, item.template, own))).digest()
        if key not in _ALONE:
            try:
                template = yield from _template_alone(item, patches, variables, spending)
            except (PatchError, jsonpatch.PatchFailed):
                return False
            if len(_ALONE) >= _MOST_ALONE:
                del _ALONE[next(iter(_ALONE))]
            _ALONE[key] = template
        patched.append(_ALONE[key])
    for item, template in zip(items, patched, strict=True):
        item.template = template
    return True


def _template_alone(item: Item, patches: Sequence[Json], variables: PatchVariables, spending: Spending) -> Asking[Json]:
    alone = replace(item)
    for patch in patches:
        if not patch.get("definitions"):
            raise PatchError(f"failed to create patch generator for patch {quote(patch['name'])}", patch["name"])
        made = yield from _generated(patch, [alone], variables, spending)
        for _, kind, content in made:
            _patch_item(alone, kind, content, spending)
    return alone.template


def _variables(cluster: Json, blueprint: Blueprint, desired: Desired, patch: Json) -> PatchVariables:
    source = patch["name"] if patch.get("external") else INLINE
    return patch_variables(cluster, blueprint.cluster_class, desired, source)


def _apply(
    cluster: Json, patch: Json, items: Sequence[Item], variables: PatchVariables, spending: Spending, *, runtime_sdk: bool
) -> Asking[None]:
    name, external = patch["name"], patch.get("external") or {}
    if patch.get("definitions"):
        made = yield from _generated(patch, items, variables, spending)
    elif external.get("generatePatchesExtension"):
        if not runtime_sdk:
            raise PatchError(f"can not use external patch {quote(name)} if RuntimeSDK feature flag is disabled", name)
        made = yield from _asked(cluster, patch, items, variables)
    elif external.get("validateTopologyExtension"):
        if not runtime_sdk:
            raise PatchError(f"can not use external patch {quote(name)} if RuntimeSDK feature flag is disabled", name)
        return
    else:
        raise PatchError(f"failed to create patch generator for patch {quote(name)}", name)
    for item, kind, content in made:
        yield from spending.rest()
        try:
            _patch_item(item, kind, content, spending)
        except jsonpatch.PatchFailed as error:
            raise PatchError(f"failed to apply patches for patch {quote(name)}: failed to apply patch: {error}", name) from None


_Made = tuple[Item, str, Any]
"""A patch for an item: its type, and its content."""


def _generated(patch: Json, items: Sequence[Item], variables: PatchVariables, spending: Spending) -> Asking[list[_Made]]:
    """Return the results of an inline patch's definitions; raises PatchError with all errors."""
    made: list[_Made] = []
    errors: dict[str, None] = {}
    for item in items:
        chosen = [d for d in patch["definitions"] if matches(d.get("selector") or {}, item)]
        if not chosen:
            continue
        seen = merged(variables.everywhere, item.own_variables(variables))
        yield from spending.rest()
        try:
            if is_enabled(patch.get("enabledIf") or "", seen, spending):
                for definition in chosen:
                    operations = yield from _operations(definition, seen, spending)
                    made.append((item, "JSONPatch", operations))
        except BadValue as error:
            errors[f"{error}"] = None
    if errors:
        texts = list(errors)
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        raise PatchError(f"failed to generate patches for patch {quote(patch['name'])}: {text}", patch["name"])
    return made


def _operations(definition: Json, variables: Json, spending: Spending) -> Asking[list[Json]]:
    out = []
    for operation in definition.get("jsonPatches") or ():
        yield from spending.rest()
        plain = {k: operation[k] for k in ("op", "path") if k in operation}
        out.append(plain if operation.get("op") == "remove" else {**plain, "value": value_of(operation, variables, spending)})
    return out


def _listed(values: Values) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _asked(cluster: Json, patch: Json, items: Sequence[Item], variables: PatchVariables) -> Asking[list[_Made]]:
    name, external = patch["name"], patch["external"]
    request = {
        "variables": _listed(variables.everywhere),
        "items": [
            {
                "uid": item.uid,
                "holderReference": item.holder,
                "object": item.template,
                "variables": _listed(item.own_variables(variables)),
            }
            for item in items
        ],
    }
    question = CallHandler(
        "GeneratePatches", external["generatePatchesExtension"], cluster, request, settings=external.get("settings") or {}
    )
    try:
        response = yield question
    except ExtensionError as error:
        raise PatchError(f"failed to generate patches for patch {quote(name)}: {error}", name) from error
    by_uid = {item.uid: item for item in items}
    made: list[_Made] = []
    for answer in response.get("items") or ():
        item = by_uid.get(answer.get("uid") or "")
        if item is None:
            text = f"failed to apply patches for patch {quote(name)}: unable to find corresponding request item for patch"
            raise PatchError(text, name)
        kind = answer.get("patchType") or ""
        try:
            content = base64.b64decode(answer.get("patch") or "", validate=True).decode()
            made.append((item, kind, jsonpatch.decoded(content) if content else None))
        except (binascii.Error, UnicodeDecodeError, jsonpatch.PatchFailed) as error:
            text = f"failed to apply patches for patch {quote(name)}: error decoding json patch: {error}"
            raise PatchError(text, name) from None
    return made


def _patch_item(item: Item, kind: str, content: Any, spending: Spending) -> None:
    """Apply one patch to one item. Only its spec, labels and annotations can change; raises PatchFailed."""
    if kind not in ("JSONPatch", "JSONMergePatch"):
        raise jsonpatch.PatchFailed(f"unknown patchType {kind}")
    if content is None or content in ([], {}):
        return
    try:
        spending.charge(1 + (len(_encode(item.template)) + len(_encode(content))) // _BYTES_PER_STEP)
        patched = jsonpatch.apply(item.template, content) if kind == "JSONPatch" else jsonpatch.merge(item.template, content)
    except (jsonpatch.PatchFailed, TemplateError, RecursionError) as error:
        name = "json patch (RFC6902)" if kind == "JSONPatch" else "json merge patch (RFC7386)"
        raise jsonpatch.PatchFailed(f"error applying {name}: {error}") from None
    if not isinstance(patched, dict) or not all(patched.get(key) and isinstance(patched[key], str) for key in ("kind", "apiVersion")):
        raise jsonpatch.PatchFailed("the patched template has no apiVersion or kind")
    item.template = _patchable_parts(patched, item.template)


def _patchable_parts(patched: Json, template: Json) -> Json:
    """Return a template with the spec, the labels and the annotations of its patched copy. What the copy lacks stays."""
    out = {**template, "spec": patched["spec"]} if "spec" in patched else template
    for part in ("labels", "annotations"):
        if has(patched, "metadata", part):
            out = {**out, "metadata": {**out["metadata"], part: patched["metadata"][part]}}
    return out


def _validate(cluster: Json, blueprint: Blueprint, desired: Desired, patch: Json, items: Sequence[Item]) -> Asking[None]:
    """Let a patch's extension validate the result. It receives the variables that are defined for this patch."""
    external = patch.get("external") or {}
    handler = external.get("validateTopologyExtension")
    if not handler:
        return
    variables = _variables(cluster, blueprint, desired, patch)
    request = {
        "variables": _listed(variables.everywhere),
        "items": [
            {"holderReference": item.holder, "object": item.template, "variables": _listed(item.own_variables(variables))} for item in items
        ],
    }
    try:
        yield CallHandler("ValidateTopology", handler, cluster, request, settings=external.get("settings") or {})
    except ExtensionError as error:
        raise PatchError(f"validation of patch {quote(patch['name'])} failed: {error}", patch["name"]) from error


def _take_over(items: Sequence[Item], desired: Desired) -> None:
    try:
        take_over(items, desired)
    except Misshapen as error:
        raise PatchError(f"failed to apply patches to desired state: {error}") from None
