"""Conversations made at random, held with a real kube-apiserver and with ours: the answers are the same, word for word."""

from __future__ import annotations

import copy
import json
import os
import threading
from typing import Any

import pytest

from apiserver.apiserver_testing import CORPUS
from apiserver.conversations import SUBJECTS, Subject, conversation
from apiserver.test_conformance import InThread
from conformance import replay

SEEDS = range(int(os.environ.get("REAL_CONVERSATIONS", "20")))
Answers = list[dict[str, Any]]


@pytest.fixture(scope="module")
def clients(kube_apiserver: tuple[str, str]) -> Any:
    theirs = replay.Client(*kube_apiserver, insecure=True)
    while theirs.send({"method": "GET", "path": "/api/v1/namespaces/default"})["status"] != 200:
        threading.Event().wait(0.2)
    ours = InThread()
    try:
        clients = theirs, replay.Client(ours.url, "admin")
        for client in clients:
            replay.install(client, json.loads((CORPUS / "crds.json").read_text()))
        yield clients
    finally:
        ours.close()


def message(answer: dict[str, Any]) -> str:
    body = answer.get("body")
    return str(body.get("message") or "") if isinstance(body, dict) else ""


def forgive(theirs: Answers, ours: Answers) -> None:
    """Of the fields that do not fit an apply, a kube-apiserver names some, in no order: it goes through them as Go goes through maps."""
    for answer, other in zip(theirs, ours, strict=True):
        head, _, said = message(answer).partition("): ")
        ours_head, _, ours_said = message(other).partition("): ")
        named, ours_named = ({line.strip() for line in text.removeprefix("errors:").splitlines()} - {""} for text in (said, ours_said))
        if head == ours_head and "failed to create typed patch object" in head and named <= ours_named:
            other["body"]["message"] = answer["body"]["message"]


@pytest.mark.real
@pytest.mark.parametrize("subject", SUBJECTS, ids=[s.kind for s in SUBJECTS])
def test_both_servers_give_the_same_answers(clients: Any, subject: Subject) -> None:
    theirs, ours = clients
    found: dict[str, list[str]] = {}
    for seed in SEEDS:
        scenario = conversation(subject, seed)
        answers, others = (replay.play(client, copy.deepcopy(scenario)) for client in (theirs, ours))
        forgive(answers, others)
        for step, answer in zip(scenario["steps"], answers, strict=True):
            step["response"] = answer
        if differences := replay.differences(scenario, others):
            found[scenario["name"]] = differences

    assert found == {}
