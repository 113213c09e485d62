"""`clusterwright wait KIND/NAME --for=GOAL`: wait for a condition, creation or deletion, by a watch."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.cli import connect, discovery, jsonpath, subjects
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.similar import similar
from clusterwright.runtime.following import follow

Goal = Callable[[Json | None], "tuple[bool, str]"]
"""Return whether an object (None: it does not exist) has reached the goal, and its present state."""


def run(arguments: argparse.Namespace) -> int:
    """Wait for the goal. Return 1 if it is not reached in time or there is no object to wait for."""
    subject, rest = subjects.parse(arguments.words)
    if rest:
        raise Usage(f"unexpected argument {' '.join(rest)!r}: exactly one object is expected")
    return asyncio.run(_run(arguments, subject, goal(arguments.goal)))


def goal(text: str) -> Goal:
    """Return the goal that a text names, with kubectl's syntax; raises Usage."""
    what, _, rest = text.partition("=")
    if what in {"delete", "create"} and not rest:
        return lambda obj: ((obj is None) is (what == "delete"), "it does not exist" if obj is None else "it still exists")
    if what == "condition" and rest:
        type_, _, status = rest.partition("=")
        return lambda obj: _condition(obj, type_, status or "True")
    if what == "jsonpath" and rest:
        path, closing, value = rest.strip("'").rpartition("}")
        try:
            find = jsonpath.compiled(path + closing) if closing else jsonpath.compiled(value)
        except jsonpath.BadPath as error:
            raise Usage(f"--for: {error}") from None
        wanted = value.lstrip("'").removeprefix("=").strip("'\"") if closing and "=" in value else None
        return lambda obj: _value(obj, find, wanted)
    raise Usage(f"--for {text}: condition=TYPE[=STATUS], delete, create or jsonpath='{{.path}}'[=VALUE] is expected")


def _condition(obj: Json | None, type_: str, status: str) -> tuple[bool, str]:
    conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
    found: dict[str, Any] = next((c for c in conditions if c["type"].lower() == type_.lower()), {})
    if not found:
        hint = similar(type_, (str(c["type"]) for c in conditions))
        return False, f"{type_} is missing" + (f"; {hint}" if hint else "")
    generation = (obj or {})["metadata"].get("generation")
    is_old = bool(generation and found.get("observedGeneration") and found["observedGeneration"] < generation)
    told = f"{found['type']}={found['status']} {found.get('reason', '')}: {found.get('message', '')}"
    return found["status"].lower() == status.lower() and not is_old, " ".join(told.split()).strip(" :")


def _value(obj: Json | None, find: Callable[[Any], list[Any]], wanted: str | None) -> tuple[bool, str]:
    values = [jsonpath.shown(value) for value in find(obj)] if obj is not None else []
    told = ", ".join(values) or "nothing found"
    return (bool(values) if wanted is None else wanted in values), told


_REACHED: Final = {"delete": "deleted", "create": "created"}
_MISSED: Final = {"delete": "not deleted", "create": "not created"}


async def _run(arguments: argparse.Namespace, subject: subjects.Subject, reached: Goal) -> int:
    connection = connect.resolve(arguments)
    began, told, was_there = time.monotonic(), "", False
    waits_for_presence = reached(None)[0] or arguments.goal == "create"
    async with connect.connected(connection) as client:
        resource = await discovery.resource_of(client, subject.kind)
        key = subjects.key_of(subject, resource, arguments.namespace or connection.namespace)
        name = f"{resource.singular} {key}" if key.namespace else f"{resource.singular} {key.name}"
        if not waits_for_presence:
            await client.get(resource.gvk, key)  # what is not there is said so
        try:
            async with asyncio.timeout(arguments.timeout), aclosing(follow(client, resource, key)) as states:
                async for state in states:
                    is_reached, told = reached(state)
                    if is_reached and arguments.goal == "delete" and not was_there:
                        print(f"{name}: does not exist")
                        return 0
                    if is_reached:
                        print(f"{name}: {_REACHED.get(arguments.goal, f'{arguments.goal} holds')} after {time.monotonic() - began:.1f} s")
                        return 0
                    was_there = was_there or state is not None
                    if state is None and not waits_for_presence:
                        raise Failed(f"{name} is gone")
        except TimeoutError:
            missed = f"{_MISSED.get(arguments.goal, f'{arguments.goal} does not hold')} after {arguments.timeout:g} s"
            raise Failed(f"{name}: {missed}: {told}") from None
    raise AssertionError("the watch ended")
