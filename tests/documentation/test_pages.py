"""The documentation is true: links lead somewhere, commands and fields exist. That outputs are what the product says, `make check` tells."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from clusterwright.api.contract import CONTRACTS
from clusterwright.api.contract import Path as FieldPath
from clusterwright.cli import grammar
from documentation.outputs import PAGES, ROOT
from tools.site_pipes import on_page_markdown

EVERY = (*PAGES, *sorted((ROOT / "docs").glob("*/*.md")))
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"(?:^ {4}(?:\$ )?(?:\.venv/bin/)?|`(?:\.venv/bin/)?)clusterwright ([a-z]+)", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", EVERY, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ {4}.*$", "", page.read_text(), flags=re.MULTILINE)  # not those in outputs and code
    for link in _LINK.findall(text):
        if re.match(r"https?:", link):
            continue
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(found), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    named = set(_COMMAND.findall(page.read_text()))

    assert named <= {*grammar.COMMANDS, "help"}


def test_every_field_of_the_contract_is_in_the_table() -> None:
    page = (ROOT / "docs" / "write-a-provider.md").read_text()
    for contract in CONTRACTS.values():
        for role in ("infra_cluster", "infra_machine", "infra_machine_pool", "bootstrap_config", "control_plane"):
            part = getattr(contract, role)
            for field in fields(part):
                path = getattr(part, field.name)
                assert not isinstance(path, FieldPath) or f"`{path}`" in page, f"{contract.version}: {path}"


def _named(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [name for part in parts for name in _named(part)]  # type: ignore[attr-defined]


def test_every_page_is_in_the_site() -> None:
    named = _named(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])

    assert {p.name for p in (ROOT / "docs").glob("*.md")} <= set(named)
    assert all((ROOT / "docs" / name).exists() for name in named)


def test_code_in_tables_is_shown_as_it_is_typed() -> None:
    shown = on_page_markdown("| `generate c \\| kubectl apply -f -` | a \\| b |\n`a \\| b`")

    assert shown == "| `generate c | kubectl apply -f -` | a \\| b |\n`a \\| b`"


@pytest.mark.skipif(
    find_spec("mkdocs") is None, reason="the site is not built: mkdocs comes with `make docs`, not with the tests' requirements"
)
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    page = "".join(path.read_text() for path in tmp_path.rglob("*.html"))
    assert "template.yaml | kubectl apply" in page
    assert not re.findall(r"<(?:script|img)[^>]+src=\"(?:https?:)?//|<link[^>]+href=\"(?:https?:)?//", page)
