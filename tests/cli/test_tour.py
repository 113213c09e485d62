"""`make demo`: it ends by itself, and well."""

from __future__ import annotations

from cli.conftest import Run


def test_a_cluster_lives_and_goes(alone: Run) -> None:
    done = alone("tour")

    assert (done.returncode, done.stderr) == (0, "")
    typed = [line.removeprefix("$ ").split()[1] for line in done.stdout.splitlines() if line.startswith("$ ")]
    order = ("create", "scale", "patch", "fault", "explain", "describe", "delete")
    assert [typed.index(word) for word in order] == sorted(typed.index(word) for word in order)
    explained = done.stdout.partition("$ clusterwright explain")[2]
    assert "Kubelet stopped posting node status" in explained.splitlines()[1]
    assert "cluster default/tour deleted after" in done.stdout
    assert "The tour is over." in done.stdout.splitlines()[-1]


def test_the_command_takes_no_arguments(alone: Run) -> None:
    done = alone("tour", "x")

    assert done.returncode == 2
    assert "unrecognized arguments: x" in done.stderr
