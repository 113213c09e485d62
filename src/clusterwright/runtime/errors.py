"""The errors of requests to an API server.

ApiError                    carries the Kubernetes Status
 |- BadRequest        400   |- Unauthorized     401   |- Forbidden          403   |- NotFound      404
 |- MethodNotAllowed  405   |- NotAcceptable    406   |- Conflict           409   |- AlreadyExists 409
 |- Gone              410   |- UnsupportedMediaType 415  |- Invalid        422   |- TooManyRequests 429
 |- ServerError       5xx   (ServerTimeout 504, ServiceUnavailable 503)
 |- NoKindMatch             the API server does not serve the kind; never to be taken for NotFound
 `- ConnectionFailed        no answer at all; a write may or may not have taken effect
Terminal                    a reconcile failure that a retry cannot fix: logged, not retried
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clusterwright.api.wire import UNREADABLE


class ApiError(Exception):
    """An answer is not a success. `status` is the Kubernetes Status object."""

    code = 0
    is_expected = False
    """Whether a pass that ends in it is normal: the awaited event will requeue it, and the log level is low."""

    def __init__(self, message: str, status: Mapping[str, Any] | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status: Mapping[str, Any] = status or {}
        self.retry_after = retry_after

    @property
    def reason(self) -> str:
        """The machine-readable reason, for example `NotFound`."""
        return str(self.status.get("reason", ""))


class BadRequest(ApiError):
    code = 400


class Unauthorized(ApiError):
    code = 401


class Forbidden(ApiError):
    code = 403


class NotFound(ApiError):
    code = 404


class MethodNotAllowed(ApiError):
    code = 405


class NotAcceptable(ApiError):
    code = 406


class Conflict(ApiError):
    code = 409
    is_expected = True  # someone was faster; the next pass sees what they did


class AlreadyExists(ApiError):
    code = 409


class Gone(ApiError):
    code = 410


class UnsupportedMediaType(ApiError):
    code = 415


class Invalid(ApiError):
    code = 422


class TooManyRequests(ApiError):
    code = 429


class ServerError(ApiError):
    code = 500


class ServiceUnavailable(ServerError):
    code = 503


class ServerTimeout(ServerError):
    code = 504


class NoKindMatch(ApiError):
    """The API server does not serve the kind (its CRD is missing). Unlike NotFound, it says nothing about the object."""


class ConnectionFailed(ApiError):
    """The API server could not be reached, or the connection broke before the answer was complete."""


class Terminal(Exception):
    """A reconciler raises this when retrying cannot help until something changes."""


def is_expected(error: BaseException) -> bool:
    """Return whether the error, or one of its causes, is normal."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:  # an error can be its own cause: `raise error from error`
        if isinstance(link, ApiError) and link.is_expected:
            return True
        seen.add(id(link))
        link = link.__cause__
    return False


_BY_CODE: dict[int, type[ApiError]] = {
    c.code: c
    for c in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, Conflict, Gone, UnsupportedMediaType,
        Invalid, TooManyRequests, ServerError, ServiceUnavailable, ServerTimeout,
    )
}  # fmt: skip


def from_response(code: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """Return the error of an unsuccessful answer; a body that is not a Status is quoted up to 200 characters."""
    try:
        status = msgspec.json.decode(body)
    except UNREADABLE:
        status = None
    if isinstance(status, dict) and isinstance(status.get("ErrStatus"), dict):  # Go's error itself, as simple servers encode it
        status = {**status["ErrStatus"], "kind": "Status"}
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body[:200].decode("utf-8", "replace").strip() or f"HTTP status {code}"
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": text, "code": code}
    cls = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    if code == 409 and status.get("reason") == "AlreadyExists":
        cls = AlreadyExists
    return cls(str(status.get("message", "")), status, retry_after)
