"""Logs, metrics, endpoints, traces, keys."""

import asyncio
import io
import logging
from random import Random

import aiohttp
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from clusterwright.api.meta import ObjectKey
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime import logging as structured
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.endpoints import Endpoints, Insight
from clusterwright.runtime.errors import NotFound
from clusterwright.runtime.keys import FixedKeySource, PooledKeySource, generate
from clusterwright.runtime.manager import Manager, Options
from clusterwright.runtime.metrics import Counter, Gauge, Histogram, Registry
from clusterwright.runtime.reconcile import Result
from clusterwright.runtime.traces import Traces
from clusterwright.runtime.tracing import OpenTelemetryTracer
from clusterwright.simulation.sample import Parent
from support.patience import PATIENCE


@pytest.fixture
def log_lines():
    root = logging.getLogger(structured.ROOT)
    before = root.handlers[:], root.level, root.propagate

    def start(form):
        stream = io.StringIO()
        structured.configure(form, "DEBUG", stream)
        return lambda: stream.getvalue().splitlines()

    yield start
    root.handlers[:], root.level, root.propagate = before


def test_json_logs_have_fields_and_bound_fields(log_lines):
    lines = log_lines("json")
    log = structured.get_logger("test", controller="cluster")
    with structured.bound(name="c1"):
        log.info("Reconciled", row="cp-missing", seconds=1.5)
    log.error("Failed", cause=NotFound("not there", {"code": 404}))

    first, second = (msgspec.json.decode(line) for line in lines())
    assert (first["msg"], first["controller"], first["name"], first["row"], first["seconds"]) == (
        "Reconciled",
        "cluster",
        "c1",
        "cp-missing",
        1.5,
    )
    assert (second["error"], "name" in second, "stacktrace" in second) == ("NotFound: not there", False, False)


def test_unexpected_errors_have_a_stack_trace_and_text_logs_stay_on_one_line(log_lines):
    lines = log_lines("text")
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        structured.get_logger("test").error("Failed", cause=error)

    (line,) = lines()
    assert "Failed" in line
    assert "stacktrace=" in line
    assert "test_observability" in line


SECRETS = [
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIEow cut off",
    "token abcdef.0123456789abcdef",
    "Authorization: Bearer sesame-open.xyz",
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl",
    "https://ada:hunter2@proxy:3128/",
]


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("secret", SECRETS)
def test_anything_like_a_secret_is_redacted_everywhere(log_lines, form, secret):
    lines = log_lines(form)
    log = structured.get_logger("test")
    log.info(f"said {secret}", field=secret)
    try:
        raise RuntimeError(secret)
    except RuntimeError as error:
        log.error("Failed", cause=error)

    text = "\n".join(lines())
    for part in ("MIIEow", "0123456789abcdef", "sesame", "c2lnbmF0dXJl", "hunter2"):
        assert part not in text
    assert "<redacted>" in text


def test_metrics_in_prometheus_text():
    registry = Registry()
    counter = registry.add(Counter("requests_total", "All of them", ["verb"]))
    counter.add("GET")
    counter.add("GET", by=2)
    registry.add(Gauge("depth", "How deep")).set(lambda: 4.5)
    histogram = registry.add(Histogram("seconds", "How long", ["name"], buckets=[0.1, 1]))
    for value in (0.1, 0.5, 7):
        histogram.observe(value, 'a"b\\c\nd')

    assert registry.render().splitlines() == [
        "# HELP depth How deep",
        "# TYPE depth gauge",
        "depth 4.5",
        "# HELP requests_total All of them",
        "# TYPE requests_total counter",
        'requests_total{verb="GET"} 3',
        "# HELP seconds How long",
        "# TYPE seconds histogram",
        'seconds_bucket{name="a\\"b\\\\c\\nd",le="0.1"} 1',
        'seconds_bucket{name="a\\"b\\\\c\\nd",le="1"} 2',
        'seconds_bucket{name="a\\"b\\\\c\\nd",le="+Inf"} 3',
        'seconds_sum{name="a\\"b\\\\c\\nd"} 7.6',
        'seconds_count{name="a\\"b\\\\c\\nd"} 3',
    ]
    with pytest.raises(ValueError, match="another type"):
        registry.add(Gauge("requests_total", ""))


class Nothing:
    async def reconcile(self, key):
        return Result.await_change()


async def test_health_readiness_and_metrics_are_served(world):
    manager = Manager(
        InProcessTransport(world.server),
        clock=SystemClock(),
        random=Random(1),
        options=Options(health_port=0, health_guarded=False, tracing=True),
    )
    manager.add_controller("parent", Parent, lambda controller: Nothing())
    reconciled = asyncio.Event()

    class Once:
        async def reconcile(self, key):
            reconciled.set()
            return Result.await_change()

    manager.add_controller("once", Parent, lambda controller: Once())
    await world.make()
    task = asyncio.ensure_future(manager.run())
    async with asyncio.timeout(PATIENCE):
        await reconciled.wait()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{manager.endpoints.port}") as session:

        async def get(path):
            async with session.get(path) as response:
                return response.status, await response.text()

        assert await get("/healthz") == (200, "ok")
        assert await get("/readyz") == (200, "ok")
        assert await get("/readyz/caches") == (200, "ok")
        assert (await get("/readyz/nothing"))[0] == 404
        assert "[+]caches ok" in (await get("/readyz?verbose"))[1]
        status, metrics = await get("/metrics")
        assert status == 200
        assert 'controller_runtime_reconcile_total{controller="once",result="success"} 1' in metrics
        assert 'workqueue_depth{name="once",controller="once"} 0' in metrics
        assert 'rest_client_requests_total{verb="WATCH",code="200"} 1' in metrics
        assert 'clusterwright_cache_objects{kind="Parent"} 1' in metrics
    manager.stop()
    await task


async def test_not_ready_before_the_caches_are_filled(world):
    asked = asyncio.Event()

    async def hang(request):
        asked.set()
        await asyncio.Event().wait()

    world.transport.before = hang
    manager = Manager(world.transport, clock=SystemClock(), random=Random(1), options=Options(health_port=0, health_guarded=False))
    manager.add_controller("parent", Parent, lambda controller: Nothing())
    task = asyncio.ensure_future(manager.run())
    await asked.wait()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{manager.endpoints.port}") as session:
        async with session.get("/readyz") as response:
            assert response.status == 500
            assert "failed" in await response.text()
        async with session.get("/healthz") as response:
            assert response.status == 200
    task.cancel()
    await asyncio.wait([task])


def test_spans_need_no_sdk():
    with OpenTelemetryTracer("test").span("reconcile", key="a/b"):
        pass


def test_traces_keep_what_changed(world_clock):
    traces = Traces(world_clock, objects=2, changes=2)
    key = ObjectKey("ns", "a")
    for row in ("zero", "one", "one", "two"):
        traces.record("cluster", "Cluster", key, {"Available": row})

    assert [(d.rows["Available"], d.passes) for d in traces.history(name="a")] == [("one", 2), ("two", 1)]
    assert traces.latest("cluster", key).rows == {"Available": "two"}
    assert traces.history(kind="Machine") == []
    for n in range(5):
        traces.record("cluster", "Cluster", ObjectKey("ns", str(n)), {})
    assert traces.latest("cluster", key) is None


async def test_traces_are_served(world_clock):
    traces = Traces(world_clock)
    traces.record("cluster", "Cluster", ObjectKey("ns", "c"), {"Available": "issues"})
    traces.record("machine", "Machine", ObjectKey("ns", "m"), {"Ready": "summary"})
    async with (
        Endpoints(
            "127.0.0.1", 0, insight=Insight(registry=Registry(), report=lambda query: {"traces": traces.selected(query)})
        ) as endpoints,
        aiohttp.ClientSession(f"http://127.0.0.1:{endpoints.port}") as session,
    ):

        async def get(query):
            async with session.get(f"/traces{query}") as response:
                return response.status, await (response.json() if response.status == 200 else response.text())

        status, found = await get("?kind=Machine&namespace=ns&name=m")
        everything = await get("")
        refused = await get("?who=me")

    assert (status, [(d["name"], d["rows"], d["passes"]) for d in found["traces"]]) == (200, [("m", {"Ready": "summary"}, 1)])
    assert [d["kind"] for d in everything[1]["traces"]] == ["Cluster", "Machine"]
    assert refused == (400, "who: unknown; known: cluster, controller, kind, name, namespace, only\n")


@pytest.fixture
def world_clock():
    from .conftest import SteadyClock

    return SteadyClock()


@pytest.mark.parametrize(
    ("algorithm", "kind", "size"),
    [("RSA-2048", RSAPrivateKey, 2048), ("RSA-3072", RSAPrivateKey, 3072), ("RSA-4096", RSAPrivateKey, 4096),
     ("ECDSA-P256", EllipticCurvePrivateKey, 256), ("ECDSA-P384", EllipticCurvePrivateKey, 384)],
)  # fmt: skip
async def test_fixed_keys_are_the_same_for_the_same_seed(algorithm, kind, size):
    async def numbers(seed):
        source = FixedKeySource(seed)
        keys = [await source.new_key(algorithm) for _ in range(2)]
        assert all(isinstance(key, kind) and key.key_size == size for key in keys)
        return [key.private_numbers() for key in keys]

    first, again = await numbers(1), await numbers(1)
    assert first == again
    assert first[0] != first[1]
    if algorithm.startswith("ECDSA"):
        assert await numbers(2) != first


async def test_an_unknown_algorithm_is_refused():
    for make in (FixedKeySource().new_key, PooledKeySource().new_key):
        with pytest.raises(ValueError, match="unknown key algorithm"):
            await make("DSA")
    with pytest.raises(ValueError, match="unknown key algorithm"):
        generate("DSA")


async def test_pooled_keys_are_all_different_and_the_loop_goes_on_meanwhile():
    source = PooledKeySource(stock=2)
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.ensure_future(tick())
    keys = await asyncio.gather(*(source.new_key("RSA-2048") for _ in range(4)))
    assert len({key.private_numbers().p for key in keys}) == 4
    assert ticks > 5
    ticking.cancel()
    await source.close()
