"""Get and list; the parts that watches share with lists."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding import bodies, rendering
from clusterwright.apiserver.encoding.negotiation import JSON, PLAIN, integer
from clusterwright.apiserver.selectors import field_requirements, field_value, label_selector, unsupported_field
from clusterwright.apiserver.status import (
    FieldError,
    bad_request,
    failure,
    forbidden,
    gone,
    invalid,
    invalid_error,
    not_found,
    not_supported,
)
from clusterwright.apiserver.storage.store import Entry, Gone, object_key
from clusterwright.golang.numbers import parse_uint

_encode = msgspec.json.Encoder().encode
_MANY: Final = 50
"""The number of objects from which the worker renders a list that is not plain JSON."""
_TURN: Final = 500
"""How many objects of a list are handled before other requests are served."""
_JSON_HEADERS = {"content-type": JSON}
T = TypeVar("T")


async def get(call: Call) -> Response:
    """Answer GET of one object."""
    resource, info = call.resource, call.info
    if "export" in call.query:
        raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    wanted = call.query.get("resourceVersion")
    if wanted not in {None, "", "0"}:
        assert wanted is not None
        version = revision_of(wanted)
        if version > call.server.store.revision:
            raise too_large(version, call.server.store.revision)
    entry = call.table.objects.get(object_key(info.namespace if resource.namespaced else "", info.name))
    if entry is None:
        raise not_found(resource.group, resource.plural, info.name)
    await call.server.store.durable(entry.rv)
    if not call.is_plain:
        await call.prepare((entry,))
    if call.form is PLAIN:
        return call.answer(200, raw=call.raw(entry))
    return call.answer(200, call.load(entry), call.raw(entry))


def revision_of(text: str) -> int:
    """Parse a resourceVersion. Raises StatusError (500, as kube-apiserver answers text that is not a number)."""
    try:
        return parse_uint(text)
    except ValueError as e:
        raise failure(500, "", str(invalid("resourceVersion", text, str(e)))) from None


def too_large(rv: int, current: int, *, exact: bool = False) -> Exception:
    """Return the error (504) for a future revision; clients that did not ask for it `exact`ly are told to retry."""
    details: Json = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    if not exact:
        details["retryAfterSeconds"] = 1
    return failure(504, "Timeout", f"Timeout: Too large resource version: {rv}, current: {current}", details, retry_after=0 if exact else 1)


def selection(call: Call) -> Callable[[Entry], bool] | None:
    """Return a filter for the name of the path and the selectors; None if all objects pass."""
    tests: list[Callable[[Entry], bool]] = []
    text = call.query.get("labelSelector")
    if text:
        matches = label_selector(text)
        if matches is not None:
            tests.append(lambda entry: matches(entry.labels))
    text = call.query.get("fieldSelector")
    needs: list[tuple[tuple[str, ...], bool, str]] = []
    offered = call.resource.handler.selectable_fields
    for label, equal, value in field_requirements(text) if text else ():
        if label == "metadata.name":
            tests.append(_attribute("name", value, equal=equal))
        elif label == "metadata.namespace" and call.resource.namespaced:
            tests.append(_attribute("namespace", value, equal=equal))
        elif label in offered:
            needs.append((offered[label], equal, value))
        else:
            raise unsupported_field(label, plain=not call.resource.custom and not offered)
    if needs:
        absent: dict[tuple[str, ...], str] = {} if call.resource.custom else _ABSENT

        def fields(entry: Entry) -> bool:
            obj = call.load(entry)
            return all(((field_value(obj, path) or _fallback(obj, path, absent)) == value) is equal for path, equal, value in needs)

        tests.append(fields)
    if call.info.name and call.info.watch_path:
        tests.append(_attribute("name", call.info.name, equal=True))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda entry: all(test(entry) for test in tests)


_ABSENT: Final[dict[tuple[str, ...], str]] = {("spec", "hostNetwork"): "false", ("spec", "unschedulable"): "false"}
"""Booleans of built-ins that count as false in field selectors if they are missing."""


_FALLBACKS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {("source", "component"): ("reportingComponent",)}
"""Fields that replace an empty field in field selectors: an Event's source."""


def _fallback(obj: Json, path: tuple[str, ...], absent: dict[tuple[str, ...], str]) -> str:
    return field_value(obj, _FALLBACKS[path]) if path in _FALLBACKS and absent else absent.get(path, "")


def _attribute(attribute: str, value: str, *, equal: bool) -> Callable[[Entry], bool]:
    return lambda entry: (getattr(entry, attribute) == value) is equal


def check_options(call: Call, *, watch: bool) -> None:
    """Check the options of a list or watch. Raises StatusError."""
    query = call.query
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    initial = query.get("sendInitialEvents")
    errors: list[FieldError] = []
    for name in ("timeoutSeconds", "limit"):
        if query.get(name):
            integer(query[name])
    if query.get("labelSelector"):
        label_selector(query["labelSelector"])
    if query.get("fieldSelector"):
        field_requirements(query["fieldSelector"])
    if watch:
        if query.get("continue") and not match and initial is None and version in {"", "0"}:  # initial events are the default then
            errors.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
        if initial is not None and match != "NotOlderThan":
            errors.append(forbidden("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
        if match:
            if initial is None:
                text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                errors.append(forbidden("resourceVersionMatch", text))
            if match != "NotOlderThan":
                errors.append(not_supported("resourceVersionMatch", match, ["NotOlderThan"]))
            if query.get("continue"):
                errors.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
    elif initial is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not watch and match:
        if query.get("continue"):
            errors.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
        if not version:
            errors.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if match not in {"Exact", "NotOlderThan"}:
            errors.append(not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
        elif match == "Exact" and version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden("resourceVersionMatch", text))
    if errors:
        raise invalid_error("meta.k8s.io", "ListOptions", "", errors)


def _token(rv: int, start: str) -> str:
    return base64.urlsafe_b64encode(_encode({"v": "meta.k8s.io/v1", "rv": rv, "start": start + "\0"})).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    known = "continue key is not valid"
    problem = ""
    illegal = next((i for i, c in enumerate(token) if not (c.isascii() and (c.isalnum() or c in "-_"))), None)
    if illegal is not None or len(token) % 4 == 1:
        problem = f"{known}: illegal base64 data at input byte {illegal if illegal is not None else len(token) - 1}"
    else:
        data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        try:
            value = bodies.decode_json(data)
            if not isinstance(value, dict) or value.get("v") != "meta.k8s.io/v1":
                version = value.get("v") if isinstance(value, dict) else ""
                problem = f"{known}: server does not recognize this encoded version {version or ''}"
            elif not isinstance(value.get("rv"), int) or value["rv"] == 0:
                problem = f"{known}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
            elif not value.get("start") or not isinstance(value["start"], str):
                problem = f"{known}: encoded start key empty (version meta.k8s.io/v1)"
            else:
                return value["rv"], value["start"].rstrip("\0")
        except bodies.Malformed as e:
            problem = f"{known}: {e}"
    raise bad_request(f"invalid continue token: {problem}")


async def list_objects(call: Call) -> Response:
    """Answer GET of a collection."""
    check_options(call, watch=False)
    selects = selection(call)
    limit = max(0, integer(call.query["limit"])) if call.query.get("limit") else 0
    entries, list_meta = await snapshot(call, selects, limit, paged=limit > 0)
    await call.server.store.durable(min(int(list_meta["resourceVersion"]), call.server.store.revision))
    call.heavy = len(entries) > _MANY
    return await render_list(call, entries, list_meta)


async def snapshot(call: Call, selects: Callable[[Entry], bool] | None, limit: int, *, paged: bool) -> tuple[list[Entry], Json]:
    """Return the entries of a list, or of one page, and its metadata. In pages, a resourceVersion must match exactly."""
    server, table, query = call.server, call.table, call.query
    namespace = call.info.namespace if call.resource.namespaced else ""
    version, match, token = query.get("resourceVersion", ""), query.get("resourceVersionMatch", ""), query.get("continue", "")
    rv, start = server.store.revision, ""
    source: Iterator[Entry]
    if token:
        token_rv, start = _read_token(token)
        if version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        after = f"{namespace}/{start}" if namespace else start
        if token_rv > 0:
            rv = token_rv
        source = table.at(rv, namespace, after)
    else:
        if version:
            try:
                wanted = parse_uint(version)
            except ValueError as e:
                raise bad_request(f"invalid resource version: {invalid('resourceVersion', version, str(e))}") from None
            exact = match == "Exact" or (paged and not match and wanted > 0)
            if wanted > rv:
                raise too_large(wanted, rv, exact=exact)
            if wanted == 0 and match != "Exact":
                limit = 0
            elif exact:
                rv = wanted
        source = table.at(rv, namespace)
    try:
        found = list(source)
        if selects is not None:
            if not call.versions.immediate:
                await call.prepare(found)
            found = await _in_turns(found, partial(filter, selects))
    except Gone:
        if token:
            raise _expired(start) from None
        raise gone("The resourceVersion for the provided list is too old.") from None
    list_meta: Json = {"resourceVersion": str(rv)}
    if limit and len(found) > limit:
        remaining = len(found) - limit
        found = found[:limit]
        last = found[-1]
        list_meta["continue"] = _token(rv, last.name if namespace else last.key)
        if selects is None:
            list_meta["remainingItemCount"] = remaining
    return found, list_meta


async def _in_turns(entries: list[Entry], work: Callable[[Sequence[Entry]], Iterable[T]]) -> list[T]:
    """Return the results of `work` for the entries, computed in slices with other requests in between."""
    if len(entries) <= _TURN:
        return list(work(entries))
    made: list[T] = []
    for start in range(0, len(entries), _TURN):
        made.extend(work(entries[start : start + _TURN]))
        await asyncio.sleep(0)
    return made


def _expired(start: str) -> Exception:
    error = gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
        "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
        "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
        "time the first chunk was returned and now may show up in the list."
    )
    error.status["metadata"] = {"continue": _token(-1, start)}
    return error


async def render_list(call: Call, entries: list[Entry], list_meta: Json) -> Response:
    """Return a list in the form that the client accepts."""
    await call.prepare(entries)
    resource = call.resource
    list_kind = resource.list_kind or resource.kind + "List"
    if call.form is PLAIN:
        prefix = 0
        if resource.custom:
            list_meta.setdefault("continue", "")
            head = _encode({"apiVersion": resource.api_version, "kind": list_kind, "metadata": list_meta})
        else:
            prefix = len(_encode({"kind": resource.kind, "apiVersion": resource.api_version}))
            head = _encode({"kind": list_kind, "apiVersion": resource.api_version, "metadata": list_meta})

        def joined(some: Sequence[Entry]) -> list[bytes]:
            return [b",".join([b"{" + call.raw(e)[prefix:] for e in some] if prefix else [call.raw(e) for e in some])]

        body = head[:-1] + b',"items":[' + b",".join(await _in_turns(entries, joined)) + b"]}"
        return Response(status=200, headers=_JSON_HEADERS, body=body, warnings=tuple(call.warnings))

    def render() -> Response:
        return rendering.render_list(call, [call.load(e) for e in entries], list_kind, list_meta)

    return await call.off(render)
