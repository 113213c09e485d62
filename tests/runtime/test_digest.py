"""Logs for people: equal failures are counted, brief ones are not told, traces are left to the full logs."""

from __future__ import annotations

import io
import logging

import pytest

from clusterwright.runtime.digest import Digest, TerminalFormatter


@pytest.fixture
def out() -> tuple[logging.Handler, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(Digest())
    handler.setFormatter(TerminalFormatter())
    return handler, stream


def fail(handler: logging.Handler, at: float, error: str, *, name: str = "m", cause: BaseException | None = None, pause: float = 1) -> None:
    info = (type(cause), cause, None) if cause is not None else None
    record = logging.LogRecord("clusterwright.controller", logging.ERROR, "", 0, "Reconcile failed", (), info)
    record.created = at
    record.fields = {
        "controller": "machine",
        "namespace": "default",
        "name": name,
        "reasons": "retry",
        "failures": 1,
        "retry_in_seconds": pause,
        "error": error,
    }
    handler.handle(record)


def test_a_long_reason_is_cut_and_no_secret_is_cut_open(out: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = out
    key = "-----BEGIN PRIVATE KEY-----\n" + "QUJD" * 200 + "\n-----END PRIVATE KEY-----"
    for name, error in (("a", "one thing is missing, " * 60), ("b", "x" * 1000), ("c", f"{'so ' * 80}{key} was no key")):
        fail(handler, 0, error, name=name)
        fail(handler, 5, error, name=name)

    first, second, third = stream.getvalue().splitlines()
    assert all(len(line) < 400 for line in (first, second, third))
    assert first.endswith("one thing is missing, one thing is ... (--log-level debug shows all) (2 times)")
    assert "QUJD" not in third


def test_a_short_failure_is_not_printed(out: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = out
    for at in (0.0, 0.5, 2.9):
        fail(handler, at, "NotFound: not there yet")
    fail(handler, 500, "NotFound: not there yet")
    assert stream.getvalue() == ""


def test_equal_failures_are_counted_and_others_printed(out: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = out
    for n in range(120):
        fail(handler, n, "PassFailed: no Node matches")
        fail(handler, n, "NotFound: other", name="n")
    fail(handler, 120, "PassFailed: something else\nin two lines")
    lines = stream.getvalue().splitlines()
    mine = [line.partition("machine ")[2] for line in lines if "default/m" in line]
    assert mine == [
        "default/m: no Node matches (4 times)",
        "default/m: no Node matches (40 times)",
        "default/m: something else in two lines",
    ]
    assert len(lines) == 5


def test_a_failure_with_long_pauses_is_still_the_same(out: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = out
    for at in (0, 1, 5, 900, 1900):
        fail(handler, at, "E: x", pause=1000)
    assert len(stream.getvalue().splitlines()) == 1


def test_an_unexpected_failure_is_one_line_at_once(out: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = out
    fail(handler, 0, "KeyError: 'x'", cause=KeyError("x"))
    (line,) = stream.getvalue().splitlines()
    assert "unexpected KeyError: 'x'" in line
    assert "--log-level debug" in line


def test_other_records_keep_their_words_and_lose_secrets(out: tuple[logging.Handler, io.StringIO]) -> None:
    handler, stream = out
    record = logging.LogRecord("clusterwright.rights", logging.WARNING, "", 0, "A permission is missing", (), None)
    record.fields = {"right": "list machines", "answer": "Bearer abc.def"}
    handler.handle(record)
    line = stream.getvalue()
    assert "A permission is missing right=list machines" in line
    assert "abc.def" not in line
