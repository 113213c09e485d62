"""More conversations with a kube-apiserver v1.36.1, in the form of the recorded corpus: neighbours of its scenarios.

Steps that compare a status code alone answer in other words here (texts of Go's decoders, column descriptions).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.apiserver_testing import CORPUS
from apiserver.test_conformance import explain, judge, run  # noqa: F401 - fixtures
from conformance import replay


@pytest.mark.usefixtures("run")
def test_neighbouring_conversations_are_repeated_exactly(run: Any):  # noqa: F811
    url = run()
    replay.install(replay.Client(url, "admin"), json.loads((CORPUS / "crds.json").read_text()))
    scenarios = replay.load([CORPUS / "more.jsonl"])

    failed = judge(url, scenarios, wording=True)

    assert not failed, explain(failed, set(failed))
    assert sum(len(s["steps"]) for s in scenarios) >= 900
