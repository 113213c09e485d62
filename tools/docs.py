"""`python -m tools.docs [--check]`: render what docs/ has from the code, or fail where it is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterwright.admission.rendering import as_markdown as admission_page
from clusterwright.conformance.rendering import as_markdown as kit_page
from clusterwright.offline.catalogue import catalogue
from clusterwright.offline.cause_ids import as_markdown as causes_page
from clusterwright.simulation.incidents.rendering import as_markdown as incidents_page
from clusterwright.tables import as_json, as_markdown
from tools import packages, python_reference, reference

FOLDER = Path("docs") / "tables"
ARCHITECTURE = Path("docs") / "architecture.md"
COMMANDS = Path("docs") / "commands.md"
INCIDENTS = Path("docs") / "incidents.md"
KIT = Path("docs") / "conformance-kit.md"
PYTHON = Path("docs") / "python.md"


def pages() -> dict[str, str]:
    """File name to content."""
    rendered = {}
    for controller, tables in catalogue().items():
        head = f"# Decision tables of `{controller}`\n\nRendered from the code by `make docs`; do not edit. First match wins.\n\n"
        rendered[f"{controller}.md"] = head + "\n".join(as_markdown(t) for t in tables)
    index = "# Decision tables\n\nRendered from the code by `make docs`; do not edit.\n\n| Controller | Tables |\n|---|---|\n"
    for controller, tables in catalogue().items():
        index += f"| [{controller}]({controller}.md) | {', '.join(t.name for t in tables)} |\n"
    index += "\nWhat is refused before any controller sees it: [rules of admission](admission.md).\n"
    index += "Every condition with its reasons: [conditions](conditions.md).\n"
    index += "What `explain` calls the causes of trouble: [causes](causes.md).\n"
    return {
        "README.md": index,
        "causes.md": causes_page(),
        "admission.md": admission_page(),
        "conditions.md": conditions_page(),
        **rendered,
    }


def _single_pages() -> dict[Path, str]:
    return {
        ARCHITECTURE: packages.replaced(ARCHITECTURE.read_text()),
        COMMANDS: reference.as_markdown(),
        INCIDENTS: incidents_page(),
        KIT: kit_page(),
        PYTHON: python_reference.as_markdown(),
    }


def conditions_page() -> str:
    """Return every condition that a table decides: its statuses and reasons, and when each is so."""
    page = "# Conditions and reasons\n\nRendered from the code by `make docs`; do not edit. "
    page += "What a condition says is decided by the first row that holds; the tables have all of it.\n"
    for controller, tables in catalogue().items():
        decided = [t for t in map(as_json, tables) if "(v1beta1)" not in t["name"] and any(r.get("reason") for r in t["rows"])]
        if not decided:
            continue
        page += f"\n## [{controller}]({controller}.md)\n\n| Condition | Status | Reason | When |\n|---|---|---|---|\n"
        for table in decided:
            seen: dict[tuple[str, str], list[str]] = {}
            for row in table["rows"]:
                if row.get("reason"):
                    seen.setdefault((row["status"], row["reason"]), []).append(row["guard"])
            for (status, reason), guards in seen.items():
                when = "; or ".join(f"`{g}`" for g in dict.fromkeys(guards)).replace("|", "\\|").replace("\n", " ")
                page += f"| {table['name']} | `{status}` | `{reason}` | {when} |\n"
    return page


def run(argv: Sequence[str]) -> int:
    """Write the pages; with --check only compare: 1 if any is stale."""
    parser = argparse.ArgumentParser(prog="clusterwright docs", description="Render docs/tables/ from the code's tables.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is stale")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args(list(argv))
    single = _single_pages() if ARCHITECTURE.exists() else {}
    behind = [path for path, text in single.items() if not path.exists() or path.read_text() != text]
    wanted = pages()
    present = {p.name: p.read_text() for p in arguments.folder.glob("*.md")} if arguments.folder.exists() else {}
    stale = sorted(n for n in {*wanted, *present} if wanted.get(n) != present.get(n))
    if arguments.check:
        for name in stale:
            print(f"{arguments.folder / name} is stale: run `make docs`", file=sys.stderr)
        for path in behind:
            print(f"{path} is stale: run `make docs`", file=sys.stderr)
        return 1 if stale or behind else 0
    for path in behind:
        path.write_text(single[path])
        print(path)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        target = arguments.folder / name
        if name in wanted:
            target.write_text(wanted[name])
        else:
            target.unlink()
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
