"""String formats, judged as kube-openapi's strfmt of kube-apiserver v1.36 judges them; each text was shown to it."""

from __future__ import annotations

import pytest

from clusterwright.cel.formats import format_check, parse_duration
from clusterwright.golang.netip import prefix_problem

TAKEN = {
    "uri": ("http://a.b/c", "/x", "*", "a:b", "//a/b", "http://[::1]:80/x", "mtp://a9:80:90/", "http://user:pw@h/"),
    "email": ("a@b", "A <a@b.c>", '"x y"@b', "a@b (c)", "a@[1.2.3.4]", '"A, B" <a@b>'),
    "hostname": ("a", "a.bc", "\N{SNOWMAN}.com", "A-b.com", "a--b.com"),
    "ipv4": ("1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4", "::ffff:01.2.3.4"),
    "ipv6": ("::1", "::ffff:1.2.3.4"),
    "cidr": ("1.2.3.4/8", "01.2.3.4/08", "::/0"),
    "mac": ("01:02:03:04:05:06", "0102.0304.0506.0708", "010203040506", "-".join(["01"] * 20)),
    "ssn": ("123-45-6789", "123 45 6789"),
    "date": ("2020-01-01", "0000-01-01"),
    "date-time": ("2020-01-01t00:00:00z", "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00.123456789012Z", "2020-01-01T00:00:00ZTx"),
    "duration": ("1h", "P1D", "1h1x", "1W", "3MIN", "1.5 days", "-3 d", "1e3s", "1 Day"),
}
REFUSED = {
    "uri": ("", "foo", "http://a/%zz", "http://a#b", "http://a b", "http://a[::1]", "http://[:o:1]/x", "://a", "http://a/\x7f"),
    "email": ("a b@c", "a..b@c", ".a@b", "a@b.", "a@b..c", "a@b,c@d", "a@[1.2.3b]", '"A, B<a@b>'),
    "hostname": ("a.b", "a_b", "\N{SUPERSCRIPT TWO}", "a-b-c", "a.1", "a" * 64),
    "ipv4": ("1.2.3", "256.1.1.1", "::1", "1.2.3.4 "),
    "ipv6": ("1.2.3.4", "fe80::1%eth0", "1::2::3"),
    "cidr": ("1.2.3.4", "1.2.3.4/33", "1.2.3.4/+8"),
    "mac": ("01:02-03:04:05:06", "0102:0304:0506", "1:2:3:4:5:6"),
    "ssn": ("123456789", "123-456789"),
    "date": ("2020-1-1", "2020-02-30", "\uff12\uff10\uff12\uff10-01-01"),
    "date-time": ("2020-01-01", "2020-01-01T00:00:00", "2020-01-01T24:00:00Z", "2020-01-01 00:00:00Z", "2020-02-30T00:00:00Z"),
    "duration": ("", "5", "2 wks", "1 k", "99999999999999999999 s", "9223372036854775808ns"),
}


def rows(table: dict[str, tuple[str, ...]], verdict: bool) -> list[tuple[str, str, bool]]:
    return [(name, text, verdict) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text", "taken"), [*rows(TAKEN, True), *rows(REFUSED, False)])
def test_a_format_accepts_the_same_texts_as_upstream(name: str, text: str, taken: bool) -> None:
    check = format_check(name)

    assert check is not None
    assert check(text) == taken


def test_a_duration_adds_up_whatever_stands_between() -> None:
    assert parse_duration("1 day, 2 hours and 1ns") == ((24 + 2) * 3600 * 10**9) + 1
    assert parse_duration("1h30m") == 5400 * 10**9


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("email", "a" * 100_000 + "!"),
        ("email", "a." * 50_000 + "<"),
        ("email", '"' + "\\a" * 50_000),
        ("email", "a (" * 30_000),
        ("duration", "1" * 1_000_000),
        ("duration", "1 " * 300_000),
        ("duration", "1" * 1_000_000 + "s"),
        ("duration", "1" * 1_000_000 + " s"),
        ("cidr", "1.2.3.4/" + "1" * 1_000_000),
        ("uri", "http://" + "[" * 300_000),
        ("hostname", "a-" * 300_000),
        ("date-time", "t" * 1_000_000),
    ],
    ids=lambda value: value[:12],
)
def test_no_text_takes_long_or_breaks_anything(name: str, text: str) -> None:
    """On an engine that goes back to try another way, some of these would not come to an end."""
    check = format_check(name)

    assert check is not None
    assert not check(text)


def test_digits_that_do_not_count_are_not_read() -> None:
    assert parse_duration("0." + "1" * 1_000_000 + "s") == 111_111_111
    assert parse_duration("0" * 100_000 + "1s") == 10**9
    assert prefix_problem("1.2.3.4/" + "1" * 1_000_000).endswith('1"')
