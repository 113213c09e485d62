"""Words that tell what a message is about are data, and each has an example."""

from __future__ import annotations

import pytest

from clusterwright.api.meta import Condition
from clusterwright.offline import provider_reports, words
from clusterwright.offline.complaints import complaint_of
from clusterwright.offline.words import Phrases, last_word

ALL = {name: value for name, value in vars(words).items() if isinstance(value, Phrases)}


@pytest.mark.parametrize("name", ALL)
def test_each_has_an_example_that_it_recognizes(name: str) -> None:
    assert ALL[name].said_in(ALL[name].example)


@pytest.mark.parametrize("name", ALL)
def test_none_recognizes_what_says_nothing(name: str) -> None:
    assert not ALL[name].said_in("NotReported all is as it should be")


@pytest.mark.parametrize("subject", provider_reports.SUBJECTS, ids=lambda s: s.cause)
def test_the_example_of_a_subject_is_about_it(subject: provider_reports.Subject) -> None:
    assert provider_reports.subject_of(subject.example) == subject.cause


def test_a_report_about_nothing_known_is_a_report() -> None:
    assert provider_reports.subject_of("the flux capacitor is cold") == "provider.reports"


def test_a_whole_word_is_not_found_within_another() -> None:
    assert words.HALT.said_in("the machine is down")
    assert not words.HALT.said_in("the download goes on")


@pytest.mark.parametrize(
    ("name", "last"), [("CreateFailed", "Failed"), ("Error", "Error"), ("EKSControlPlaneCreating", "Creating"), ("x", "x")]
)
def test_the_last_word_of_a_type(name: str, last: str) -> None:
    assert last_word(name) == last


@pytest.mark.parametrize(("status", "reason", "is_bad"), [("False", "OK", False), ("False", "Success", False), ("False", "Failed", True)])
def test_a_foreign_condition_with_the_reason_of_a_success_is_good_whatever_its_status(status: str, reason: str, is_bad: bool) -> None:
    condition = Condition(type="ChangeDetected", status=status, reason=reason)
    assert (complaint_of(condition) is not None) is is_bad
