"""Serve HTTP for other programs: liveness, readiness, metrics, decisions, diagnosis."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from clusterwright.runtime import diagnosis
from clusterwright.runtime.access import Gate
from clusterwright.runtime.metrics import CONTENT_TYPE, Registry
from clusterwright.runtime.traces import Report, UnknownSelector, no_report

Check = Callable[[], bool | str]
"""True, or the problem; False if there is nothing to report."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Health and readiness, for kubelets: `/healthz`, `/livez`, `/readyz`, each also by check, `/readyz/caches`; `?verbose`."""

    health: Mapping[str, Check]
    readiness: Mapping[str, Check]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """`/metrics`, `/traces` and `/debug/...`, for operators.

    /traces is JSON, `{"traces": [...]}`, oldest first, with the other fields of `report`; `?controller=`, `?kind=`,
    `?namespace=` and `?name=` select.
    """

    registry: Registry
    report: Report = no_report
    gate: Gate | None = None
    """Checks callers with the API server; None: everybody may connect. Probes are public."""


class Endpoints:
    """Serves probes, insight, or both at one address. An async context manager."""

    def __init__(
        self, host: str, port: int, *, probes: Probes | None = None, insight: Insight | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._insight = insight
        app = web.Application(middlewares=[_guarded(insight.gate)] if insight is not None and insight.gate is not None else [])
        if probes is not None:
            for path, checks in (("/healthz", probes.health), ("/livez", probes.health), ("/readyz", probes.readiness)):
                app.router.add_get(path, _answer_all(checks))
                app.router.add_get(path + "/{check}", _answer_one(checks))
        if insight is not None:
            app.router.add_get("/metrics", self._metrics)
            app.router.add_get("/traces", self._history)
            diagnosis.add_routes(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    @property
    def port(self) -> int:
        """The listening port, also if 0 was requested."""
        return int(self._runner.addresses[0][1])

    async def __aenter__(self) -> Endpoints:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls).start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        assert self._insight is not None
        return web.Response(body=self._insight.registry.render().encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _history(self, request: web.Request) -> web.Response:
        assert self._insight is not None
        try:
            body = msgspec.json.encode(self._insight.report(request.query))
        except UnknownSelector as error:
            return web.Response(text=f"{error}\n", status=400)
        return web.Response(body=body, content_type="application/json")


_PROBES = frozenset({"healthz", "livez", "readyz"})
"""The paths of kubelets, which have no token."""


def _guarded(gate: Gate) -> Middleware:
    @web.middleware
    async def guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if request.path.split("/")[1] in _PROBES:
            return await handler(request)
        refusal = await gate.refusal(request.headers.get("Authorization", ""), request.method.lower(), request.path)
        if refusal is not None:
            return web.Response(text=refusal.message + "\n", status=refusal.status)
        return await handler(request)

    return guarded


def _answer_all(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        results = {name: check() for name, check in checks.items()}
        passed = all(result is True for result in results.values())
        if passed and "verbose" not in request.query:
            return web.Response(text="ok")
        lines = [f"[{'+' if result is True else '-'}]{name} {_said(result)}" for name, result in results.items()]
        lines.append(f"{request.path.strip('/')} check {'passed' if passed else 'failed'}")
        return web.Response(text="\n".join(lines) + "\n", status=200 if passed else 500)

    return answer


def _answer_one(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        check = checks.get(request.match_info["check"])
        if check is None:
            return web.Response(text="404: Not Found", status=404)
        result = check()
        return web.Response(text=_said(result), status=200 if result is True else 500)

    return answer


def _said(result: bool | str) -> str:
    return "ok" if result is True else f"failed: {result}" if result else "failed"
