"""Incidents as data: they are found by their numbers, and the command plays and lists them."""

from __future__ import annotations

import json

import pytest

from clusterwright.cli.main import main
from clusterwright.simulation.incidents.catalogue import INCIDENTS, UnknownIncident, find
from clusterwright.simulation.incidents.incident import Incident, NotPlayed
from clusterwright.simulation.incidents.notplayed import NOT_PLAYED
from clusterwright.simulation.incidents.replay import replay
from incidents.planted import put

EVERYBODY: tuple[Incident | NotPlayed, ...] = (*INCIDENTS, *NOT_PLAYED)


def test_at_least_forty_are_played_and_no_name_is_given_twice() -> None:
    names = [i.name for i in EVERYBODY]

    assert len(INCIDENTS) >= 40
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("incident", INCIDENTS, ids=[i.name for i in INCIDENTS])
def test_what_is_said_of_an_incident_is_whole_sentences(incident: Incident) -> None:
    assert all(text[0].isupper() and text.endswith(".") for text in (incident.there, incident.here))
    assert not incident.title.endswith(".")
    assert not incident.adversary.endswith(".")
    assert incident.stage.text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("14197", "cluster-api#14197"),
        ("#14197", "cluster-api#14197"),
        ("cluster-api#14197", "cluster-api#14197"),
        ("kubernetes-sigs/cluster-api#14197", "cluster-api#14197"),
        ("14199", "cluster-api#14197"),
        ("k0smotron#1534", "k0smotron#1534"),
        ("2818", "k0smotron#991"),
    ],
)
def test_an_incident_is_found_by_each_of_its_numbers(text: str, name: str) -> None:
    assert find(text).name == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("14198", "no incident '14198' is known; near: cluster-api#14197"),
        ("nonsense", "`clusterwright incident list` names all"),
        ("13763", "is not played: it needs a network"),
    ],
)
def test_an_unknown_number_is_answered_with_what_helps(text: str, said: str) -> None:
    with pytest.raises(UnknownIncident) as refused:
        find(text)

    assert said in str(refused.value)


def test_the_same_seed_takes_the_same_steps() -> None:
    first, second = replay(find("3453"), 3), replay(find("3453"), 3)

    assert (first.requests, first.virtual_seconds, first.notes, first.moments) == (
        second.requests,
        second.virtual_seconds,
        second.notes,
        second.moments,
    )


def test_a_replay_shows_what_was_done_and_the_timeline_since(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["incident", "replay", "3453", "--seed", "2"]) == 0

    said = capsys.readouterr().out
    assert "One of two sets is deleted." in said
    assert "ClusterResourceSet/one  was created" in said
    assert "Cluster/c  was created" not in said, "the stage is not part of the incident"
    assert said.endswith("The incident ended as required.\n")


def test_a_replay_can_be_read_by_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["incident", "replay", "13949", "-o", "json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert (told["incident"]["name"], told["seed"], told["held"], told["violation"]) == ("cluster-api#13949", 1, True, "")
    assert told["done"]
    assert {"at", "object", "sort", "about", "text"} == set(told["timeline"][0])


def test_an_incident_that_does_not_end_as_it_must_has_an_exit_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(self: object, holds: bool, text: str) -> None:
        raise AssertionError(text)

    monkeypatch.setattr("clusterwright.simulation.incidents.scene.Scene.must", cannot)

    assert main(["incident", "replay", "1121"]) == 3
    assert "The incident did NOT end as required:" in capsys.readouterr().out


def test_the_list_names_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["incident", "list", "-o", "json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert [i["name"] for i in told] == [i.name for i in EVERYBODY]
    assert [i["played"] for i in told] == [True] * len(INCIDENTS) + [False] * len(NOT_PLAYED)


def test_a_bug_can_only_be_planted_where_there_is_something_to_replace() -> None:
    with pytest.raises(AssertionError, match="is not there any more"):
        put("clusterwright.simulation.incidents.scene", "Scene.nothing_of_the_kind", None)()
