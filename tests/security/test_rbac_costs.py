"""Comparing and reading RBAC rules takes bounded work, and gives the answer of comparing every single permission."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.apiserver_testing import Clock
from clusterwright.api.meta import Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.auth import escalation, rbac, rules
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.auth.rules import Held, Rule, Uncomparable
from clusterwright.apiserver.identity import ADMIN, User
from clusterwright.apiserver.server import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
ALICE = User("alice", ("system:authenticated",))


def parts(rule: Rule) -> Iterator[Rule]:
    for verb in rule.verbs:
        for group in rule.api_groups:
            for resource in rule.resources:
                if not rule.resource_names:
                    yield Rule((verb,), (group,), (resource,))
                yield from (Rule((verb,), (group,), (resource,), (name,)) for name in rule.resource_names)
        yield from (Rule((verb,), non_resource_urls=(url,)) for url in rule.non_resource_urls)


def resource_covers(owner: tuple[str, ...], wanted: str) -> bool:
    return wanted in owner or "*" in owner or ("/" in wanted and f"*/{wanted.split('/', 1)[1]}" in owner)


def covers(owner: Rule, part: Rule) -> bool:
    """As Kubernetes compares a held rule with a single permission."""
    return (
        all(v in owner.verbs or "*" in owner.verbs for v in part.verbs)
        and all(g in owner.api_groups or "*" in owner.api_groups for g in part.api_groups)
        and all(resource_covers(owner.resources, r) for r in part.resources)
        and (not owner.resource_names or (bool(part.resource_names) and set(part.resource_names) <= set(owner.resource_names)))
        and all(
            any(u == o or (o.endswith("*") and u.startswith(o.rstrip("*"))) for o in owner.non_resource_urls)
            for u in part.non_resource_urls
        )
    )


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=3).map(tuple)


RULES = st.lists(
    st.builds(
        Rule,
        verbs=some("get", "list", "watch", "*"),
        api_groups=some("", "apps", "*"),
        resources=some("pods", "pods/log", "nodes/log", "*/log", "*/", "a/b/c", "*/b/c", "*"),
        resource_names=some("", "x", "y", "*"),
        non_resource_urls=some("/a", "/a/b", "/a/*", "/a**", "*", "/"),
    ),
    max_size=5,
)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(RULES, RULES)
def test_the_missing_permissions_are_those_of_single_comparisons(held: list[Rule], wanted: list[Rule]) -> None:
    found, count = Held(held).missing(wanted)

    naive = [part for rule in wanted for part in parts(rule) if not any(covers(h, part) for h in held)]
    assert set(found) == set(naive)
    assert count >= len(set(naive))
    assert rules.shown(found) == rules.shown(naive)


def test_rules_that_cover_only_together_cover() -> None:
    wanted = Rule(("get", "list"), ("", "apps"), ("pods", "pods/log"))
    held = [Rule(("get",), ("*",), ("pods", "*/log")), Rule(("list",), ("",), ("*",)), Rule(("list",), ("apps",), ("pods", "pods/log"))]

    assert Held(held).missing([wanted]) == ([], 0)
    assert Held(held[:2]).missing([wanted])[1] == 2


def test_entangled_rules_are_refused_after_a_bounded_number_of_steps() -> None:
    random, many = Random(1), tuple(str(n) for n in range(60))

    def half() -> tuple[str, ...]:
        return tuple(v for v in many if random.random() < 0.5)

    held = [Rule(half(), half(), half()) for _ in range(200)]
    begun = time.thread_time()

    with pytest.raises(Uncomparable):
        Held(held).missing([Rule(many, many, many)])
    assert time.thread_time() - begun < 2.0


# ----------------------------------------------------------------------------------------------- through the server


class Api:
    def __init__(self) -> None:
        self.server = ApiServer(now=Clock(), random=Random(1), authorizer=RbacAuthorizer())
        self.server.ensure(bootstrap_roles())

    async def __call__(self, method: str, path: str, body: Any = None, user: User = ADMIN) -> tuple[int, Json]:
        content = json.dumps(body).encode() if body is not None else b""
        answer = await self.server.handle(
            Request(method=method, path=path, body=content, headers={"content-type": "application/json"}), user
        )
        assert isinstance(answer, Response)
        return answer.status, json.loads(answer.body)


def role(name: str, *of: Json) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(of)}


def binding(name: str, role: str, users: Iterable[str], kind: str = "Role") -> Json:
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": user} for user in users]
    ref = {"kind": kind, "apiGroup": GROUP, "name": role}
    return {"apiVersion": f"{GROUP}/v1", "kind": "RoleBinding", "metadata": {"name": name}, "roleRef": ref, "subjects": subjects}


@pytest.mark.parametrize("length", [45, 2400])
async def test_a_role_of_many_permissions_costs_little_to_refuse(length: int) -> None:
    api = Api()
    await api("POST", BINDINGS, binding("admin", "admin", ["alice"], "ClusterRole"))
    lists = {field: [f"{field}{n}" for n in range(length)] for field in ("verbs", "apiGroups", "resources", "resourceNames")}
    begun = time.thread_time()

    status, answer = await api("POST", ROLES, role("bomb", lists), ALICE)

    assert time.thread_time() - begun < 1.0  # 28 seconds when every permission was compared
    assert status == 403
    assert f"and {length**4 - rules.SHOWN} more" in answer["message"]
    assert len(answer["message"]) < 300_000


async def test_a_refusal_stays_short_however_long_the_words_are() -> None:
    api = Api()
    await api("POST", BINDINGS, binding("admin", "admin", ["alice"], "ClusterRole"))
    rule = {"verbs": [f"v{n}" for n in range(500)], "apiGroups": ["x" * 1_000_000], "resources": [f"r{n}" for n in range(50)]}

    status, answer = await api("POST", ROLES, role("long", rule), ALICE)

    assert status == 403
    assert len(answer["message"]) < 3_000_000


async def test_a_role_has_a_largest_size_and_a_stored_one_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api()
    large = role("large", {"verbs": ["get"], "apiGroups": [""], "resources": [f"r{n}" for n in range(escalation.ENTRIES)]})

    status, answer = await api("POST", ROLES, large)

    assert status == 422
    assert answer["message"].startswith('Role.rbac.authorization.k8s.io "large" is invalid: rules: Too many: 10002: the lists of all rules')
    with monkeypatch.context() as before:
        before.setattr(escalation, "ENTRIES", 20_000)
        assert (await api("POST", ROLES, large))[0] == 201
    large["metadata"]["labels"] = {"a": "b"}
    assert (await api("PUT", f"{ROLES}/large", large))[0] == 200
    large["rules"][0]["resources"].append("more")
    assert (await api("PUT", f"{ROLES}/large", large))[0] == 422


async def test_a_binding_has_a_largest_number_of_subjects_and_a_stored_one_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api()
    large = binding("large", "view", [f"u{n}" for n in range(escalation.SUBJECTS + 1)], "ClusterRole")

    status, answer = await api("POST", BINDINGS, large)

    assert status == 422
    assert "subjects: Too many: 1001: must have at most 1000 items" in answer["message"]
    with monkeypatch.context() as before:
        before.setattr(escalation, "SUBJECTS", 2000)
        assert (await api("POST", BINDINGS, large))[0] == 201
    large["subjects"].pop()
    assert (await api("PUT", f"{BINDINGS}/large", large))[0] == 200
    assert (await api("GET", "/api/v1/namespaces/default/pods", user=User("u7")))[0] == 200


async def test_a_change_of_a_binding_decodes_that_binding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api()
    for number in range(20):
        await api("POST", BINDINGS, binding(f"b{number}", "view", [f"u{n}" for n in range(50)], "ClusterRole"))
    assert (await api("GET", "/api/v1/namespaces/default/pods", user=User("u7")))[0] == 200
    decoded: list[bytes] = []

    class Decoder:
        def decode(self, raw: bytes) -> Any:
            decoded.append(raw)
            return decode(raw)

    decode = rbac._binding.decode
    monkeypatch.setattr(rbac, "_binding", Decoder())
    for number in range(10):
        await api("POST", BINDINGS, binding(f"new{number}", "view", ["bob"], "ClusterRole"))
        assert (await api("GET", "/api/v1/namespaces/default/pods", user=User("u7")))[0] == 200

    assert len(decoded) == 10


async def test_grants_follow_every_change_of_roles_and_bindings() -> None:
    api, pods = Api(), "/api/v1/namespaces/default/pods"

    async def may() -> bool:
        return (await api("GET", pods, user=ALICE))[0] == 200

    pod_reader = {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}
    seen = [await may()]
    await api("POST", BINDINGS, binding("b", "reader", ["alice"]))
    seen.append(await may())
    await api("POST", ROLES, role("reader", pod_reader))
    seen.append(await may())
    await api("PUT", f"{ROLES}/reader", role("reader", {**pod_reader, "resources": ["nodes"]}))
    seen.append(await may())
    await api("PUT", f"{ROLES}/reader", role("reader", pod_reader))
    await api("PUT", f"{BINDINGS}/b", binding("b", "reader", ["bob", "alice"]))
    seen.append(await may())
    await api("PUT", f"{BINDINGS}/b", binding("b", "reader", ["bob"]))
    seen.append(await may())
    await api("PUT", f"{BINDINGS}/b", binding("b", "reader", ["alice"]))
    seen.append(await may())
    await api("DELETE", f"{BINDINGS}/b")
    seen.append(await may())

    assert seen == [False, False, True, False, True, False, True, False]


async def test_grants_are_right_after_more_changes_than_the_history_holds() -> None:
    api, pods = Api(), "/api/v1/namespaces/default/pods"
    assert (await api("GET", pods, user=ALICE))[0] == 403
    table = api.server.store.table(f"rolebindings.{GROUP}")
    table.limit = 5
    for number in range(20):
        await api("POST", BINDINGS, binding(f"b{number}", "view", [f"u{number}"], "ClusterRole"))

    assert [(await api("GET", pods, user=User(f"u{n}")))[0] for n in range(20)] == [200] * 20
    await api("DELETE", f"{BINDINGS}/b3")
    assert (await api("GET", pods, user=User("u3")))[0] == 403
