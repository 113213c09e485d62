from __future__ import annotations

import pytest

from clusterwright.kubeadm.documents import UnsupportedVersion, api_version_for
from clusterwright.kubeadm.versions import Version, parse_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.33.2", Version(1, 33, 2)),
        ("1.33.2", Version(1, 33, 2)),
        (" v1.33.0 ", Version(1, 33, 0)),
        ("v1", Version(1)),
        ("1.31", Version(1, 31)),
        ("v01.031.002", Version(1, 31, 2)),
        ("1.31.0-rc.1", Version(1, 31, 0, "rc.1")),
        ("v1.30.2+vmware.1-fips", Version(1, 30, 2, "", "vmware.1-fips")),
        ("v1.22.0-alpha.0.13+abc", Version(1, 22, 0, "alpha.0.13", "abc")),
    ],
)
def test_versions_are_read_tolerantly(text: str, expected: Version) -> None:
    assert parse_version(text) == expected


@pytest.mark.parametrize(
    "text", ["", "bogus", "v1.x.0", "v", "1.2.3.4", "1.-1.0", "v1.31.0-", "v1.31.0+", "1.31-rc.1", "1.31.0-rc!", "１.31.0", "1.31.0-01"]
)
def test_other_texts_are_not_versions(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is ours, the type is the contract
        parse_version(text)


@pytest.mark.parametrize("text", ["v1.33.2", "1.0.0", "1.31.0-rc.1+b"])
def test_a_version_reads_as_what_it_prints(text: str) -> None:
    assert parse_version(str(parse_version(text))) == parse_version(text)


@pytest.mark.parametrize("text", ["1.12.0", "1.14.99", "v1.21.5"])
def test_old_versions_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedVersion, match=r"doesn't support Kubernetes version lower than v1\.22\.0"):
        api_version_for(parse_version(text))


@pytest.mark.parametrize(
    ("text", "api"),
    [
        ("1.22.0-alpha.0+build", "v1beta3"),
        ("1.22.0", "v1beta3"),
        ("1.23.99", "v1beta3"),
        ("1.30.99", "v1beta3"),
        ("1.31.0", "v1beta4"),
        ("1.31.0-alpha.0", "v1beta4"),
        ("1.32.99", "v1beta4"),
        ("99.99.99", "v1beta4"),
    ],
)
def test_versions_choose_the_api(text: str, api: str) -> None:
    assert api_version_for(parse_version(text)) == api
