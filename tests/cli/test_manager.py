"""`clusterwright manager`: which controllers run, and what its flags mean."""

from __future__ import annotations

import re

import pytest

from clusterwright import app
from clusterwright.cli import grammar, running

KNOWN = ("cluster", "machine", "machineset", "topology/cluster", "devcluster", "devmachine")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("*", set(KNOWN)),
        ("", set(KNOWN)),
        ("machine*", {"machine", "machineset"}),
        ("*,-dev*", {"cluster", "machine", "machineset", "topology/cluster"}),
        ("-dev*", {"cluster", "machine", "machineset", "topology/cluster"}),
        ("-dev*,*", {"cluster", "machine", "machineset", "topology/cluster"}),
        ("dev*, -devmachine ,cluster", {"devcluster", "cluster"}),
        ("topology/*", {"topology/cluster"}),
        ("*,-*", set()),
    ],
)
def test_controllers_are_selected_by_globs(patterns: str, expected: set[str]) -> None:
    assert running.select(patterns, KNOWN) == expected


@pytest.mark.parametrize("patterns", ["nobody", "*,-nobody", "machines"])
def test_a_pattern_that_fits_nothing_is_a_mistake(patterns: str) -> None:
    with pytest.raises(ValueError, match=r"no controller .*; known: cluster, devcluster"):
        running.select(patterns, KNOWN)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--controllers", "machinez"], "--controllers machinez: no controller 'machinez'; known: "),
        (["--leader-elect", "--shard"], "either one replica works and the others wait, or all share the work"),
        (["--leader-elect-lease-duration", "5s"], "must be longer than --leader-elect-renew-deadline"),
        (["--metrics-bind-address", "8443"], "is not an address: HOST:PORT, :PORT, or 0 for none is expected"),
        (["--metrics-bind-address", ":70000"], "is not a port"),
        (["--webhook-url", "http://here"], "only over https"),
        (["--metrics-secure", "perhaps"], "invalid choice"),
    ],
)
def test_misuse_is_reported_with_the_flag(flags: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        running.check(grammar.parse("manager", flags), embedded=False)

    assert end.value.code == 2
    assert complaint in re.sub(r"\s+", " ", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "expected"), [("0", None), (":8443", ("", 8443)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:9440", ("::1", 9440))]
)
def test_flags_with_addresses_are_parsed(text: str, expected: object) -> None:
    assert grammar.parse("manager", ["--metrics-bind-address", text]).metrics_bind_address == expected


def test_every_controller_can_be_named() -> None:
    arguments = grammar.parse("manager", ["--controllers", "cluster,topology/cluster,crdmigrator,devmachine"])
    running.check(arguments, embedded=False)

    assert arguments.selected == {"cluster", "topology/cluster", "crdmigrator", "devmachine"}
    assert "clustercache" in app.controller_names() - app.selectable_names()
