"""Kubernetes Status objects, with kube-apiserver's messages, and the exception that carries one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.golang.floats import format_float
from clusterwright.golang.quoting import quote


class ErrorType(Enum):
    """The kinds of field errors: the reason of the cause, and the beginning of its message."""

    REQUIRED = ("FieldValueRequired", "Required value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    NOT_FOUND = ("FieldValueNotFound", "Not found")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "Internal error")


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = _Omitted()
"""Marks an error that shows no value."""

_WITHOUT_VALUE: Final = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL})


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field. `value` is the bad value; errors that never show it ignore it."""

    type: ErrorType
    field: str
    value: Any = OMITTED
    detail: str = ""

    @property
    def message(self) -> str:
        """The text of the cause: `Invalid value: "x": must be ...`."""
        text = self.type.value[1]
        if self.value is not OMITTED and self.type not in _WITHOUT_VALUE:
            text = f"{text}: {show(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field or '<nil>'}: {self.message}"

    def cause(self) -> Json:
        """Return the entry of `details.causes`."""
        return {"reason": self.type.value[0], "message": self.message, "field": self.field or "<nil>"}


def required(field: str, detail: str = "") -> FieldError:
    """Return the error of a missing required field."""
    return FieldError(ErrorType.REQUIRED, field, OMITTED, detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error of a field whose value violates a rule."""
    return FieldError(ErrorType.INVALID, field, value, detail)


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error of a field that may not be set (like this)."""
    return FieldError(ErrorType.FORBIDDEN, field, OMITTED, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """Return the error of a value that may occur only once."""
    return FieldError(ErrorType.DUPLICATE, field, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error of a value outside an enumeration; the supported values are shown as given."""
    shown = ", ".join(quote(v) for v in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, field, value, f"supported values: {shown}" if shown else "")


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error of a value with the wrong JSON type."""
    return FieldError(ErrorType.TYPE_INVALID, field, value, detail)


def too_long(field: str, maximum: int) -> FieldError:
    """Return the error of a text longer than `maximum` bytes."""
    text = f"may not be more than {maximum} byte{'' if maximum == 1 else 's'}" if maximum >= 0 else "value is too long"
    return FieldError(ErrorType.TOO_LONG, field, OMITTED, text)


def too_many(field: str, actual: int, maximum: int) -> FieldError:
    """Return the error of a list with too many items."""
    text = f"must have at most {maximum} item{'' if maximum == 1 else 's'}" if maximum >= 0 else "has too many items"
    return FieldError(ErrorType.TOO_MANY, field, actual, text)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A bad value with a given rendering."""

    text: str


def show(value: Any) -> str:
    """Return a bad value in the form of error messages: texts quoted, numbers bare, structures as JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Verbatim):
        return value.text
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def number(value: float) -> str:
    """Return a number as Go's %v prints it."""
    return str(value) if isinstance(value, int) else format_float(value, "g", -1)


class StatusError(Exception):
    """An answer that is a failure Status. `status` is the whole object."""

    def __init__(self, status: Json, retry_after: int | None = None, warnings: tuple[str, ...] = ()) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.code: int = status["code"]
        self.retry_after = retry_after
        self.warnings = warnings


def failure(code: int, reason: str, message: str, details: Json | None = None, retry_after: int | None = None) -> StatusError:
    """Return a failure Status with these parts; empty parts are left out."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return StatusError(status, retry_after)


def _details(group: str, kind: str, name: str, causes: Sequence[Json] = (), uid: str = "") -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    if uid:
        details["uid"] = uid
    if causes:
        details["causes"] = list(causes)
    return details


def qualified(group: str, resource: str) -> str:
    """Return `resource.group`, or `resource` for the core group."""
    return f"{resource}.{group}" if group else resource


def bad_request(message: str) -> StatusError:
    """Return 400 BadRequest."""
    return failure(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """Return 401 Unauthorized."""
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden_error(group: str, resource: str, name: str, message: str, causes: Sequence[Json] = ()) -> StatusError:
    """Return 403 Forbidden for one object or for a resource."""
    subject = f"{qualified(group, resource)} {quote(name)}" if name else qualified(group, resource)
    text = f"{subject} is forbidden: {message}" if subject else f"forbidden: {message}"
    return failure(403, "Forbidden", text, _details(group, resource, name, causes))


def not_found(group: str, resource: str, name: str) -> StatusError:
    """Return 404 NotFound for one object."""
    return failure(404, "NotFound", f"{qualified(group, resource)} {quote(name)} not found", _details(group, resource, name))


def already_exists(group: str, resource: str, name: str) -> StatusError:
    """Return 409 AlreadyExists."""
    return failure(409, "AlreadyExists", f"{qualified(group, resource)} {quote(name)} already exists", _details(group, resource, name))


def conflict(group: str, resource: str, name: str, message: str) -> StatusError:
    """Return 409 Conflict of a write."""
    text = f"Operation cannot be fulfilled on {qualified(group, resource)} {quote(name)}: {message}"
    return failure(409, "Conflict", text, _details(group, resource, name))


STALE: Final = "the object has been modified; please apply your changes to the latest version and try again"


def apply_conflict(causes: Sequence[Json], message: str) -> StatusError:
    """Return 409 Conflict of a server-side apply."""
    return failure(409, "Conflict", message, {"causes": list(causes)})


def gone(message: str) -> StatusError:
    """Return 410 with reason Expired: a continue token or resourceVersion is too old."""
    return failure(410, "Expired", message)


def unsupported_media_type(message: str) -> StatusError:
    """Return 415."""
    return failure(415, "UnsupportedMediaType", message)


def not_acceptable(message: str) -> StatusError:
    """Return 406."""
    return failure(406, "NotAcceptable", message)


def invalid_error(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return 422 with one cause per field error."""
    subject = quote(name)
    texts = list(dict.fromkeys(str(e) for e in errors))
    shown = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    message = f"{qualified(group, kind)} {subject} is invalid: {shown}" if errors else f"{qualified(group, kind)} {subject} is invalid"
    return failure(422, "Invalid", message, _details(group, kind, name, [e.cause() for e in errors]))


def internal(message: str) -> StatusError:
    """Return 500."""
    return failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def too_large() -> StatusError:
    """Return 413."""
    return failure(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")


def too_many_requests(message: str, retry_after: int, causes: Sequence[Json] = ()) -> StatusError:
    """Return 429."""
    details: Json = {"retryAfterSeconds": retry_after} if retry_after else {}
    if causes:
        details["causes"] = list(causes)
    return failure(429, "TooManyRequests", message, details, retry_after or None)


def generic(code: int, verb: str, group: str, resource: str, name: str, message: str = "") -> StatusError:
    """Return a Status with a generic message: the server could not find the requested resource, and the like."""
    if code == 404:
        return failure(404, "NotFound", "the server could not find the requested resource", {})
    if code == 405:
        return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})
    return failure(code, "", message, _details(group, resource, name))
