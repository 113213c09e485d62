from __future__ import annotations

from typing import Any

import pytest

from clusterwright.cli import jsonpath
from clusterwright.cli.errors import Usage
from clusterwright.cli.wait import goal

OBJECT: dict[str, Any] = {
    "metadata": {"name": "c", "generation": 3, "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
    "spec": {"paused": False, "ports": [1, 2, 3]},
    "status": {
        "phase": "Provisioned",
        "conditions": [
            {"type": "Available", "status": "True", "observedGeneration": 3, "reason": "Available"},
            {"type": "Ready", "status": "True", "observedGeneration": 2},
            {"type": "Deleting", "status": "False"},
        ],
    },
}


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("condition=Available", True),
        ("condition=available=true", True),
        ("condition=Available=False", False),
        ("condition=Ready", False),  # said of an older generation
        ("condition=Deleting=False", True),
        ("condition=Nope", False),
        ("delete", False),
        ("create", True),
        ("jsonpath={.status.phase}=Provisioned", True),
        ("jsonpath='{.status.phase}'=Provisioned", True),
        ("jsonpath={.status.phase}=Running", False),
        ("jsonpath={.status.phase}", True),
        ("jsonpath={.status.nothing}", False),
        ("jsonpath={.spec.paused}=false", True),
        ('jsonpath={.status.conditions[?(@.type=="Available")].status}=True', True),
        ("jsonpath=.status.phase", True),
    ],
)
def test_goals_are_kubectls(text: str, reached: bool) -> None:
    assert goal(text)(OBJECT)[0] is reached


def test_a_missing_object_counts_as_deleted_only_for_the_goal_delete() -> None:
    assert goal("delete")(None)[0]
    assert not any(goal(text)(None)[0] for text in ("create", "condition=Ready", "jsonpath={.a}"))


@pytest.mark.parametrize("text", ["", "condition", "nope", "jsonpath=", "jsonpath={[}", "delete=x", "jsonpath={}"])
def test_an_invalid_goal_is_a_wrong_call(text: str) -> None:
    with pytest.raises(Usage, match="--for"):
        goal(text)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("{.spec.ports[0]}", [1]),
        ("{.spec.ports[-1]}", [3]),
        ("{.spec.ports[9]}", []),
        ("{.spec.ports[*]}", [1, 2, 3]),
        (r"{.metadata.labels.cluster\.x-k8s\.io/cluster-name}", ["c"]),
        ("{['metadata']['name']}", ["c"]),
        ("{$.metadata.name}", ["c"]),
        ("{.status.conditions[?(@.status!='True')].type}", ["Deleting"]),
        ("{.status.conditions[*].type}", ["Available", "Ready", "Deleting"]),
        ("{.metadata.name.deeper}", []),
    ],
)
def test_paths_lead_to_values(path: str, found: list[Any]) -> None:
    assert jsonpath.compiled(path)(OBJECT) == found
