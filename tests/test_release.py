"""What `make release-check` decides before it builds anything."""

from __future__ import annotations

import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tools.release import PACKAGE, NotReady, changelog, missing_in_wheel, provenance, versions_differ

ROOT = Path(__file__).parents[1]


def test_both_versions_must_agree() -> None:
    project = '[project]\nversion = "1.2.3"\n'

    assert versions_differ(project, '__version__ = "1.2.3"\n') == ""
    assert "1.2.4" in versions_differ(project, '__version__ = "1.2.4"\n')
    assert "none" in versions_differ(project, "")


def test_the_changelog_is_a_list_of_all_fragments() -> None:
    fragments = [("a.md", "One line.\n"), ("b.md", "- two\n  more of two\n- three\n")]

    assert changelog(fragments, "1.0.0") == "## 1.0.0\n\n- One line.\n- two\n  more of two\n- three\n"
    for bad in ("", " \n", "## heading\ntext"):
        with pytest.raises(NotReady, match=r"b\.md"):
            changelog([("b.md", bad)], "1.0.0")


def test_the_present_fragments_can_be_released() -> None:
    fragments = [(p.name, p.read_text()) for p in sorted((ROOT / "changelog.d").glob("*.md")) if p.name != "README.md"]

    assert changelog(fragments, "1.0.0").count("\n- ") >= len(fragments)


def test_a_file_that_the_wheel_lacks_is_named() -> None:
    tracked = [f"{PACKAGE}a.py", f"{PACKAGE}data/b.toml", "tests/c.py"]

    assert missing_in_wheel(tracked, {"clusterwright/a.py", "clusterwright/data/b.toml"}) == []
    assert missing_in_wheel(tracked, {"clusterwright/a.py"}) == ["clusterwright/data/b.toml"]


def test_every_data_file_of_the_package_is_named_in_the_project() -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["clusterwright"]
    tracked = subprocess.run(["git", "ls-files", PACKAGE], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    data = [path.removeprefix(PACKAGE) for path in tracked if not path.endswith(".py")]

    assert data
    assert [path for path in data if not any(fnmatch(path, pattern) for pattern in named)] == []


def test_the_statement_of_provenance_names_commit_and_digests() -> None:
    statement = provenance("abc", {"b.whl": "2", "a.gz": "1"})

    assert [s["name"] for s in statement["subject"]] == ["a.gz", "b.whl"]
    assert statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"] == {"gitCommit": "abc"}
