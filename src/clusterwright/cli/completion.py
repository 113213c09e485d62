"""`clusterwright completion SHELL`: a shell script that calls `clusterwright complete` for possible completions."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from clusterwright.cli import grammar

if TYPE_CHECKING:
    from clusterwright.runtime.rest import RestClient

_SCRIPTS = {
    "bash": """\
_clusterwright() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    declare -F __ltrim_colon_completions > /dev/null && __ltrim_colon_completions "${COMP_WORDS[COMP_CWORD]}"
    return 0
}
complete -o default -F _clusterwright clusterwright
""",
    "zsh": """\
#compdef clusterwright
_clusterwright() {
    local -a found
    found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=("${(@)found:#}")
    if (( ${#found} )); then compadd -- "${found[@]}"; else _files; fi
}
if [ "${funcstack[1]}" = "_clusterwright" ]; then _clusterwright "$@"; else compdef _clusterwright clusterwright; fi
""",
    "fish": """\
function __clusterwright_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] complete -- $words[2..-1] 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c clusterwright -f -a '(__clusterwright_complete)'
""",
}
_SECONDS = 2.0
_BEGINNINGS = {
    "FORM": ("table", "wide", "json", "yaml", "name", "jsonpath=", "custom-columns="),
    "GOAL": ("condition=", "delete", "create", "jsonpath="),
}
"""The words that are offered for arguments which take more than a list of words, by their metavar."""


def run(arguments: argparse.Namespace) -> int:
    """Print the completion script of a shell, or the candidates when the script asks for them."""
    if arguments.shell:
        print(_SCRIPTS[arguments.shell], end="")
    else:
        for word in candidates(arguments.words):
            print(word)
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """Return the possible completions of the last word; empty if any text is allowed, for example a file name."""
    *before, last = words or [""]
    if not before:
        return [name for name, command in grammar.COMMANDS.items() if command.summary and name.startswith(last)]
    if before[0] not in grammar.COMMANDS:
        return []
    parser, typed = _innermost(grammar.parser(before[0]), before[1:])
    flags = {flag: action for action in parser._actions for flag in action.option_strings}
    flag, is_assigned, beginning = last.partition("=")
    if last.startswith("-") and is_assigned and flag in flags:
        return [f"{flag}={choice}" for choice in _choices(flags[flag]) if choice.startswith(beginning)]
    if last.startswith("-"):
        return sorted(flag for flag in flags if flag.startswith(last))
    asked = flags.get(typed[-1]) if typed else None
    if asked is not None and asked.nargs != 0:
        return [choice for choice in _choices(asked) if choice.startswith(last)]
    given, namespace = _split(flags, typed)
    position = next((action for action in parser._actions if not action.option_strings), None)
    if position is None:
        return []
    if choices := _choices(position):
        return [choice for choice in choices if choice.startswith(last)] if not given else []
    if position.dest != "words":
        return []
    return [word for word in _objects(position.metavar or "", given, last, namespace) if word.startswith(last)]


def _innermost(parser: argparse.ArgumentParser, typed: Sequence[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the parser of the subcommand that was typed, if any, and the words after it."""
    below = next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
    for index, word in enumerate(typed):
        if below is not None and word in below.choices:
            return _innermost(below.choices[word], typed[index + 1 :])
    return parser, list(typed)


def _choices(action: argparse.Action) -> list[str]:
    """Return the words that are offered for an argument: those that it allows, or the beginnings of what it allows."""
    allowed = action.choices if action.choices is not None else _BEGINNINGS.get(str(action.metavar), ())
    return [str(choice) for choice in allowed]


def _split(flags: dict[str, argparse.Action], typed: Sequence[str]) -> tuple[list[str], argparse.Namespace]:
    """Return the words that are neither flags nor their values, and the flags that select a server or file."""
    given: list[str] = []
    where = argparse.Namespace(kubeconfig=None, context="", namespace="")
    words = iter(typed)
    for word in words:
        if not word.startswith("-"):
            given.append(word)
            continue
        flag, is_assigned, value = word.partition("=")
        action = flags.get(flag)
        if action is None or action.nargs == 0:
            continue
        value = value if is_assigned else next(words, "")
        if hasattr(where, action.dest):
            setattr(where, action.dest, value)
    return given, where


def _objects(metavar: object, given: Sequence[str], last: str, where: argparse.Namespace) -> list[str]:
    """Return the candidates for kinds and object names, in the form that the command expects."""
    from clusterwright.api.scheme import CUSTOM
    from clusterwright.cli import subjects

    kind = str(metavar).partition("/")[0].partition(" ")[0]
    default = kind if kind != "KIND" else "cluster"
    typed_kind, is_path, _ = last.partition("/")
    if is_path and subjects.is_kind(typed_kind):
        return [f"{typed_kind}/{name}" for name in _names(typed_kind, where)]
    beyond = str(metavar).partition(" ")[2].strip("[]")
    if beyond in _BEYOND and given and not (len(given) == 1 and subjects.is_kind(given[0])):
        return _BEYOND[beyond](given, where)
    if not given:
        kinds = [default] if kind != "KIND" else [r.singular for r in CUSTOM]
        return sorted(kinds) if kind == "KIND" else [*kinds, *_names(default, where)]
    return _names(given[0], where) if subjects.is_kind(given[0]) and len(given) == 1 else []


def _names(kind: str, where: argparse.Namespace) -> list[str]:
    """Return the names of the objects of a kind; empty if no server can be reached."""
    from clusterwright.cli import subjects

    resource = subjects.resource_of(kind)
    assert resource is not None

    async def ask(client: RestClient, namespace: str) -> list[str]:
        return [obj.metadata.name for obj in await client.list(resource.gvk, namespace=namespace if resource.namespaced else "")]

    return _asked(ask, where)


def _faults(given: Sequence[str], where: argparse.Namespace) -> list[str]:
    """Return all faults."""
    from clusterwright.inmemory.faults import DESCRIPTIONS

    return [*DESCRIPTIONS]


def _conditions(given: Sequence[str], where: argparse.Namespace) -> list[str]:
    """Return the types of the conditions of an object; empty if the words name none."""
    from clusterwright.cli import subjects

    try:
        subject, rest = subjects.parse(given)
    except subjects.BadSubject:
        return []
    resource = subjects.resource_of(subject.kind)
    if rest or resource is None:
        return []

    async def ask(client: RestClient, namespace: str) -> list[str]:
        found = await client.get(resource.gvk, subjects.key_of(subject, resource, namespace))
        return [condition.type for condition in conditions_of(found)]

    from clusterwright.conditions.foreign import conditions_of

    return _asked(ask, where)


_BEYOND: dict[str, Callable[[Sequence[str], argparse.Namespace], list[str]]] = {"FAULT": _faults, "CONDITION": _conditions}
"""The candidates for the word after an object, by its metavar."""


def _asked(ask: Callable[[RestClient, str], Awaitable[list[str]]], where: argparse.Namespace) -> list[str]:
    """Return the answer of the server to a question about the default namespace; empty if it has none in time."""
    import asyncio

    from clusterwright.api.kubeconfig import InvalidKubeconfig
    from clusterwright.cli import connect
    from clusterwright.runtime.errors import ApiError

    async def answer() -> list[str]:
        connection = connect.resolve(where)
        async with asyncio.timeout(_SECONDS), connect.connected(connection) as client:
            return await ask(client, where.namespace or connection.namespace)

    with suppress(InvalidKubeconfig, ApiError, OSError, TimeoutError):
        return asyncio.run(answer())
    return []
