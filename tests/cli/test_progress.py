from __future__ import annotations

import io
from collections import Counter

import pytest

from clusterwright.api.codec import convert
from clusterwright.api.core import Cluster, ClusterStatus
from clusterwright.cli.layout import Layout, foot
from clusterwright.cli.progress import progress
from clusterwright.cli.screen import Screen, cut


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_new_text_replaces_the_old_one() -> None:
    out = Terminal()
    screen = Screen(out, lambda: (20, 10))

    screen.show("one\ntwo")
    screen.show("three")
    screen.say("done")

    assert out.getvalue() == "one\ntwo\n\x1b[2F\x1b[Jthree\ndone\n"


def test_elsewhere_nothing_is_cut_and_nothing_taken_back() -> None:
    out = io.StringIO()
    screen = Screen(out, lambda: (5, 6))

    screen.show("a longer line")
    screen.show("another")

    assert out.getvalue() == "a longer line\n\nanother\n"


def test_overlong_text_is_cut() -> None:
    out = Terminal()

    Screen(out, lambda: (5, 6)).show("abcdefgh\n2\n3\n4\n5\n6")

    assert out.getvalue().splitlines() == ["abcd", "2", "3", "... 3 more"]


def test_colours_take_no_room_and_end_where_a_line_is_cut() -> None:
    red, plain = "\x1b[31m", "\x1b[0m"

    assert cut(f"ab {red}False{plain} cd", 11) == f"ab {red}False{plain} cd"
    assert cut(f"ab {red}False{plain} cd", 6) == f"ab {red}Fal{plain}"
    assert cut(f"ab {red}False{plain} cd", 9) == f"ab {red}False{plain} {plain}"


def test_a_verdict_below_a_tree_fits_and_its_state_is_coloured() -> None:
    headline = "Broken: DevMachine/default/m1 the disk is full"

    assert foot("broken", headline, Layout()) == headline
    assert foot("broken", headline, Layout(width=30, colour=True)) == "\x1b[31mBroken\x1b[0m: DevMachine/default/m1\nthe disk is full"


@pytest.mark.parametrize(
    ("ready", "workers", "available", "is_up"),
    [(3, 2, "True", True), (2, 2, "True", False), (3, 1, "True", False), (3, 2, "False", False), (3, None, "True", False)],
)
def test_a_cluster_is_up_when_it_is_available_with_all_its_machines(ready: int, workers: int | None, available: str, is_up: bool) -> None:
    status = {
        "phase": "Provisioned",
        "controlPlane": {"readyReplicas": ready, "desiredReplicas": 3},
        "conditions": [{"type": "Available", "status": available, "reason": "X"}],
        **({"workers": {"readyReplicas": workers, "desiredReplicas": 2}} if workers is not None else {}),
    }
    cluster = convert({"metadata": {"name": "c", "namespace": "ns"}, "status": status}, Cluster)

    seen = progress(cluster, Counter({"Running": 4, "Pending": 1}))

    assert seen.is_up is is_up
    assert f"control plane {ready}/3 ready" in seen.line
    assert "machines: 1 Pending, 4 Running" in seen.line


def test_nothing_is_known_of_a_cluster_that_is_new() -> None:
    seen = progress(Cluster(status=ClusterStatus()), Counter())

    assert not seen.is_up
    assert "Pending" in seen.line
    assert "machines: none" in seen.line
