"""The commands of a page, run in their order on a plane in virtual time.

A command is an indented line that begins with `kubectl` or `clusterwright`; `cd`, `export` and assignments of the form
`NAME=$(kubectl get KIND ... -o name | head -n 1)` are understood. `<!-- refused: TEXT -->` stands after a command that must be refused with
this text; `<!-- until: WORDS -->` waits as `clusterwright wait WORDS` does, where a page would not show it. A command that is not understood
fails the test: a page has none that nobody has run, but for programs in `ELSEWHERE`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

import pytest
import yaml

from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.cli import create, discovery, grammar, subjects
from clusterwright.cli.wait import goal
from clusterwright.inmemory.faults import FAULT
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.plane import Plane
from documentation.outputs import ROOT

ELSEWHERE: Final = frozenset({"helm", "flux", "argocd", "openssl"})
"""Programs that pages name and that are not there."""
WITHIN: Final = 3600.0
"""Virtual seconds in which a goal must be reached."""
_STEP: Final = re.compile(r"^ {4}(?P<command>\S.*)$|^<!-- (?P<check>until|refused): (?P<text>.+) -->$", re.MULTILINE)
_BLOCKS: Final = re.compile(r"<!-- (?:output|file): \S+ -->\n.*?<!-- end -->|^```.*?^```$", re.DOTALL | re.MULTILINE)


def steps(page: str) -> Iterator[tuple[str, str]]:
    """Yield each command and check of a page, in order."""
    text = _BLOCKS.sub("", (ROOT / "docs" / page).read_text())
    for found in re.finditer(_STEP, text.replace("\\\n", " ")):
        if found["check"]:
            yield found["check"], found["text"]
        elif found["command"].split()[0] not in ELSEWHERE:
            yield "command", found["command"]


class Story:
    """A page that is being played."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.client = RestClient(InProcessTransport(plane.server), clock=plane.clock)
        self.folder = ROOT
        self.variables: dict[str, str] = {}

    async def play(self, page: str) -> None:
        """Run all commands; raises if one fails, or is not refused."""
        waiting = list(steps(page))
        assert any(kind == "command" for kind, _ in waiting), f"{page} has no commands"
        for number, (kind, text) in enumerate(waiting):
            after = waiting[number + 1] if number + 1 < len(waiting) else ("", "")
            if kind == "until":
                await self._wait(shlex.split(self._filled(text)))
            elif kind == "command" and after[0] == "refused":
                with pytest.raises(ApiError, match=re.escape(after[1])):
                    await self._run(text)
            elif kind == "command":
                await self._run(text)

    def _filled(self, text: str) -> str:
        return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda m: self.variables.get(m[1] or m[2], m[0]), text)

    async def _run(self, line: str) -> None:
        assigned = re.fullmatch(r"(\w+)=\$\((kubectl get .*?)(?: \| head -n 1)?\)", line)
        if assigned:
            self.variables[assigned[1]] = await self._first(shlex.split(self._filled(assigned[2]), comments=True))
            return
        made, piped, applied = line.partition(" | kubectl apply -f -")
        if piped:
            assert not applied, line
            command = [sys.executable, *shlex.split(made)[1:]]
            text = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout  # noqa: ASYNC221  # no virtual time passes meanwhile
            await self._apply_all(self.client, yaml.safe_load_all(text))
            return
        program, *rest = shlex.split(self._filled(line), comments=True)
        match program, rest[:1]:
            case "cd", [folder]:
                self.folder = (self.folder / folder).resolve()
            case "export", _:
                return
            case "kubectl", _:
                client, rest = self._client(rest)
                await _KUBECTL[rest[0]](self, client, rest[1:])
            case "clusterwright", [verb]:
                act = _CLUSTERWRIGHT.get(verb)
                await (self._look(verb, rest[1:]) if act is None else act(self, rest[1:]))
            case _:
                raise AssertionError(f"the command is not understood: {line}")

    def _client(self, words: list[str]) -> tuple[RestClient, list[str]]:
        """Return the client of the cluster that `--kubeconfig NAME.kubeconfig` names, and the other words."""
        if words[0] != "--kubeconfig":
            return self.client, words
        workload = self.plane.workload(words[1].removesuffix(".kubeconfig"))
        return RestClient(InProcessTransport(workload.server), clock=self.plane.clock), words[2:]

    # ------------------------------------------------------------------------------------------------ kubectl

    async def _apply(self, client: RestClient, words: list[str]) -> None:
        await self._apply_all(client, self._documents(words))

    async def _apply_all(self, client: RestClient, documents: Iterable[Json]) -> None:
        for document in documents:
            kind = await discovery.resource_of(client, document["kind"].lower())
            namespace = {"namespace": "default"} if kind.namespaced else {}
            await client.apply({**document, "metadata": {**namespace, **document["metadata"]}}, field_manager="kubectl")

    def _documents(self, words: list[str]) -> Iterator[Json]:
        for flag, file in zip(words[::2], words[1::2], strict=True):
            assert flag == "-f", words
            yield from (document for document in yaml.safe_load_all((self.folder / file).read_text()) if document)

    async def _delete(self, client: RestClient, words: list[str]) -> None:
        if words[0] == "-f":
            objects = [(d["kind"].lower(), d["metadata"]["name"]) for d in self._documents(words)]
        else:
            subject, rest = subjects.parse(words)
            assert rest in ([], ["--wait=false"]), rest
            objects = [(subject.kind, subject.name)]
        for word, name in objects:
            kind = await discovery.resource_of(client, word)
            key = ObjectKey("default" if kind.namespaced else "", name)
            await client.delete(kind.gvk, key)
            if "--wait=false" not in words:
                await self._follow(client, word, name, "delete")

    async def _patch(self, client: RestClient, words: list[str]) -> None:
        subject, rest = subjects.parse(words)
        options = _options(rest)
        assert options.pop("type") == "merge", words
        await self._merge(client, subject, yaml.safe_load(options.pop("p")), **options)

    async def _merge(self, client: RestClient, subject: subjects.Subject, patch: Json, **options: Any) -> None:
        kind = await discovery.resource_of(client, subject.kind)
        await client.patch(kind.gvk, ObjectKey("default" if kind.namespaced else "", subject.name), patch, **options)

    async def _scale(self, client: RestClient, words: list[str]) -> None:
        subject, rest = subjects.parse(words)
        replicas = int(_options(rest)["replicas"])
        kind = await discovery.resource_of(client, subject.kind)
        await client.patch(kind.gvk, ObjectKey("default", subject.name), {"spec": {"replicas": replicas}}, subresource="scale")

    async def _annotate(self, client: RestClient, words: list[str]) -> None:
        await self._mark(client, words, "annotations")

    async def _label(self, client: RestClient, words: list[str]) -> None:
        await self._mark(client, words, "labels")

    async def _mark(self, client: RestClient, words: list[str], field: str) -> None:
        subject, rest = subjects.parse(words)
        marks = {w[:-1]: None for w in rest if w.endswith("-")} | dict(w.split("=", 1) for w in rest if "=" in w)
        await self._merge(client, subject, {"metadata": {field: marks}})

    async def _create(self, client: RestClient, words: list[str]) -> None:
        assert words[:2] == ["secret", "generic"], words
        options = _options(words[3:])
        literals = dict(value.split("=", 1) for value in options.pop("from-literal", "").split("\n") if value)
        kind = {"type": options["type"]} if "type" in options else {}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": words[2], "namespace": "default"},
            "stringData": literals,
            **kind,
        }
        await client.create(secret)

    async def _get(self, client: RestClient, words: list[str]) -> None:
        """Read what `kubectl get` would show; raises if a kind or an object does not exist."""
        for word in words[0].split(","):
            kind, _, name = word.partition("/")
            found = await discovery.resource_of(client, kind)
            name = name or next((w for w in words[1:2] if not w.startswith("-")), "")
            if name:
                await client.get(found.gvk, ObjectKey("default" if found.namespaced else "", name))

    async def _first(self, words: list[str]) -> str:
        """Return KIND/NAME of the first object that `kubectl get KIND [-l LABELS] -o name` finds."""
        options = _options(words[3:])
        assert options.get("o") == "name", words
        kind = await discovery.resource_of(self.client, words[2])
        wanted = dict(part.partition("=")[::2] for part in options.get("l", "").split(",") if part)
        found = await self.client.list(kind.gvk, namespace="default")
        names = [
            o.metadata.name for o in found if all(k in o.metadata.labels and v in ("", o.metadata.labels[k]) for k, v in wanted.items())
        ]
        assert names, words
        return f"{words[2]}/{min(names)}"

    # ------------------------------------------------------------------------------------------------ clusterwright

    async def _make(self, words: list[str]) -> None:
        options: Namespace = grammar.parse("create", words)
        subject = subjects.parse_cluster(options.words)
        options.name, options.choice = subject.name, None
        await self.plane.apply(create.FLAVORS[options.flavor](options, "default"))
        if options.wait:
            await self._wait([subject.name])

    async def _wait(self, words: list[str]) -> None:
        subject, rest = subjects.parse(words)
        options = _options(rest)
        await self._follow(self.client, subject.kind, subject.name, options.get("for", "condition=Available"))

    async def _follow(self, client: RestClient, word: str, name: str, text: str) -> None:
        """Wait until an object is as `--for` says; raises TimeoutError with its state."""
        resource = await discovery.resource_of(client, word)
        key, reached, told = ObjectKey("default" if resource.namespaced else "", name), goal(text), ""

        async def holds() -> bool:
            nonlocal told
            found = await client.find(resource.gvk, key)
            is_reached, told = reached(None if found is None else found.json)
            return is_reached

        try:
            await self.plane.until(holds, f"{word}/{name}: {text}", within=WITHIN, step=1.0)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; last: {told}") from None

    async def _remove(self, words: list[str]) -> None:
        subject, _ = subjects.parse(words)
        kind = await discovery.resource_of(self.client, subject.kind)
        await self.client.delete(kind.gvk, ObjectKey("default", subject.name))
        await self._follow(self.client, subject.kind, subject.name, "delete")

    async def _break(self, words: list[str]) -> None:
        """Inject a fault into the simulated machine of a Machine."""
        assert grammar.parse("fault", words).action == "inject"
        subject, faults = subjects.parse(words[1:], default="Machine")
        machine = await self.client.get(Machine, ObjectKey("default", subject.name))
        await self.plane.annotate(DevMachine, machine.spec.infrastructure_ref.name, {FAULT: ",".join(faults)})

    async def _look(self, verb: str, words: list[str]) -> None:
        """Read the object of a command that only shows something; its flags must exist."""
        grammar.parse(verb, words)
        subject, _ = subjects.parse([word for word in words if not word.startswith("-")])
        kind = await discovery.resource_of(self.client, subject.kind)
        await self.client.get(kind.gvk, ObjectKey("default", subject.name))


def _options(words: list[str]) -> dict[str, str]:
    """Return flags with their values: `--for=x`, `-p x`, `-o name`. Values of a repeated flag are joined by line ends."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.lstrip("-").partition("=")
        assert word.startswith("-"), words
        value = value if equals else next(rest)
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


_KUBECTL: Final[dict[str, Callable[[Story, RestClient, list[str]], Awaitable[None]]]] = {
    "apply": Story._apply,
    "annotate": Story._annotate,
    "create": Story._create,
    "delete": Story._delete,
    "get": Story._get,
    "label": Story._label,
    "patch": Story._patch,
    "scale": Story._scale,
}
_CLUSTERWRIGHT: Final[dict[str, Callable[[Story, list[str]], Awaitable[None]]]] = {
    "create": Story._make,
    "delete": Story._remove,
    "fault": Story._break,
    "wait": Story._wait,
}
