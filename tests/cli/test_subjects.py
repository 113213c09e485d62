"""How objects are named on the command line."""

from __future__ import annotations

import pytest

from clusterwright.cli.subjects import BadSubject, Subject, parse


@pytest.mark.parametrize(
    ("words", "subject", "rest"),
    [
        (["cluster/c"], Subject("Cluster", "", "c"), []),
        (["cluster", "c"], Subject("Cluster", "", "c"), []),
        (["cl/ns/c", "Available"], Subject("Cluster", "ns", "c"), ["Available"]),
        (["c"], Subject("Cluster", "", "c"), []),
        (["c", "Available"], Subject("Cluster", "", "c"), ["Available"]),
        (["kcp", "c", "Available"], Subject("KubeadmControlPlane", "", "c"), ["Available"]),
        (["MachineDeployments", "ns/d"], Subject("MachineDeployment", "ns", "d"), []),
        (["machines.cluster.x-k8s.io/m"], Subject("Machine", "", "m"), []),
        (["ma/m"], Subject("Machine", "", "m"), []),
        (["awsmachine/m"], Subject("awsmachine", "", "m"), []),
        (["machine"], Subject("Cluster", "", "machine"), []),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else None,
)
def test_both_forms_short_names_and_bare_names(words: list[str], subject: Subject, rest: list[str]) -> None:
    assert parse(words) == (subject, rest)


@pytest.mark.parametrize("words", [[], [""], ["cluster/"], ["/c"], ["cluster/a/b/c"], ["cluster"]], ids=str)
def test_words_that_name_no_object_are_refused(words: list[str]) -> None:
    with pytest.raises(BadSubject):
        parse(words)
