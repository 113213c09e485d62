"""Flows and their turns: who floods the server waits behind themselves; FlowSchemas and PriorityLevelConfigurations say who that is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import aiohttp
import pytest

from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.flows import MANDATORY, Flow, Flows
from clusterwright.apiserver.identity import ADMIN, ANONYMOUS, User
from clusterwright.apiserver.requestinfo import RequestInfo, parse
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.fairness import Fairness
from clusterwright.apiserver.serving.serve import RunningServer, ServeOptions, start
from clusterwright.apiserver.status import StatusError
from support.patience import PATIENCE

BASE = "/apis/flowcontrol.apiserver.k8s.io/v1"
AUTHENTICATED = "system:authenticated"
LOUD, QUIET = User("loud", (AUTHENTICATED,)), User("quiet", (AUTHENTICATED,))
ACCOUNT = User("system:serviceaccount:apps:robot", ("system:serviceaccounts", "system:serviceaccounts:apps", AUTHENTICATED))
SYSTEM_ACCOUNT = User("system:serviceaccount:kube-system:dns", ("system:serviceaccounts", AUTHENTICATED))
NODE = User("system:node:n", ("system:nodes", AUTHENTICATED))
PODS, NODES, LEASE = (
    parse("GET", "/api/v1/namespaces/a/pods"),
    parse("GET", "/api/v1/nodes/n"),
    parse("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"),
)


def a_fairness(wait: float = 15.0) -> Fairness:
    return Fairness(ApiServer(now=lambda: datetime.now(UTC), random=Random(1)), wait)


def flow_of(fairness: Fairness, user: User, info: RequestInfo = PODS) -> Flow:
    return fairness.flows.classify(user, info)


@pytest.mark.parametrize(
    ("user", "info", "schema", "level", "distinguisher"),
    [
        (ADMIN, PODS, "exempt", "exempt", ""),
        (ANONYMOUS, parse("GET", "/readyz"), "probes", "exempt", ""),
        (ANONYMOUS, parse("GET", "/readyz/ping"), "probes", "exempt", ""),
        (ANONYMOUS, parse("GET", "/readyzz"), "global-default", "global-default", "system:anonymous"),
        (NODE, NODES, "system-node-high", "node-high", "system:node:n"),
        (NODE, PODS, "system-nodes", "system", "system:node:n"),
        (User("system:kube-scheduler", (AUTHENTICATED,)), LEASE, "system-leader-election", "leader-election", "system:kube-scheduler"),
        (User("system:kube-scheduler", (AUTHENTICATED,)), PODS, "kube-scheduler", "workload-high", "a"),
        (SYSTEM_ACCOUNT, LEASE, "system-leader-election", "leader-election", SYSTEM_ACCOUNT.name),
        (SYSTEM_ACCOUNT, PODS, "kube-system-service-accounts", "workload-high", "a"),
        (ACCOUNT, LEASE, "service-accounts", "workload-low", ACCOUNT.name),
        (LOUD, PODS, "global-default", "global-default", "loud"),
        (User("odd"), PODS, "catch-all", "catch-all", "odd"),
    ],
)
def test_a_cluster_begins_with_these_flows(user: User, info: RequestInfo, schema: str, level: str, distinguisher: str) -> None:
    found = Flows((), ()).classify(user, info)

    assert (found.schema, found.level.name, found.distinguisher) == (schema, level, distinguisher)


def a_schema(name: str, precedence: int, level: str = "global-default", **rules: Any) -> bytes:
    rule = {"subjects": [{"kind": "User", "user": {"name": "loud"}}], **rules}
    spec = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rule]}
    return json.dumps({"metadata": {"name": name, "uid": name}, "spec": spec}).encode()


EVERY_URL = {"verbs": ["*"], "nonResourceURLs": ["*"]}
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


@pytest.mark.parametrize(
    ("rule", "request_", "matches"),
    [
        (ALL, PODS, True),
        (ALL, NODES, True),
        ({**ALL, "clusterScope": False}, NODES, False),
        ({**ALL, "namespaces": ["b"]}, PODS, False),
        ({**ALL, "namespaces": ["b", "a"]}, PODS, True),
        ({**ALL, "namespaces": ["*", "b"]}, PODS, False),  # a wildcard stands alone
        ({**ALL, "verbs": ["list"]}, PODS, True),
        ({**ALL, "verbs": ["get"]}, PODS, False),
        ({**ALL, "apiGroups": [""]}, LEASE, False),
        ({**ALL, "resources": ["pods"]}, parse("GET", "/api/v1/namespaces/a/pods/p/status"), False),
        ({**ALL, "resources": ["pods/status"]}, parse("GET", "/api/v1/namespaces/a/pods/p/status"), True),
    ],
)
def test_a_rule_matches_what_it_names(rule: Json, request_: RequestInfo, matches: bool) -> None:
    found = Flows([a_schema("mine", 50, resourceRules=[rule])], ()).classify(LOUD, request_)

    assert (found.schema == "mine") is matches


def test_the_first_match_counts_and_a_schema_without_level_does_not() -> None:
    schemas = [
        a_schema("late", 60, resourceRules=[ALL]),
        a_schema("b", 50, resourceRules=[ALL]),
        a_schema("a", 50, resourceRules=[ALL]),
        a_schema("dangling", 10, "nowhere", resourceRules=[ALL]),
        b'{"metadata":{"name":"nonsense"},"spec":{"matchingPrecedence":"x"}}',
    ]

    assert Flows(schemas, ()).classify(LOUD, PODS).schema == "a"
    assert Flows(schemas[:1], ()).classify(LOUD, PODS).schema_uid == "late"


def test_seats_are_shared_by_shares() -> None:
    mine = b'{"metadata":{"name":"mine"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":245}}}'
    before, after = Flows((), ()).levels, Flows((), [mine]).levels

    assert {name: level.seats for name, level in before.items()} == {
        "exempt": None, "system": 30, "node-high": 40, "leader-election": 10, "workload-high": 40, "workload-low": 100,
        "global-default": 20, "catch-all": 5,
    }  # fmt: skip
    assert (after["mine"].seats, after["workload-low"].seats) == (123, 50)


# --------------------------------------------------------------------------------------------------------------- taking turns


async def test_a_flooding_user_only_delays_its_own_requests() -> None:
    fairness, served, release = a_fairness(), [], asyncio.Event()
    seats = fairness.flows.levels["global-default"].seats or 0

    async def ask(user: User) -> None:
        async with fairness.seat(flow_of(fairness, user)):
            served.append(user.name)
            await release.wait()

    flood = [asyncio.ensure_future(ask(LOUD)) for _ in range(seats + 25)]
    await asyncio.sleep(0)
    quiet = asyncio.ensure_future(ask(QUIET))
    await asyncio.sleep(0)
    at_once = list(served)
    release.set()
    await asyncio.gather(*flood, quiet)

    assert at_once == ["loud"] * (seats * 3 // 4) + ["quiet"], "the last seats are not for one flow alone"
    assert len(served) == seats + 26


async def test_flows_take_turns() -> None:
    fairness, served, release = a_fairness(), [], asyncio.Event()
    users = [User(f"u{n}", (AUTHENTICATED,)) for n in range(4)]

    async def ask(user: User) -> None:
        async with fairness.seat(flow_of(fairness, user)):
            served.append(user.name)
            await release.wait()

    first = [asyncio.ensure_future(ask(user)) for user in users for _ in range(15)]
    await asyncio.sleep(0)
    taken = len(served)
    release.set()
    await asyncio.gather(*first)

    assert taken == 20
    turns = served[taken:]
    assert all(len(set(turns[n : n + 3])) == 3 for n in range(9)), turns


async def test_requests_that_wait_too_long_or_are_too_many_get_retry_after() -> None:
    fairness, never = a_fairness(wait=0.1), asyncio.Event()

    async def ask(user: User) -> str:
        try:
            async with fairness.seat(flow_of(fairness, user)):
                await never.wait()
        except StatusError as error:
            return f"{error.status['code']} {error.status['message']}"
        return ""

    flood = [asyncio.ensure_future(ask(LOUD)) for _ in range(15 + 100)]
    await asyncio.sleep(0)
    at_once = [task.result() for task in flood if task.done()]
    async with asyncio.timeout(PATIENCE):
        while sum(task.done() for task in flood) < 100:  # noqa: ASYNC110 - they give up in their own time
            await asyncio.sleep(0.01)
    later = [task.result() for task in flood if task.done()]
    never.set()
    await asyncio.gather(*flood)
    said = "\n".join(fairness.metrics())

    assert set(later) == {"429 Too many requests, please try again later."}
    assert (len(at_once), len(later)) == (50, 100)
    assert 'rejected_requests_total{flow_schema="global-default",priority_level="global-default",reason="queue-full"} 50' in said
    assert 'rejected_requests_total{flow_schema="global-default",priority_level="global-default",reason="time-out"} 50' in said
    assert 'current_executing_seats{priority_level="global-default"} 0' in said
    async with asyncio.timeout(PATIENCE), fairness.seat(flow_of(fairness, QUIET)):
        pass  # every seat was given back


async def test_a_level_that_has_no_queues_refuses_at_once() -> None:
    fairness, stranger = a_fairness(), User("odd")
    held = [fairness.seat(flow_of(fairness, stranger)) for _ in range(4)]
    for seat in held:
        await seat.__aenter__()
    with pytest.raises(StatusError, match="Too many requests"):
        await fairness.seat(flow_of(fairness, stranger)).__aenter__()
    for seat in held:
        await seat.__aexit__(None, None, None)


async def test_administrators_are_exempt() -> None:
    fairness = a_fairness(wait=0.01)
    async with asyncio.timeout(PATIENCE):
        for _ in range(500):
            await fairness.seat(flow_of(fairness, ADMIN)).__aenter__()


# ---------------------------------------------------------------------------------------------------- the objects, as clients see them


@asynccontextmanager
async def served() -> AsyncIterator[RunningServer]:
    tokens = {"loud": LOUD, "quiet": QUIET}
    running = await start(ServeOptions(listen="127.0.0.1:0", tokens=tokens, now=lambda: datetime.now(UTC), random=Random(1)))
    try:
        yield running
    finally:
        await running.stop()


async def send(running: RunningServer, method: str, path: str, body: Json | None = None) -> Any:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    content = b"" if body is None else json.dumps(body).encode()
    answer = await running.server.handle(Request(method=method, path=path, headers={"content-type": media}, body=content))
    assert isinstance(answer, Response)
    return answer.status, json.loads(answer.body)


async def marks(running: RunningServer, token: str) -> tuple[str, str]:
    connector, headers = aiohttp.TCPConnector(ssl=False), {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"{running.url}/version", headers=headers) as answer:
        return answer.headers["X-Kubernetes-PF-FlowSchema-UID"], answer.headers["X-Kubernetes-PF-PriorityLevel-UID"]


MINE: Json = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "metadata": {"name": "mine"}}
MY_SCHEMA: Json = {
    **MINE,
    "kind": "FlowSchema",
    "spec": {
        "priorityLevelConfiguration": {"name": "mine"},
        "matchingPrecedence": 1000,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "loud"}}], "nonResourceRules": [EVERY_URL]}],
    },
}
MY_LEVEL: Json = {
    **MINE,
    "kind": "PriorityLevelConfiguration",
    "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}},
}


def dangling(schema: Json) -> tuple[str, str, str]:
    found = next(c for c in schema["status"]["conditions"] if c["type"] == "Dangling")
    return found["status"], found["reason"], found["message"]


async def test_a_users_own_schema_takes_effect_with_its_level() -> None:
    async with served() as running:
        _, made = await send(running, "POST", f"{BASE}/flowschemas", MY_SCHEMA)
        _, alone = await send(running, "GET", f"{BASE}/flowschemas/mine")
        before = await marks(running, "loud")
        _, level = await send(running, "POST", f"{BASE}/prioritylevelconfigurations", MY_LEVEL)
        _, whole = await send(running, "GET", f"{BASE}/flowschemas/mine")
        after, other = await marks(running, "loud"), await marks(running, "quiet")
        _, default = await send(running, "GET", f"{BASE}/flowschemas/global-default")
        metrics = await running.server.handle(Request(method="GET", path="/metrics"))
        assert isinstance(metrics, Response)

    named = 'This FlowSchema references the PriorityLevelConfiguration object named "mine"'
    assert dangling(alone) == ("True", "NotFound", f"{named} but there is no such object")
    assert dangling(whole) == ("False", "Found", f"{named} and it exists")
    assert before == other
    assert other[0] == default["metadata"]["uid"]
    assert after == (made["metadata"]["uid"], level["metadata"]["uid"])
    assert b'apiserver_flowcontrol_nominal_limit_seats{priority_level="mine"} 1' in metrics.body


async def test_built_in_flow_objects_are_restored_and_only_suggested_ones_can_be_changed() -> None:
    async with served() as running:
        _, listed = await send(running, "GET", f"{BASE}/flowschemas")
        _, levels = await send(running, "GET", f"{BASE}/prioritylevelconfigurations")
        assert (await send(running, "DELETE", f"{BASE}/flowschemas/catch-all"))[0] == 200
        assert (await send(running, "DELETE", f"{BASE}/flowschemas/probes"))[0] == 200
        back = [(await send(running, "GET", f"{BASE}/flowschemas/{name}"))[0] for name in ("catch-all", "probes")]
        specs = []
        for name, annotation in (("global-default", "true"), ("global-default", "false"), ("exempt", "false")):
            change = {"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": annotation}}, "spec": {"matchingPrecedence": 77}}
            await send(running, "PATCH", f"{BASE}/flowschemas/{name}", change)
            specs.append((await send(running, "GET", f"{BASE}/flowschemas/{name}"))[1]["spec"]["matchingPrecedence"])

    assert {o["metadata"]["name"] for o in levels["items"]} > MANDATORY
    assert {dangling(o)[0] for o in listed["items"]} == {"False"}
    assert len(listed["items"]) == 11
    assert back == [200, 200]
    assert specs == [9900, 77, 1]


def schema_with(**spec: Any) -> Json:
    return {**MY_SCHEMA, "spec": {**MY_SCHEMA["spec"], **spec}}


def rule_with(**rule: Any) -> Json:
    return schema_with(rules=[{**MY_SCHEMA["spec"]["rules"][0], **rule}])


def level_with(**limited: Any) -> Json:
    return {**MY_LEVEL, "spec": {"type": "Limited", "limited": {**MY_LEVEL["spec"]["limited"], **limited}}}


def queuing(**given: int) -> Json:
    return {"type": "Queue", "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50, **given}}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (schema_with(matchingPrecedence=-1), "spec.matchingPrecedence: Invalid value: -1: must be a positive value"),
        (schema_with(matchingPrecedence=10_001), "must not be greater than 10000"),
        (schema_with(matchingPrecedence=1), "only the schema named 'exempt' may have matchingPrecedence 1"),
        (schema_with(distinguisherMethod={"type": "ByMoon"}), 'supported values: "ByNamespace", "ByUser"'),
        (
            schema_with(priorityLevelConfiguration={"name": ""}),
            "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
        ),
        (schema_with(priorityLevelConfiguration={"name": "A_b"}), "spec.priorityLevelConfiguration.name: Invalid value"),
        (rule_with(subjects=[]), "spec.rules[0].subjects: Required value: subjects must contain at least one value"),
        (
            rule_with(nonResourceRules=[]),
            "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
        ),
        (rule_with(subjects=[{"kind": "User"}]), "subjects[0].user: Required value: user is required when subject kind is 'User'"),
        (rule_with(subjects=[{"kind": "Moon"}]), 'subjects[0].kind: Unsupported value: "Moon"'),
        (
            rule_with(subjects=[{"kind": "User", "user": {"name": "a"}, "group": {"name": "b"}}]),
            "subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        ),
        (rule_with(subjects=[{"kind": "ServiceAccount", "serviceAccount": {"name": "*"}}]), "must specify namespace for service account"),
        (rule_with(resourceRules=[{**ALL, "verbs": ["*", "get"]}]), "if '*' is present, must not specify other verbs"),
        (rule_with(resourceRules=[{**ALL, "verbs": ["sing"]}]), "resourceRules[0].verbs: Unsupported value"),
        (rule_with(resourceRules=[{**ALL, "apiGroups": []}]), "resource rules must supply at least one api group"),
        (
            rule_with(resourceRules=[{**ALL, "namespaces": [], "clusterScope": False}]),
            "that are not cluster scoped must supply at least one namespace",
        ),
        (rule_with(resourceRules=[{**ALL, "namespaces": ["A"]}]), "each member of this list must be '*' or a DNS-1123 label"),
        (rule_with(nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": ["version"]}]), "must start with slash"),
        (rule_with(nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": ["/a*"]}]), "wildcard can only do suffix matching"),
        ({**MY_LEVEL, "spec": {"type": "Exempt"}}, "must be 'Exempt' if and only if `name` is 'exempt'"),
        ({**MY_LEVEL, "spec": {"type": "Limited"}}, "spec.limited: Required value: must not be empty when type is Limited"),
        ({**MY_LEVEL, "spec": {"type": "Moon"}}, 'spec.type: Unsupported value: "Moon"'),
        (
            level_with(nominalConcurrencyShares=-1),
            "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
        ),
        (level_with(lendablePercent=101), "must be between 0 and 100, inclusive"),
        (level_with(limitResponse={"type": "Queue"}), "spec.limited.limitResponse.queuing: Required value"),
        (level_with(limitResponse=queuing(handSize=65)), "should not be greater than queues (64)"),
        (
            level_with(limitResponse=queuing(handSize=11)),
            "required entropy bits of deckSize 64 and handSize 11 should not be greater than 60",
        ),
        (level_with(limitResponse=queuing(queues=-1)), "queuing.queues: Invalid value: -1: must be positive"),
    ],
)
async def test_invalid_flow_objects_are_refused_with_field_and_rule(obj: Json, said: str) -> None:
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1))
    path = f"{BASE}/{obj['kind'].lower()}s"
    answer = await server.handle(
        Request(method="POST", path=path, headers={"content-type": "application/json"}, body=json.dumps(obj).encode())
    )

    assert isinstance(answer, Response)
    assert answer.status == 422, answer.body
    assert said in json.loads(answer.body)["message"]


async def test_the_mandatory_ones_are_as_they_are() -> None:
    async with served() as running:
        precedence = await send(running, "PATCH", f"{BASE}/flowschemas/catch-all", {"spec": {"matchingPrecedence": 9}})
        shares = {"spec": {"limited": {"nominalConcurrencyShares": 9}}}
        level = await send(running, "PATCH", f"{BASE}/prioritylevelconfigurations/catch-all", shares)
        touched = await send(running, "PATCH", f"{BASE}/flowschemas/catch-all", {"metadata": {"labels": {"a": "b"}}})

    for status, answer in (precedence, level):
        assert status == 422
        assert "spec of 'catch-all' must equal the fixed value" in answer["message"]
    assert touched[0] == 200
