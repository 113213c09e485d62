"""Watch events are told apart by their JSON, however a server writes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.runtime.framing import JsonFrames, TooLong

scalars = (
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab{}[]"\\\n \té☃') | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=12
)
events = st.fixed_dictionaries(
    {"type": st.sampled_from(["ADDED", "DELETED"]), "object": st.dictionaries(st.text(max_size=4), values, max_size=4)}
)
shapes = st.fixed_dictionaries({"indent": st.sampled_from([None, 0, 1, 4, "\t"]), "ensure_ascii": st.booleans()})
between = st.sampled_from([b"", b"\n", b"\r\n", b"\n\n", b" ", b"\n  "])


def framed(stream, cuts):
    frames, found, begin = JsonFrames(1 << 20), [], 0
    for cut in sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)}):
        found += frames.feed(stream[begin:cut])
        begin = cut
    return found, frames.end()


@given(st.lists(st.tuples(events, shapes, between), max_size=6), st.lists(st.integers(0, 3000), max_size=20))
def test_any_writing_in_any_pieces_gives_the_same_events(written, cuts):
    stream = b"".join(json.dumps(event, **shape).encode() + tail for event, shape, tail in written)

    found, left = framed(stream, cuts)

    assert [json.loads(one) for one in found] == [event for event, _, _ in written]
    assert left == b""


@given(events, st.data())
def test_a_truncated_event_is_not_delivered(event, data):
    text = json.dumps(event, indent=1).encode()
    cut = data.draw(st.integers(1, len(text) - 1))

    assert framed(text[:cut], []) == ([], text[:cut].strip())


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b'nonsense\n{"a":1}\n', [b"nonsense", b'{"a":1}']),
        (b'{"a":"cut in a string\n{"a":1}\n', [b'{"a":"cut in a string', b'{"a":1}']),
        (b'}\n{"a":1}\n', [b"}", b'{"a":1}']),
        (b'\\"\n{"a":1}', [b'\\"', b'{"a":1}']),
    ],
)
def test_invalid_json_is_returned_unchanged_and_later_values_are_complete(stream, expected):
    for step in (1, 3, len(stream)):
        assert framed(stream, range(0, len(stream), step))[0] == expected


@pytest.mark.parametrize("filler", [b"x", b"\n", b"{", b'"', b"[ \n"])
def test_buffers_are_bounded(filler):
    frames = JsonFrames(1000)

    def feed():
        for _ in range(5000):
            list(frames.feed(b'{"a": ' + filler))

    with pytest.raises(TooLong):
        feed()
    assert len(frames.end()) < 1100
