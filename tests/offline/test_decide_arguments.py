"""Arguments of `decide` that make no sense are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright import decide
from clusterwright.offline.bundle import BadBundle


@pytest.mark.parametrize(
    ("objects", "subject", "said"),
    [("kind: Cluster", "Cluster/default/c", r"objects: .*clusterwright\.parse"), ([], None, "subject: .*not NoneType")],
    ids=["text", "no subject"],
)
def test_arguments_of_another_type_are_refused_by_name(objects: Any, subject: Any, said: str) -> None:
    with pytest.raises(BadBundle, match=said):
        decide(objects, subject)
