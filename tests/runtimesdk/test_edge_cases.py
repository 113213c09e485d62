"""ExtensionConfigs, the registry and the client at their edges."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.api.runtime import ExtensionConfig
from clusterwright.controllers.extensionconfig.build import CONTROLLER, configs_of_secret
from clusterwright.offline.bundle import assemble
from clusterwright.offline.world import World
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtimesdk.client import RuntimeClient, url_of
from clusterwright.runtimesdk.registry import Registry, handlers_of
from clusterwright.topology.extensions import CallAll, CallHandler, ExtensionError, ListHandlers
from support.certificates import self_signed
from support.extension import HOOKS, extension_config

KEY = ObjectKey("", "ext")
URL = "https://ext.example.com"
DISCOVERY = f"{URL}/{HOOKS}/discovery"
INJECT = "runtime.cluster.x-k8s.io/inject-ca-from-secret"
NOT_PAUSED = {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "observedGeneration": 1}
CLUSTER = {"metadata": {"name": "c", "namespace": "ns"}}


def handler(name: str, hook: str = "BeforeClusterUpgrade", **more: Any) -> dict[str, Any]:
    return {"name": name, "requestHook": {"apiVersion": HOOKS, "hook": hook}, **more}


def found(*handlers: dict[str, Any]) -> dict[str, Any]:
    return {"code": 200, "body": {"status": "Success", "handlers": list(handlers)}}


def secret(data: Mapping[str, str], name: str = "ca") -> dict[str, Any]:
    encoded = {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ns"}, "data": encoded}


class Passes:
    """Passes over one ExtensionConfig, which is not registered yet; `server` is what discovery answers from now on."""

    def __init__(self, *objects: dict[str, Any], server: dict[str, Any], config: dict[str, Any] | None = None, inject: str | None = None):
        made = config or extension_config("ext", URL)
        made["metadata"] |= {"generation": 1, "annotations": {INJECT: inject} if inject is not None else {}}
        made["status"]["conditions"] = [NOT_PAUSED]
        servers = {DISCOVERY: server}
        observation = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "extensionServers": servers}
        self.world = World(assemble([made, *objects, observation]), datetime(2026, 5, 1, tzinfo=UTC), sample_keys())
        self.reconciler = CONTROLLER.make(self.world.dependencies())
        self.registry = self.world.extensions.registry

    async def run(self) -> str:
        """One pass; the error, if it failed."""
        try:
            await self.world.reports.complete(self.reconciler, KEY)
        except ApiError as error:
            return str(error)
        return ""

    def answer(self, server: dict[str, Any]) -> None:
        world = World(
            assemble([{"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "extensionServers": {DISCOVERY: server}}]),
            datetime(2026, 5, 1, tzinfo=UTC),
            sample_keys(),
        )
        self.world.canned._servers = world.canned._servers

    async def config(self) -> ExtensionConfig:
        return await self.world.client.get(ExtensionConfig, KEY)

    async def discovered(self) -> tuple[str, str, int]:
        (condition,) = [c for c in (await self.config()).status.conditions if c.type == "Discovered"]
        return condition.status, condition.message, condition.observed_generation


# ---------------------------------------------------------------------------------------------------------- the CA


async def test_a_secret_that_comes_later_wakes_the_config_and_is_taken_over() -> None:
    p = Passes(server=found(handler("h")), inject="ns/ca")
    first = await p.run()
    assert 'failed to get secret "ns/ca"' in first
    assert await p.discovered() == ("False", f"Error in discovery: {first.removeprefix('failed to reconcile ExtensionConfig: ')}", 1)

    bundle = self_signed()[1]
    created = await p.world.client.create(secret({"ca.crt": bundle.decode()}))
    woken = await configs_of_secret(created, p.world.client)  # type: ignore[arg-type]
    assert (list(woken), await p.run()) == ([KEY], "")
    assert ((await p.config()).spec.client_config.ca_bundle, p.registry.names) == (bundle, ("h.ext",))


async def test_a_new_ca_is_of_the_generation_that_the_conditions_speak_of() -> None:
    one, two = self_signed("one")[1], self_signed("two")[1]
    p = Passes(secret({"ca.crt": one.decode()}), server=found(handler("h")), inject="ns/ca")
    await p.run()
    before = (await p.config()).metadata.generation
    await p.world.client.patch(Secret, ObjectKey("ns", "ca"), {"data": {"ca.crt": base64.b64encode(two).decode()}})
    await p.run()
    config = await p.config()

    assert (config.spec.client_config.ca_bundle, config.metadata.generation) == (two, before + 1)
    assert await p.discovered() == ("True", "", before + 1)
    assert p.registry.get("h.ext").client_config["caBundle"] == base64.b64encode(two).decode(), "calls use it from now on"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((v, f'secret name "{v}" must be in the form <namespace>/<name>') for v in ("ext-cert", "/ext-cert", "ext-ns/", "")),
        ("a/b/c", 'failed to get secret "a/b/c"'),
    ],
)
async def test_an_annotation_that_does_not_name_a_secret_is_an_error(value: str, text: str) -> None:
    p = Passes(server=found(handler("h")), inject=value)

    assert text in await p.run()
    assert p.world.canned.calls == [], "nobody is asked"


async def test_an_empty_ca_empties_the_bundle() -> None:
    config = extension_config("ext", URL, base64.b64encode(b"old").decode())
    p = Passes(secret({"ca.crt": ""}), server=found(handler("h")), config=config, inject="ns/ca")

    assert await p.run() == ""
    assert (await p.config()).spec.client_config.ca_bundle == b""


# --------------------------------------------------------------------------------------------------------- discovery


@pytest.mark.parametrize(
    ("client_config", "url"),
    [
        ({"url": "https://u", "service": {"name": "s", "namespace": "n", "port": 9}}, f"https://s.n.svc:9/{HOOKS}/x/h?timeout=10s"),
        ({"url": "https://h/base/../x"}, f"https://h/x/{HOOKS}/x/h?timeout=10s"),
        ({"url": "https://h?x=1"}, f"https://h/{HOOKS}/x/h?timeout=10s&x=1"),
        ({"url": "https://h?z=1&a=2"}, f"https://h/{HOOKS}/x/h?a=2&timeout=10s&z=1"),
    ],
)
def test_a_handler_is_called_at_its_path(client_config: dict[str, Any], url: str) -> None:
    config = extension_config("ext", "", "", {"h": "X"}, spec={"clientConfig": client_config})

    assert url_of(handlers_of(config)[0]) == url


@pytest.mark.parametrize("code", [204, 301, 404, 503])
async def test_a_status_code_other_than_200_is_reported_with_the_body(code: int) -> None:
    p = Passes(server={"code": code, "text": 'say "no"\n'})
    await p.run()

    text = rf'failed to discover extension "ext": http call failed: got response with status code {code} != 200: response : "say \"no\"\n"'
    assert await p.discovered() == ("False", f"Error in discovery: {text}", 1)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        *((body, 'got unknown response status ""') for body in ("null", "{}", '{"status": null}')),
        ('{"status": "success"}', 'got unknown response status "success"'),
        *((body, "http call failed: failed to decode response") for body in ("[]", '"x"', "", "{")),
        ('{"status": "Failure", "message": "no quota left"}', "got failure response with message: no quota left"),
    ],
)
async def test_a_body_that_does_not_say_success_is_a_failure(body: str, text: str) -> None:
    p = Passes(server={"code": 200, "text": body})
    error = await p.run()

    assert text in error
    assert p.registry.names == ()


async def test_all_faults_are_reported_once() -> None:
    thrice = Passes(server=found(*[handler("h")] * 3))
    await thrice.run()
    assert (await thrice.discovered())[1].endswith("failed to validate discovery response: duplicate name for handler h found")

    wrong = {"timeoutSeconds": 31, "failurePolicy": "Maybe", "requestHook": {"apiVersion": HOOKS, "hook": "Nothing"}}
    four = Passes(server=found({**handler("UPPER"), **wrong}))
    await four.run()
    message = (await four.discovered())[1]
    listed = message.partition("failed to validate discovery response: ")[2]
    assert listed.startswith("[handler name UPPER is not valid: [")
    assert "handler UPPER timeoutSeconds 31 must be between 0 and 30, " in listed
    assert 'handler UPPER failurePolicy Maybe must equal "Ignore" or "Fail", ' in listed
    assert listed.endswith(f"handler UPPER requestHook {HOOKS}/Nothing is not in the Runtime SDK catalog]")


async def test_a_handler_of_discovery_itself_is_accepted() -> None:
    p = Passes(server=found(handler("h", "Discovery")))

    assert (await p.run(), p.registry.names) == ("", ("h.ext",))


async def test_handlers_that_vanish_are_called_no_more() -> None:
    p = Passes(server=found(handler("a"), handler("b")))
    seen = []
    for server in (found(handler("a"), handler("b")), found(handler("b")), found()):
        p.answer(server)
        await p.run()
        seen.append((list(p.registry.names), [h.name for h in (await p.config()).status.handlers], (await p.discovered())[0]))

    assert seen == [(["a.ext", "b.ext"], ["a.ext", "b.ext"], "True"), (["b.ext"], ["b.ext"], "True"), ([], [], "True")]


async def test_an_extension_that_fails_later_stays_registered() -> None:
    p = Passes(server=found(handler("h")))
    await p.run()
    p.answer({"error": "connection refused"})
    assert "connection refused" in await p.run()

    assert (await p.discovered())[0] == "False"
    assert (p.registry.names, [h.name for h in (await p.config()).status.handlers]) == (("h.ext",), ["h.ext"])


async def test_a_paused_extension_stays_registered_and_a_deleted_one_does_not() -> None:
    p = Passes(server=found(handler("h")))
    await p.run()
    await p.world.client.patch(
        ExtensionConfig, KEY, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}, "finalizers": ["example.com/stay"]}}
    )
    calls = len(p.world.canned.calls)
    await p.run()
    assert (p.registry.names, len(p.world.canned.calls)) == (("h.ext",), calls)

    await p.world.client.delete(ExtensionConfig, KEY)
    await p.run()
    assert p.registry.names == ()


async def test_an_invalid_selector_registers_nothing() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}
    p = Passes(server=found(handler("h")), config=extension_config("ext", URL, spec={"namespaceSelector": selector}))

    assert "failed to create namespaceSelector" in await p.run()
    assert p.registry.names == ()


# ---------------------------------------------------------------------------------------------------------- registry


def test_two_configs_may_have_handlers_of_one_name() -> None:
    registry = Registry()
    registry.warm_up(extension_config(name, URL, "", {"h": "BeforeClusterUpgrade"}) for name in ("b", "a"))

    assert [h.name for h in registry.list("BeforeClusterUpgrade")] == ["h.a", "h.b"]


def test_a_config_with_dots_in_its_name_is_called_by_the_handler_alone() -> None:
    (registered,) = handlers_of(extension_config("ext.one.two", URL, "", {"h": "BeforeClusterUpgrade"}))

    assert registered.name == "h.ext.one.two"
    assert url_of(registered).startswith(f"{DISCOVERY.removesuffix('discovery')}beforeclusterupgrade/h?")


# ------------------------------------------------------------------------------------------------------------ client


def client(
    answers: dict[str, Any], *configs: dict[str, Any], namespaces: dict[str, dict[str, str]] | None = None
) -> tuple[RuntimeClient, Any]:
    """A client whose handlers answer so, and what notes their calls."""
    observation = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": "Observation", "runtimeExtensions": answers}
    made = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n, "labels": labels}} for n, labels in (namespaces or {}).items()
    ]
    world = World(assemble([*configs, *made, observation]), datetime(2026, 5, 1, tzinfo=UTC), sample_keys())
    return world.extensions, world.canned


def success(**more: Any) -> dict[str, Any]:
    return {"response": {"status": "Success", **more}}


def three(**more: Any) -> dict[str, Any]:
    return extension_config("ext", URL, "", dict.fromkeys("abc", "BeforeClusterUpgrade"), **more)


UPGRADE = CallAll("BeforeClusterUpgrade", CLUSTER, {"cluster": CLUSTER})


@pytest.mark.parametrize("answer", [{"error": "connection refused"}, {"code": 500, "text": "oops"}, {"code": 200, "text": "<html>"}])
async def test_ignore_makes_a_success_of_a_missing_answer(answer: dict[str, Any]) -> None:
    calls, _ = client(dict.fromkeys("abc", answer), three(failurePolicy="Ignore"))

    assert await calls.call_all(UPGRADE) == {"status": "Success", "message": "", "retryAfterSeconds": 0}


@pytest.mark.parametrize("status", ["Failure", "", "Maybe"])
async def test_ignore_does_not_make_a_success_of_a_failure(status: str) -> None:
    calls, _ = client({name: {"response": {"status": status}} for name in "abc"}, three(failurePolicy="Ignore"))

    with pytest.raises(ExtensionError):
        await calls.call_all(UPGRADE)


async def test_after_the_first_failure_no_other_handler_is_called() -> None:
    calls, canned = client({"a": success(message="fine"), "b": {"error": "no"}, "c": success()}, three())

    with pytest.raises(ExtensionError, match="failed to call extension handlers for hook"):
        await calls.call_all(UPGRADE)
    assert [c["url"].partition("?")[0].rpartition("/")[2] for c in canned.calls] == ["a", "b"]


@pytest.mark.parametrize(
    ("answers", "together"),
    [
        (((0, ""), (30, "a"), (5, "b")), (5, "a, b")),
        (((0, ""), (0, ""), (0, "")), (0, "")),
    ],
)
async def test_answers_of_several_become_one(answers: tuple[tuple[int, str], ...], together: tuple[int, str]) -> None:
    canned = {name: success(retryAfterSeconds=r, message=m) for name, (r, m) in zip("abc", answers, strict=True)}
    calls, _ = client(canned, three())
    answer = await calls.call_all(UPGRADE)

    assert (answer["retryAfterSeconds"], answer["message"]) == together


async def test_settings_of_the_request_override_those_of_the_config() -> None:
    calls, canned = client({"a": success()}, three(spec={"settings": {"a": "1"}}))
    await calls.call(CallHandler("BeforeClusterUpgrade", "a.ext", CLUSTER, {}, settings={"a": "2", "b": "3"}))

    assert canned.calls[0]["body"]["settings"] == {"a": "2", "b": "3"}


async def test_a_namespace_that_is_not_selected_or_missing_calls_nothing() -> None:
    selective = three(spec={"namespaceSelector": {"matchLabels": {"team": "x"}}})
    listing = ListHandlers("BeforeClusterUpgrade", CLUSTER)
    by_name = CallHandler("BeforeClusterUpgrade", "a.ext", CLUSTER, {})

    calls, canned = client({}, selective, namespaces={"ns": {}})
    assert list(await calls.handlers(listing)) == []
    with pytest.raises(ExtensionError, match="namespaceSelector did not match object ns/c"):
        await calls.call(by_name)
    gone, _ = client({}, selective)
    for ask in (gone.handlers(listing), gone.call(by_name)):
        with pytest.raises(ExtensionError):
            await ask
    assert canned.calls == []


async def test_a_missing_timeout_is_ten_seconds() -> None:
    calls, canned = client(dict.fromkeys("abc", success()), three(timeoutSeconds=0))
    await calls.call_all(UPGRADE)

    assert {c["url"].partition("?")[2] for c in canned.calls} == {"timeout=10s"}
    assert calls.registry.get("a.ext").timeout_seconds == 10


async def test_timeouts_are_written_as_go_writes_durations() -> None:
    calls, canned = client(dict.fromkeys("abc", success()), three(timeoutSeconds=90))
    await calls.call_all(UPGRADE)

    assert {c["url"].partition("?")[2] for c in canned.calls} == {"timeout=1m30s"}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_hook_in_an_unknown_version_is_not_called(policy: str) -> None:
    config = three(failurePolicy=policy)
    for entry in config["status"]["handlers"]:
        entry["requestHook"]["apiVersion"] = f"{HOOKS.partition('/')[0]}/v9"
    calls, canned = client(dict.fromkeys("abc", success()), config)
    asking = calls.call_all(UPGRADE)

    if policy == "Ignore":
        assert (await asking)["status"] == "Success"
    else:
        with pytest.raises(ExtensionError, match="does not exist in version"):
            await asking
    assert canned.calls == []
