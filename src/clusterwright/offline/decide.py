"""One reconcile pass, offline: the production reconciler on a world made of the given objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from clusterwright.api.meta import GroupVersionKind, Json, Object, ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.controllers.kit import registry
from clusterwright.offline.bundle import BadBundle, Bundle, assemble
from clusterwright.offline.contracts import complete
from clusterwright.offline.observed import Action
from clusterwright.offline.world import World, decoded, without_owners
from clusterwright.runtime.keys import sample_keys


def decide(objects: Sequence[Mapping[str, Any]], subject: str, controller: str = "") -> Json:
    """Return the next actions of our controller of the subject's kind, and the status that it would write.

    `objects` are whole Kubernetes objects and at most one Observation; `subject` is "Kind/namespace/name"; `controller` names
    one of the kind's controllers (`topology/cluster`), empty means the first. Nothing is contacted and nothing outside is
    changed. The answer's form is described in docs/bundles.md.
    """
    given: tuple[object, object] = (objects, subject)  # callers without a type checker pass anything
    if isinstance(given[0], str | bytes):
        raise BadBundle("objects: a list of objects is expected, not a text; pass `clusterwright.parse(text)`")
    if not isinstance(given[1], str):
        raise BadBundle(f"subject: text such as Cluster/default/shop is expected, not {type(given[1]).__name__}")
    return decide_bundle(assemble(objects, as_they_are=True), subject, controller)


def decide_bundle(bundle: Bundle, subject: str, controller: str = "") -> Json:
    """Do the same as `decide` for a bundle that has been read already."""
    kind, _, rest = subject.partition("/")
    namespace, _, name = rest.rpartition("/")
    entry = registry.find(kind, controller)
    if entry is None:
        which = f"controller {controller!r}" if controller else "controller"
        raise BadBundle(f"subject {subject!r}: no {which} reconciles {kind or 'it'}; known: {', '.join(sorted(registry.KINDS))}")
    definition = registry.definition(entry)
    key = ObjectKey(namespace, name)
    now = bundle.moment()
    world = World(complete(bundle), now, sample_keys())
    result = run_to_completion(run_pass(world, definition.make(world.dependencies()), definition.kind, key))
    return result


async def run_pass(world: World, reconciler: Any, kind: type[Object], key: ObjectKey) -> Json:
    """Run one pass of a reconciler in a world and return the answer of `decide`."""
    requeue: float | None = None
    failure: str | None = None
    try:
        result = await world.reports.complete(reconciler, key)
        requeue = result.requeue_after.total_seconds() if result.requeue_after else None
    except Exception as error:
        failure = str(error) or type(error).__name__
    subject_gvk = gvk_of(kind)
    others: Json = {}
    data: dict[str, str] = {}
    for (_, gvk, touched), client in world.journal.touched.items():
        if gvk == subject_gvk and touched == key:
            continue
        after = await _unobserved(client).find(gvk, touched)
        if after is None:
            continue
        others[f"{gvk.kind}/{touched.name}"] = without_owners(dict(after.json))
        data.update(_data(gvk, touched, after.json))
    subject = await _unobserved(world.client).find(subject_gvk, key)
    return {
        "object": None if subject is None else without_owners(dict(subject.json)),
        "actions": [a.to_json() for a in _net(world.journal.actions) if (a.kind, a.namespace, a.name) != (subject_gvk.kind, *key)],
        "requeueAfterSeconds": requeue,
        "error": failure,
        "data": data,
        "others": others,
        "rows": world.rows,
        "calls": world.canned.calls,
        "registered": list(world.extensions.registry.names),
    }


def _net(actions: Iterable[Action]) -> Iterator[Action]:
    """Return the actions without changes to objects that the pass created itself: they are part of the creation."""
    created = set()
    for action in actions:
        name = (action.kind, action.namespace, action.name)
        if action.verb == "create":
            created.add(name)
        if action.verb not in {"patch", "update"} or name not in created:
            yield action


def _unobserved(client: Any) -> Any:
    """Return the client below the faults, which reads every object even if the pass could not."""
    return client.inner


def _data(gvk: GroupVersionKind, key: ObjectKey, json: Mapping[str, Any]) -> dict[str, str]:
    if gvk.group or gvk.kind not in {"Secret", "ConfigMap"}:
        return {}
    values = ((k, decoded(v) if gvk.kind == "Secret" else v) for k, v in (json.get("data") or {}).items())
    return {f"{gvk.kind}/{key.name}/{k}": v for k, v in values if isinstance(v, str)}


def run_to_completion(coroutine: Any) -> Json:
    """Run to completion from synchronous code, also where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner() as runner:
            answer: Json = runner.run(coroutine)
            return answer
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        done: Json = pool.submit(asyncio.run, coroutine).result()
        return done
