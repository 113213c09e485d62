"""`clusterwright mcp` as a process over pipes, on a bundle and on a live plane; and with the official client, where that is installed."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clusterwright.api.meta import Json
from clusterwright.cli.mcpserver import LONGEST, STATELESS, VERSIONS, Answer, Server, Tool
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START
from offline.live import DEPLOYMENT, DEV_TEMPLATE, key, recorded, whole
from support.forks import program

from .conftest import Run, environment, run_in, running


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broken cluster in a file that still has its Secrets, which `record` would not write."""

    async def main() -> list[Json]:
        async with plane(LoopClock(START)) as p:
            await p.apply(whole())
            await p.until_available("c", workers=1)
            await p.client.delete(DEV_TEMPLATE, key("md"))
            await p.client.patch(DEPLOYMENT, key("md"), {"spec": {"replicas": 2}})
            await asyncio.sleep(120)
            return await recorded(p, keep_secrets=True)

    file = tmp_path_factory.mktemp("mcp") / "bundle.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": run_virtual(main())}))
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running(tmp_path_factory.mktemp("plane")) as folder:
        yield folder


class Session:
    """A server process, and its answers in the order in which they were asked for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.number = 0

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        answer = self.read()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self.number)
        return answer

    def begin(self, version: str = VERSIONS[0]) -> Json:
        client = {"name": "test", "version": "1"}
        answer: Json = self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=client)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, **arguments: Any) -> Json:
        result: Json = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        return result


@contextmanager
def session(folder: Path, *flags: str) -> Iterator[Session]:
    process = subprocess.Popen(
        [*program(), "mcp", *flags],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        yield Session(process)
        process.stdin.close()
        assert process.wait(timeout=600) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def text_of(result: Json) -> str:
    return "\n".join(part["text"] for part in result["content"])


def test_a_bundle_is_explained_to_an_assistant(bundle: Path, tmp_path: Path) -> None:
    with session(tmp_path, "--from", str(bundle)) as s:
        hello = s.begin()
        assert hello["protocolVersion"] == VERSIONS[0]
        assert hello["serverInfo"]["name"] == "clusterwright"
        assert "tools" in hello["capabilities"]
        assert s.ask("ping")["result"] == {}

        tools = {tool["name"]: tool for tool in s.ask("tools/list")["result"]["tools"]}
        assert set(tools) == {"clusters", "explain", "describe", "timeline", "plan"}
        assert all(tool["annotations"]["readOnlyHint"] and tool["inputSchema"]["type"] == "object" for tool in tools.values())

        (cluster,) = s.call("clusters")["structuredContent"]["clusters"]
        assert (cluster["name"], cluster["state"], cluster["cause"]) == ("c", "broken", "object.missing")

        explained = s.call("explain", name="c")
        assert not explained["isError"]
        assert explained["structuredContent"]["verdict"]["object"] == "DevMachineTemplate/default/md"
        assert text_of(explained).startswith("Broken: DevMachineTemplate/default/md does not exist")
        assert s.call("explain", name="md", kind="machinedeployment", namespace="default")["structuredContent"]["subject"] == (
            "MachineDeployment/default/md"
        )
        with_table = s.call("explain", name="c", condition="available")["structuredContent"]["tables"]
        assert with_table[0]["table"] == "Available" if "table" in with_table[0] else with_table

        assert "MachineDeployment/md" in text_of(s.call("describe", name="c"))
        happened = s.call("timeline", name="c")["structuredContent"]["moments"]
        assert {m["sort"] for m in happened} >= {"created", "condition"}
        assert "decision" not in {m["sort"] for m in happened}
        assert s.call("timeline", name="c", since="1s")["structuredContent"]["moments"] == []

        planned = s.call("plan", edit="md/md", set="spec.replicas=1")
        assert planned["structuredContent"]["outcome"] == "changes"
        assert "spec.replicas: 2 -> 1" in text_of(planned)
        assert s.call("plan", edit="md/md", set="nonsense")["isError"]


def test_no_value_of_a_secret_leaves(bundle: Path, tmp_path: Path) -> None:
    secrets = [o for o in json.loads(bundle.read_text())["items"] if o["kind"] == "Secret"]
    values = {v for s in secrets for v in (s.get("data") or {}).values() if len(v) > 12}
    assert len(values) > 5
    values |= {base64.b64decode(v).decode("utf-8", "replace") for v in values}
    with session(tmp_path, "--from", str(bundle)) as s:
        s.begin()
        told = [s.call("clusters"), s.call("describe", name="c"), s.call("timeline", name="c", decisions=True)]
        told += [s.call("explain", name="c", condition="Available")]
        told += [s.call("plan", edit="md/md", set="spec.replicas=1")]
        told += [s.call("explain", name=o["metadata"]["name"], kind="Secret", namespace="default") for o in secrets]
    everything = json.dumps(told)
    assert [v for v in values if v in everything or json.dumps(v)[1:-1] in everything] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_spoken(version: str, bundle: Path, tmp_path: Path) -> None:
    with session(tmp_path, "--from", str(bundle)) as s:
        assert s.begin(version)["protocolVersion"] == version
        assert ("structuredContent" in s.call("clusters")) == (version >= "2025-06-18")


def test_an_unknown_version_is_answered_with_the_newest(bundle: Path, tmp_path: Path) -> None:
    with session(tmp_path, "--from", str(bundle)) as s:
        assert s.begin("2099-01-01")["protocolVersion"] == VERSIONS[0]


def test_errors_are_reported_and_the_session_continues(bundle: Path, tmp_path: Path) -> None:
    with session(tmp_path, "--from", str(bundle)) as s:
        s.begin()
        for message, code in (
            ("{no json", -32700),
            ('"a text"', -32600),
            ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
            ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
            ("[]", -32600),
            ("x" * (LONGEST + 10), -32600),
        ):
            s.send(message)
            assert s.read()["error"]["code"] == code, message[:80]
        s.send("")
        s.send({"jsonrpc": "2.0", "id": 99, "result": {}})  # nothing was asked: no answer
        s.send([{"jsonrpc": "2.0", "id": 7, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"}])
        assert s.read() == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
        assert s.ask("resources/list")["error"]["code"] == -32601
        for arguments in ({}, {"name": 3}, {"name": "c", "colour": "red"}):
            assert s.ask("tools/call", name="explain", arguments=arguments)["error"]["code"] == -32602
        assert s.ask("tools/call", name="delete", arguments={})["error"]["code"] == -32602
        failed = s.call("explain", name="nope")
        assert failed["isError"]
        assert "cluster/nope is not in the bundle" in text_of(failed)
        assert s.call("timeline", name="c", since="yesterday")["isError"]
        assert s.ask("ping")["result"] == {}


def test_a_call_can_be_cancelled_and_does_not_hold_up_others() -> None:
    async def main() -> list[Any]:
        said: list[Any] = []
        begun = asyncio.Event()

        async def slow(_: Any) -> Answer:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        tool = Tool(name="slow", title="", description="", properties={}, call=slow)
        server = Server("s", "1", "", [tool], lambda line: said.append(json.loads(line)))

        async def lines() -> Any:
            yield json.dumps({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "slow"}}).encode()
            await begun.wait()
            yield b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}'
            await asyncio.sleep(1)
            yield b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}'

        await server.serve(lines())
        return said

    assert run_virtual(main()) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


def test_a_call_that_takes_too_long_ends() -> None:
    async def main() -> list[Any]:
        said: list[Any] = []

        async def slow(_: Any) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

        tool = Tool(name="slow", title="", description="", properties={}, call=slow)
        server = Server("s", "1", "", [tool], lambda line: said.append(json.loads(line)))

        async def lines() -> Any:
            yield json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}}).encode()

        await server.serve(lines())
        return said

    (answer,) = run_virtual(main())
    assert answer["result"]["isError"]
    assert "no answer within 120 s" in answer["result"]["content"][0]["text"]


def test_a_live_plane_is_explained_with_the_callers_kubeconfig(folder: Path) -> None:
    run = run_in(folder)
    assert run("create", "live", "--worker-machines", "0", "--wait").returncode == 0
    try:
        with session(folder) as s:
            s.begin()
            assert "live" in {c["name"] for c in s.call("clusters")["structuredContent"]["clusters"]}
            explained = s.call("explain", name="live")["structuredContent"]
            assert explained["verdict"]["state"] == "fine", explained
            assert "Cluster/live" in text_of(s.call("describe", name="live"))
            assert s.call("timeline", name="live")["structuredContent"]["moments"]
            assert "not found" in text_of(s.call("explain", name="nope"))
    finally:
        run("delete", "live")


def test_standard_input_cannot_be_the_bundle_too(alone: Run) -> None:
    refused = alone("mcp", "--from", "-")
    assert refused.returncode == 2
    assert "standard input carries the requests" in refused.stderr


@pytest.mark.skipif(find_spec("mcp") is None, reason="THE OFFICIAL MCP CLIENT IS NOT INSTALLED: pip install mcp, and run this test again")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_understands_it(mode: str, bundle: Path, tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters  # type: ignore[import-not-found]
    from mcp.client.stdio import stdio_client  # type: ignore[import-not-found]

    command, *words = program()
    server = StdioServerParameters(command=command, args=[*words, "mcp", "--from", str(bundle)], env=environment(tmp_path))
    async with Client(stdio_client(server), mode=mode) as client:
        assert client.protocol_version == (STATELESS[0] if mode == "auto" else VERSIONS[0])
        assert {tool.name for tool in (await client.list_tools()).tools} == {"clusters", "explain", "describe", "timeline", "plan"}
        answer = await client.call_tool("explain", {"name": "c"})
        assert answer.structured_content["verdict"]["state"] == "broken"
        assert not answer.is_error
        assert (await client.call_tool("explain", {"name": "nope"})).is_error


def test_a_request_may_bring_its_version_along(bundle: Path, tmp_path: Path) -> None:
    def meta(version: str) -> Json:
        return {"_meta": {"io.modelcontextprotocol/protocolVersion": version}}

    with session(tmp_path, "--from", str(bundle)) as s:
        told = s.ask("server/discover", **meta(STATELESS[0]))["result"]
        assert set(told["supportedVersions"]) == {*STATELESS, *VERSIONS}
        assert told["resultType"] == "complete"
        listed = s.ask("tools/list", **meta(STATELESS[0]))["result"]
        assert (listed["resultType"], listed["ttlMs"], len(listed["tools"])) == ("complete", 0, 5)
        assert s.ask("tools/call", name="clusters", arguments={}, **meta(STATELESS[0]))["result"]["structuredContent"]["clusters"]
        refused = s.ask("tools/list", **meta("2099-01-01"))["error"]
        assert (refused["code"], refused["data"]["requested"]) == (-32022, "2099-01-01")
