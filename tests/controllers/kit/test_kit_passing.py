"""How a pass fails: all that went wrong as one error, foreseen, and in no more of a hurry than its causes."""

from __future__ import annotations

import pytest

from clusterwright.controllers.kit.passing import CONNECTION_RETRY, PassFailed, failure
from clusterwright.runtime.errors import Conflict, NotFound, Terminal, TooManyRequests, is_expected
from clusterwright.runtime.logging import is_foreseen
from clusterwright.workload.access import NotConnected


def caused(text: str, cause: Exception) -> PassFailed:
    error = PassFailed(text)
    error.__cause__ = cause
    return error


def test_all_errors_of_a_pass_are_joined_each_once() -> None:
    error = failure([PassFailed("a"), NotFound("b"), PassFailed("a"), ValueError()])

    assert str(error) == "a; b; ValueError"
    assert is_foreseen(error)
    assert not is_expected(error)


@pytest.mark.parametrize(
    ("errors", "retry_after", "expected"),
    [
        ([NotConnected()], CONNECTION_RETRY, True),
        ([caused("no Node", NotConnected())], CONNECTION_RETRY, True),
        ([caused("no Node", NotConnected()), PassFailed("b")], None, False),
        ([Conflict("someone was faster")], None, True),
        ([caused("not written", TooManyRequests("slow", retry_after=7))], 7, False),
    ],
    ids=["connection", "for-want-of-it", "and-more", "conflict", "patience"],
)
def test_the_urgency_of_a_retry_depends_on_the_error(errors: list[Exception], retry_after: float | None, expected: bool) -> None:
    error = failure(errors)

    assert isinstance(error, PassFailed)
    assert (error.retry_after, is_expected(error)) == (retry_after, expected)


def test_an_error_group_is_terminal_only_if_all_its_errors_are() -> None:
    assert isinstance(failure([Terminal("a"), Terminal("b")]), Terminal)
    assert isinstance(failure([Terminal("a"), PassFailed("b")]), PassFailed)


def test_an_error_that_is_its_own_cause_is_followed_once() -> None:
    error = NotFound("n")
    error.__cause__ = error

    assert not is_expected(error)
