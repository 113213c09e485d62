"""The reference of all commands as Markdown, from the grammar: the same whatever the width of a terminal. Pure."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from clusterwright.cli import grammar


def as_markdown() -> str:
    """Return the page."""
    lines = ["# Commands", "", "Rendered from the code by `make docs`; do not edit. `clusterwright COMMAND --help` says the same.", ""]
    lines += ["| Command | What it does |", "|---|---|"]
    people = {name: command for name, command in grammar.COMMANDS.items() if command.summary}
    lines += [f"| [`{name}`](#{name}) | {_cell(command.summary)} |" for name, command in people.items()]
    for name in people:
        parser = grammar.parser(name)
        lines += ["", f"## {name}", "", " ".join((parser.description or "").split()), "", *_flags(parser)]
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for word, below in action.choices.items():
                    lines += ["", f"### {name} {word}", "", *_flags(below)]
    return "\n".join(lines) + "\n"


def _flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a table of the words and flags of a parser."""
    rows = [row for action in parser._actions if (row := _row(action))]
    if rows:
        yield from ("| Argument | Meaning |", "|---|---|", *rows)


def _row(action: argparse.Action) -> str:
    if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
        return ""
    values = "\\|".join(map(str, action.choices)) if action.choices else str(action.metavar or action.dest.upper())
    takes = "" if action.nargs == 0 else f" {values}"
    shown = ", ".join(action.option_strings) + takes if action.option_strings else values
    default = f"default: {action.default}" if action.choices and action.default else ""
    text = action.help % vars(action) if action.help else default
    return f"| `{shown}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
