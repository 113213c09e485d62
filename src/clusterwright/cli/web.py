"""`clusterwright web`: a link to the web view of the plane, or the page itself, served here with the rights of the caller's kubeconfig."""

from __future__ import annotations

import argparse
import asyncio
import signal
import webbrowser
from contextlib import AsyncExitStack
from random import SystemRandom

import msgspec
from aiohttp import web

from clusterwright.api.wire import Request
from clusterwright.cli import connect
from clusterwright.cli.errors import Failed
from clusterwright.cli.webview import page
from clusterwright.dashboard.site import PREFIX, Site
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.keys import PooledKeySource
from clusterwright.runtime.rest import RestClient

_HOST = "127.0.0.1"


def run(arguments: argparse.Namespace) -> int:
    """Print a link, and open it if asked to; return 0. A page that is served here is served until SIGTERM or SIGINT."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    async with connect.connected(connect.resolve(arguments)) as client:
        link = None if arguments.here else await _invitation(client)
        if link is not None:
            _tell(arguments, link)
            return 0
        return await _serve(arguments, client)


async def _invitation(client: RestClient) -> str | None:
    """Return a link to the page of the plane, or None if it serves none, or not to this caller."""
    answer = await client.transport.send(Request(method="POST", path=f"{PREFIX}/link"))
    try:
        return str(msgspec.json.decode(answer.body)["link"]) if answer.status == 201 else None
    except (msgspec.DecodeError, KeyError, TypeError):
        return None  # another server's answer


async def _serve(arguments: argparse.Namespace, client: RestClient) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    clock, random = SystemClock(), SystemRandom()
    async with AsyncExitStack() as stack:
        keys = PooledKeySource()
        stack.push_async_callback(keys.close)
        front = Front()
        runner = web.ServerRunner(web.Server(front.answer, access_log=None), shutdown_timeout=0.5)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        place = web.TCPSite(runner, _HOST, arguments.port)
        try:
            await place.start()
        except OSError as error:
            raise Failed(f"--port {arguments.port}: {error.strerror or error}") from None
        port = runner.addresses[0][1]
        front.open(
            page(
                stack,
                client,
                clock=clock,
                random=random,
                keys=keys,
                told=lambda link: _tell(arguments, link),
                url=f"http://{_HOST}:{port}",
                port=port,
                is_secure=False,
            ),
            port,
        )
        print("serving until Ctrl-C, with the rights of the kubeconfig", flush=True)
        await stop.wait()
    return 0


class Front:
    """A server for requests to this machine's own name only: a foreign page whose name resolves to us must not reach the web view."""

    def __init__(self) -> None:
        self._site: Site | None = None
        self._names: tuple[str, ...] = ()

    def open(self, site: Site, port: int) -> None:
        """Serve the page from now on."""
        self._site, self._names = site, (f"{_HOST}:{port}", f"localhost:{port}")

    async def answer(self, http: web.BaseRequest) -> web.StreamResponse:
        """Return the answer to a request."""
        if self._site is None or http.headers.get("Host", "") not in self._names:
            return web.Response(status=421, text="this server does not serve that name")
        if http.rel_url.raw_path == "/":
            return web.Response(status=302, headers={"Location": f"{PREFIX}/"})
        if not http.rel_url.raw_path.startswith(PREFIX):
            return web.Response(status=404, text="the page does not exist")
        return await self._site(http)


def _tell(arguments: argparse.Namespace, link: str) -> None:
    print(f"web view (this link works once): {link}", flush=True)
    if arguments.open:
        arguments.open = False  # the next link is for another browser
        webbrowser.open(link)
