"""Translates vectors of single functions to calls of ours: here those of the condition algebra, others in the files `ops_*.py` beside it."""

from __future__ import annotations

import importlib.util
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from clusterwright import conditions as c
from clusterwright import conversion
from clusterwright.api.meta import Condition, Unstructured, V1Beta1Condition
from clusterwright.conditions import v1beta1 as old

CONTROL_PLANE = "cluster.x-k8s.io/control-plane"


def evaluate(vector: dict[str, Any]) -> dict[str, Any]:
    """Our answer in the form of the vector's `expect`."""
    if vector["op"] not in _OPERATIONS:
        return _elsewhere()[vector["op"]](vector["inputs"])
    inputs, options = vector["inputs"], vector.get("options") or {}
    try:
        return _OPERATIONS[vector["op"]](inputs, options)
    except (c.NothingToMerge, c.ConditionConflict, c.InvalidConditions, conversion.ConversionFailed):
        return {"error": True}


# ------------------------------------------------------------------------------------------------ in


def condition(json: dict[str, Any]) -> Condition:
    return msgspec.convert(json, Condition)


def old_condition(json: dict[str, Any]) -> V1Beta1Condition:
    return msgspec.convert(json, V1Beta1Condition)


def conditions(obj: dict[str, Any] | None) -> tuple[Condition, ...]:
    items = Unstructured(obj or {}).at("status", "conditions") or []
    return tuple(condition(i) for i in items)


def old_conditions(obj: dict[str, Any] | None) -> tuple[V1Beta1Condition, ...]:
    items = Unstructured(obj or {}).at("status", "deprecated", "v1beta1", "conditions") or []
    return tuple(old_condition(i) for i in items)


def now(inputs: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(inputs["now"])


def reporter(obj: dict[str, Any]) -> c.Reporter:
    meta = obj["metadata"]
    return c.Reporter(obj["kind"], meta["name"], conditions(obj), obj["kind"] == "Machine" and CONTROL_PLANE in meta.get("labels", {}))


TRANSFORMS = {
    "reverse": lambda lines: lines[::-1],
    "first": lambda lines: lines[:1],
    "none": lambda lines: [],
    "controlPlaneComponents": c.group_control_plane_components,
}


def strategy(given: dict[str, Any] | None) -> c.Strategy | None:
    if given is None:
        return None
    rules = given.get("priorities", [])

    def priority(one: Condition) -> c.Priority | None:
        for rule in rules:
            exact = all(getattr(one, f) == rule[f] for f in ("type", "status", "reason") if f in rule)
            if exact and one.message.startswith(rule.get("messagePrefix", "")):
                return c.Priority[rule["priority"].upper()]
        return None

    return c.Strategy(
        reasons=c.Reasons(**given.get("reasons", {})),
        negative=frozenset(given.get("negativePolarity", [])),
        target_negative=given.get("targetNegative", False),
        priority=priority,
        transform=TRANSFORMS.get(given.get("transform", "")),
    )


# ----------------------------------------------------------------------------------------------- out


def shown(one: Condition | V1Beta1Condition | None) -> dict[str, Any] | None:
    if one is None:
        return None
    fields = ("type", "status", "reason", "message", *(("severity",) if isinstance(one, V1Beta1Condition) else ()))
    answer = {f: getattr(one, f) for f in fields}
    if one.last_transition_time is not None:
        answer["lastTransitionTime"] = msgspec.to_builtins(one.last_transition_time)
    if isinstance(one, Condition) and one.observed_generation:
        answer["observedGeneration"] = one.observed_generation
    return answer


# ---------------------------------------------------------------------------------------- operations


def mirror(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    fallback = c.Fallback(**options["fallback"]) if "fallback" in options else None
    return {
        "condition": shown(c.mirror(conditions(inputs["source"]), inputs["type"], target=options.get("targetType", ""), fallback=fallback))
    }


def foreign_mirror(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    fallback = c.Fallback(**options["fallback"]) if "fallback" in options else None
    found = c.conditions_of(inputs["source"])
    return {"condition": shown(c.mirror(found, inputs["type"], target=options.get("targetType", ""), fallback=fallback))}


def aggregate(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    negative = options.get("negativePolarity") or []
    if negative not in ([], [inputs["type"]]) and "strategy" not in options:
        return {"error": True}
    found = c.aggregate(
        [reporter(s) for s in inputs["sources"]],
        inputs["type"],
        target=options.get("targetType", ""),
        negative=bool(negative),
        strategy=strategy(options.get("strategy")),
    )
    return {"condition": shown(found)}


def summary(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    found = c.summary(
        reporter(inputs["source"]),
        options.get("types") or [],
        target=inputs["targetType"],
        negative=options.get("negativePolarity") or [],
        ignore_if_missing=options.get("ignoreIfMissing") or [],
        overrides=[condition(o) for o in options.get("overrides") or []],
        strategy=strategy(options.get("strategy")),
    )
    return {"condition": shown(found)}


def merge(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    if not inputs["conditions"]:
        return {"error": True}
    named = [
        c.Named(i["owner"]["kind"], i["owner"]["name"], condition(i["condition"]), i["owner"].get("controlPlane", False))
        for i in inputs["conditions"]
    ]
    status, reason, message = c.merge(inputs["operation"], named, inputs["types"], strategy(options.get("strategy")) or c.Strategy())
    return {"condition": {"status": status, "reason": reason, "message": message}}


def set_(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    generation = inputs["object"]["metadata"].get("generation", 0)
    found = c.set_condition(conditions(inputs["object"]), condition(inputs["condition"]), generation=generation, now=now(inputs))
    return {"conditions": [shown(one) for one in found]}


def delete(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {"conditions": [shown(one) for one in c.delete_condition(conditions(inputs["object"]), inputs["type"])]}


def sort(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {"types": [one.type for one in c.sort_conditions(condition(i) for i in inputs["list"])]}


def patch(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    lists = [conditions(inputs[k]) for k in ("before", "after", "latest")]
    found = c.patch_conditions(*lists, now=now(inputs), owned=options.get("owned") or [], force=options.get("force", False))
    return {"conditions": [shown(one) for one in found]}


def query(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    found, t = conditions(inputs["object"]), inputs["type"]
    return {
        "has": c.has(found, t),
        "isTrue": c.is_true(found, t),
        "isFalse": c.is_false(found, t),
        "isUnknown": c.is_unknown(found, t),
        "reason": c.reason_of(found, t),
        "message": c.message_of(found, t),
    }


def old_mirror(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    fallback = None
    if "fallback" in options:
        given = options["fallback"]
        fallback = old.true("") if given["value"] else old.false("", given["reason"], given["severity"], given["message"])
    return {"condition": shown(old.mirror(old_conditions(inputs["source"]), inputs["targetType"], fallback))}


def old_aggregate(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    found = old.aggregate(
        [(s["kind"], s["metadata"]["name"], old_conditions(s)) for s in inputs["sources"]],
        inputs["targetType"],
        step_counter=options.get("stepCounterIf", True),
        source_ref=options.get("addSourceRef", False),
    )
    return {"condition": shown(found)}


def old_summary(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    source = inputs["source"]
    found = old.summary(
        source["kind"],
        source["metadata"]["name"],
        old_conditions(source),
        types=options.get("types"),
        negative=options.get("negativePolarity") or [],
        step_counter=options.get("stepCounterIf", options.get("stepCounter", False)),
        step_counter_if_only=options.get("stepCounterIfOnly"),
        source_ref=options.get("addSourceRef", False),
    )
    return {"condition": shown(found)}


def old_merge(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    located = [
        old.Located(i["owner"]["kind"], i["owner"]["name"], old_condition(i["condition"]), i.get("negative", False))
        for i in inputs["conditions"]
    ]
    steps = options.get("stepCounterTo") if options.get("stepCounter") else None
    found = old.merge(
        located, inputs["targetType"], types=options.get("types") or (), steps=steps, source_ref=options.get("addSourceRef", False)
    )
    return {"condition": shown(found)}


def old_set(inputs: dict[str, Any], options: dict[str, Any], keep_time: bool = False) -> dict[str, Any]:
    found = old.set_condition(old_conditions(inputs["object"]), old_condition(inputs["condition"]), now=now(inputs), keep_time=keep_time)
    return {"conditions": [shown(one) for one in found]}


def old_delete(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {"conditions": [shown(one) for one in old.delete_condition(old_conditions(inputs["object"]), inputs["type"])]}


def old_patch(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    lists = [old_conditions(inputs[k]) for k in ("before", "after", "latest")]
    found = old.patch_conditions(*lists, now=now(inputs), owned=options.get("owned") or [], force=options.get("force", False))
    return {"conditions": [shown(one) for one in found]}


def converted(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return _parted(conversion.convert(inputs["object"], inputs["to"], _versions(inputs)))


def there_and_back(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    obj, versions = inputs["object"], _versions(inputs)
    return _parted(conversion.convert(conversion.convert(obj, inputs["through"], versions), obj["apiVersion"], versions))


def _versions(inputs: dict[str, Any]) -> conversion.Versions:
    found = {crd["metadata"]["name"]: crd["metadata"] for crd in inputs.get("crds") or []}
    return conversion.versions_from_crds(found.get)


def _parted(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without its data annotation, and what that says."""
    annotations = obj["metadata"].get("annotations", {})
    try:
        data = json.loads(annotations.get(conversion.DATA_ANNOTATION, "-"))
    except ValueError:
        return {"object": obj}
    del annotations[conversion.DATA_ANNOTATION]
    if not annotations:
        del obj["metadata"]["annotations"]
    return {"object": obj, "data": data}


_OPERATIONS: dict[str, Any] = {
    "convert": converted,
    "round-trip": there_and_back,
    "mirror": mirror,
    "foreign-mirror": foreign_mirror,
    "aggregate": aggregate,
    "summary": summary,
    "merge": merge,
    "set": set_,
    "delete": delete,
    "sort": sort,
    "patch": patch,
    "query": query,
    "v1beta1-mirror": old_mirror,
    "v1beta1-aggregate": old_aggregate,
    "v1beta1-summary": old_summary,
    "v1beta1-merge": old_merge,
    "v1beta1-set": old_set,
    "v1beta1-set-keep-time": lambda i, o: old_set(i, o, keep_time=True),
    "v1beta1-delete": old_delete,
    "v1beta1-patch": old_patch,
}

_ELSEWHERE: dict[str, Any] = {}


def _elsewhere() -> dict[str, Any]:
    """The operations of the files beside this one: each has `OPERATIONS`, name to function of the vector's inputs."""
    if not _ELSEWHERE:
        for path in sorted(Path(__file__).resolve().parent.glob("ops_*.py")):
            spec = importlib.util.spec_from_file_location(f"vectors_{path.stem}", path)
            assert spec
            assert spec.loader
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _ELSEWHERE.update(module.OPERATIONS)
    return _ELSEWHERE
