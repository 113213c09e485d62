"""No key, certificate, token, password or content of a Secret gets into a log, event, condition, exception or repr.

Every story is played once for each of its requests, with that request refused, so that every error path has its say.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.wire import Request, Response
from clusterwright.runtime.errors import ConnectionFailed

CONTENT, PASSWORD = "c0ntent-of-a-file-from-a-secret", "$6$salt$passw0rd-hash"
SPEC = {
    "files": [{"path": "/a", "contentFrom": {"secret": {"name": "s", "key": "content"}}}],
    "users": [{"name": "u", "passwdFrom": {"secret": {"name": "s", "key": "passwd"}}}],
}


async def _init(w: Any) -> str:
    await w.cluster(control_plane_ref=False)
    await w.control_plane_machine(spec=SPEC)
    return "m1"


async def _control_plane(w: Any) -> str:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.control_plane_machine(spec=SPEC | {"format": "ignition"})
    return "m1"


async def _worker(w: Any) -> str:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.worker(spec=SPEC)
    return "m1"


async def _refresh(w: Any) -> str:
    await _worker(w)
    await w.reconcile("m1")
    w.later(minutes=10)
    return "m1"


async def _rotate(w: Any) -> str:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.pool_config(spec=SPEC, replicas=1, nodes=1)
    await w.reconcile("mp1")
    w.later(minutes=10)
    return "mp1"


async def _broken_token(w: Any) -> str:
    await _worker(w)
    await w.reconcile("m1")
    token = await w.token()
    spec = {"joinConfiguration": {"discovery": {"bootstrapToken": {"token": token + "x"}}}}
    await w.judge.patch(KubeadmConfig, (await w.read()).key, {"spec": spec})
    return "m1"


async def _broken_files(w: Any) -> str:
    await w.cluster(initialized=True)
    await w.certificates()
    files = [{"path": "/a", "encoding": "base64", "contentFrom": {"secret": {"name": "s", "key": "content"}}}]
    await w.worker(spec={"format": "ignition", "files": files})
    return "m1"


async def _garbage(w: Any) -> str:
    await w.cluster(initialized=True)
    await w.secret("c1-ca", {"tls.crt": f"-----BEGIN CERTIFICATE-----\n{CONTENT}\n-----END CERTIFICATE-----\n", "tls.key": CONTENT})
    await w.worker()
    return "m1"


STORIES = [_init, _control_plane, _worker, _refresh, _rotate, _broken_token, _broken_files, _garbage]


class Nth:
    """Refuses one request: the n-th."""

    def __init__(self, inner: Any, n: int, how: str) -> None:
        self.inner, self.n, self.how, self.count = inner, n, how, 0

    async def send(self, request: Request) -> Response:
        self.count += 1
        if self.count != self.n:
            return await self.inner.send(request)
        if self.how == "lost":
            await self.inner.send(request)
            raise ConnectionFailed("no answer")
        return Response(status=500, body=b'{"kind":"Status","status":"Failure","code":500,"message":"refused"}')

    async def stream(self, request: Request) -> tuple[Response, AsyncIterator[bytes]]:
        raise NotImplementedError

    async def forward(self, request: Request, port: int) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""


async def _secrets(w: Any) -> Iterator[str]:
    """All that must not be seen anywhere."""
    found = {CONTENT, PASSWORD}
    for client in (w.judge, w.remote):
        for secret in await client.list(Secret):
            for key, value in secret.data.items():
                text = value.decode()
                if key in ("tls.crt", "tls.key"):
                    found |= {line for line in text.splitlines() if len(line) > 20 and not line.startswith("---")}
                if key == "token-secret":
                    found.add(text)
    return iter(found)


async def _play(
    new_world: Any, story: Callable[[Any], Awaitable[str]], n: int, how: str, caplog: pytest.LogCaptureFixture
) -> tuple[str, Iterator[str], int]:
    world = await new_world()
    await world.secret("s", {"content": CONTENT, "passwd": PASSWORD})
    name = await story(world)
    world.transport.inner = nth = Nth(world.transport.inner, n, how)
    said: list[str] = []
    try:
        await world.reconcile(name)
    except Exception as error:
        said += ["".join(traceback.format_exception(error)), repr(error)]
    secrets = await _secrets(world)
    config = await world.read(name)
    said += [str(world.events.seen), repr(config.status), repr(config), str(config), repr(await world.judge.list(Secret)), str(world.rows)]
    said += [repr(await world.judge.list(ConfigMap))]
    said += [f"{r.getMessage()} {r.__dict__}" for r in caplog.records]
    return "\n".join(said), secrets, nth.count


@pytest.mark.parametrize("how", ["refused", "lost"])
@pytest.mark.parametrize("story", STORIES, ids=lambda s: s.__name__.strip("_"))
async def test_no_message_contains_a_secret(
    new_world: Any, story: Callable[[Any], Awaitable[str]], how: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    n = requests = 0
    while n <= requests:
        said, secrets, count = await _play(new_world, story, n, how, caplog)
        requests = max(requests, count) if n == 0 else requests
        captured = capsys.readouterr()
        for secret in secrets:
            assert secret not in said + captured.out + captured.err, f"request {n}"
        caplog.clear()
        n += 1
    assert requests > 3
