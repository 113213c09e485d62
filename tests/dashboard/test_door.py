"""Who gets in: each token once, each session for a while, the oldest making room."""

from __future__ import annotations

from random import Random

from clusterwright.dashboard.door import LASTING, MOST, Door


class Hall:
    """A door with what it told, and a clock."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.now = 0.0
        self.door = Door(Random(7), lambda: self.now, self.told.append)


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
