"""Who gets in: each token once, each session for a while, the oldest making room."""

from __future__ import annotations

from pathlib import Path
from random import Random

from clusterwright.dashboard.door import INVITATION, LASTING, MOST, Door


class Hall:
    """A door with what it told, and a clock."""

    def __init__(self, kept: Path | None = None) -> None:
        self.told: list[str] = []
        self.now = 0.0
        self.door = Door(Random(7), lambda: self.now, self.told.append, kept)


def test_a_token_opens_once_and_the_next_one_is_reported() -> None:
    hall = Hall()
    first = hall.told[-1]

    session = hall.door.enter(first)

    assert session is not None
    assert hall.door.knows(session)
    assert hall.door.enter(first) is None
    assert len(hall.told) == 2
    assert hall.door.enter(hall.told[-1]) not in {None, session}


def test_no_other_token_opens_a_session() -> None:
    hall = Hall()

    for wrong in ("", "x", hall.told[0][:-1], hall.told[0] + "x", "\udcff", "é" * 43):
        assert hall.door.enter(wrong) is None
        assert not hall.door.knows(wrong)

    assert len(hall.told) == 1


def test_tokens_and_sessions_are_not_interchangeable() -> None:
    hall = Hall()
    token = hall.told[-1]
    session = hall.door.enter(token)

    assert session is not None
    assert not hall.door.knows(token)
    assert hall.door.enter(session) is None


def test_a_session_ends() -> None:
    hall = Hall()
    session = hall.door.enter(hall.told[-1])
    assert session is not None
    hall.now = LASTING - 1
    assert hall.door.knows(session)

    hall.now = LASTING

    assert not hall.door.knows(session)


def test_the_oldest_session_makes_room() -> None:
    hall = Hall()

    sessions = [hall.door.enter(hall.told[-1]) for _ in range(MOST + 1)]

    assert [hall.door.knows(s or "") for s in sessions] == [False, *[True] * MOST]


def test_an_invitation_opens_once_and_soon_and_leaves_the_printed_token_alone() -> None:
    hall = Hall()
    first, late = hall.door.invite(), hall.door.invite()

    assert hall.door.enter(first) is not None
    assert hall.door.enter(first) is None
    hall.now += INVITATION + 1
    assert hall.door.enter(late) is None
    assert len(hall.told) == 1
    assert hall.door.enter(hall.told[0]) is not None


def test_sessions_survive_a_restart_and_their_file_does_not_open_one(tmp_path: Path) -> None:
    file = tmp_path / "sessions.json"
    before = Hall(file)
    session = before.door.enter(before.told[0])
    assert session is not None

    after = Hall(file)

    assert after.door.knows(session)
    assert session not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    after.now += LASTING + 1
    assert not after.door.knows(session)


def test_a_file_that_cannot_be_read_ends_all_sessions(tmp_path: Path) -> None:
    file = tmp_path / "sessions.json"
    for content in (b"", b"[]", b'{"x": "y"}', b"\xff"):
        file.write_bytes(content)

        assert not Hall(file).door.knows("x")


def test_a_file_that_cannot_be_written_does_not_keep_people_out(tmp_path: Path) -> None:
    hall = Hall(tmp_path / "missing" / "sessions.json")

    session = hall.door.enter(hall.told[0])

    assert session is not None
    assert hall.door.knows(session)


def test_an_end_in_the_far_future_is_not_believed(tmp_path: Path) -> None:
    """The clock was set back after the session was opened."""
    hall = Hall(tmp_path / "sessions.json")
    hall.now = 1e9
    session = hall.door.enter(hall.told[0])
    assert session is not None

    hall.now = 0.0

    assert not hall.door.knows(session)
