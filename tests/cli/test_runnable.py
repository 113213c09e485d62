"""Commands that `explain` prints can be pasted into the shell at hand."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from clusterwright.cli import connect
from clusterwright.cli.explain import verdict_lines
from clusterwright.offline.verdict import State, Verdict


def command(text: str, kubeconfig: str) -> str:
    verdict = Verdict(subject="Cluster/default/c", state=State.BROKEN, what="x", command=text)
    return next(line for line in verdict_lines(verdict, kubeconfig) if "command" in line).split(maxsplit=1)[1]


@pytest.mark.parametrize(
    ("text", "kubeconfig", "shown"),
    [
        ("kubectl delete machine m", "", "kubectl delete machine m"),
        ("kubectl delete machine m", "my folder/k", "kubectl --kubeconfig 'my folder/k' delete machine m"),
        ("kubectl --kubeconfig c.kubeconfig get nodes", "k", "kubectl --kubeconfig c.kubeconfig get nodes"),
        ("kubectl-foo kubectl", "k", "kubectl-foo kubectl"),
    ],
)
def test_kubectl_is_told_the_kubeconfig_that_it_does_not_find(text: str, kubeconfig: str, shown: str) -> None:
    assert command(text, kubeconfig) == shown


def test_the_kubeconfig_is_named_only_where_kubectl_would_read_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    plain, flagged = argparse.Namespace(kubeconfig=None), argparse.Namespace(kubeconfig="other")
    assert connect.kubeconfig_kubectl_lacks(plain) == ""
    assert connect.kubeconfig_kubectl_lacks(flagged) == "other"

    Path(".clusterwright").mkdir()
    Path(".clusterwright/kubeconfig").touch()
    assert connect.kubeconfig_kubectl_lacks(plain) == ".clusterwright/kubeconfig"

    monkeypatch.setenv("KUBECONFIG", "mine")
    assert connect.kubeconfig_kubectl_lacks(plain) == ""
