from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from typing import Any

import pytest

from apiserver.apiserver_testing import APPLY, CRDS, JSON_PATCH, MERGE, WIDGETS, Api, Clock, configmap, make_server, widget, widget_crds
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.audit import in_process
from clusterwright.golang.quoting import quote

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def test_two_servers_in_one_process_are_independent():
    one, other = Api.of(make_server()), Api.of(make_server())
    await one.post(CONFIGMAPS, configmap("mine"))
    await one.post(CRDS, widget_crds()[0])

    assert (await other.get(f"{CONFIGMAPS}/mine")).status == 404
    assert (await one.get(WIDGETS)).status == 200
    assert (await other.get(WIDGETS)).status == 404


async def test_a_thousand_servers_at_rest_are_small():
    make_server()  # what all share is made once
    gc.collect()
    tracemalloc.start()
    servers = [make_server(history=64) for _ in range(1000)]
    for server in servers[::50]:
        api = Api.of(server)
        for number in range(20):
            await api.post(CONFIGMAPS, configmap(f"c{number}", data={"a": "x" * 100}))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size / 1000 < 300_000


async def test_a_merge_patch_that_lost_a_race_is_tried_again_on_the_newer_object(server: ApiServer, api: Api):
    class Meddler:
        """Changes the object while somebody else's patch is in admission."""

        armed = True

        async def mutate(self, attributes: object) -> None:
            if self.armed:
                self.armed = False
                await api.merge(f"{WIDGETS}/race", {"spec": {"title": "meddled"}})

        async def validate(self, attributes: object) -> None:
            pass

    await api.post(WIDGETS, widget("race"))
    server.admission.append(Meddler())

    patched = await api.merge(f"{WIDGETS}/race", {"spec": {"size": 9}})

    assert (patched["spec"]["size"], patched["spec"]["title"]) == (9, "meddled")


async def test_a_put_that_lost_a_race_is_a_conflict(server: ApiServer, api: Api):
    made = await api.post(WIDGETS, widget("race"))

    class Meddler:
        armed = True

        async def mutate(self, attributes: object) -> None:
            if self.armed:
                self.armed = False
                await api.merge(f"{WIDGETS}/race", {"spec": {"title": "meddled"}})

        async def validate(self, attributes: object) -> None:
            pass

    server.admission.append(Meddler())

    lost = await api.put(f"{WIDGETS}/race", {**made.json, "spec": {"color": "blue"}})

    assert lost.status == 409
    assert (await api.get(f"{WIDGETS}/race"))["spec"]["title"] == "meddled"


async def test_admission_may_change_and_refuse(server: ApiServer, api: Api):
    from clusterwright.apiserver.attributes import Attributes
    from clusterwright.apiserver.status import forbidden_error

    class Link:
        async def mutate(self, attributes: Attributes) -> None:
            if attributes.operation == "CREATE" and attributes.object is not None:
                attributes.object["spec"]["title"] = "by admission"

        async def validate(self, attributes: Attributes) -> None:
            if attributes.object and attributes.object["spec"].get("color") == "blue":
                raise forbidden_error("widgets.example.com", "widgets", attributes.name, "no blue")
            if attributes.operation == "DELETE":
                raise forbidden_error("widgets.example.com", "widgets", attributes.name, "stays")

    server.admission.append(Link())

    made = await api.post(WIDGETS, widget("a"))
    refused = await api.post(WIDGETS, widget("b", color="blue"))
    stays = await api.delete(f"{WIDGETS}/a")

    assert made["spec"]["title"] == "by admission"
    assert refused["message"] == 'widgets.widgets.example.com "b" is forbidden: no blue'
    assert stays.status == 403
    assert (await api.get(f"{WIDGETS}/b")).status == 404


async def test_a_watch_of_a_selector_sees_objects_come_and_go(api: Api):
    watch = await api.watch(WIDGETS, labelSelector="tier=web")
    await api.post(WIDGETS, widget("a", {"tier": "db"}))
    await api.merge(f"{WIDGETS}/a", {"metadata": {"labels": {"tier": "web"}}})
    await api.merge(f"{WIDGETS}/a", {"spec": {"size": 1}})
    await api.merge(f"{WIDGETS}/a", {"metadata": {"labels": {"tier": "db"}}, "spec": {"size": 2}})
    await api.delete(f"{WIDGETS}/a")

    assert await watch.names(2) == [("ADDED", "a"), ("MODIFIED", "a")]
    kind, left = await watch.next()
    assert (kind, left["spec"]["size"]) == ("DELETED", 1)  # as it was when it last matched
    await api.post(WIDGETS, widget("b", {"tier": "web"}))
    assert await watch.names(1) == [("ADDED", "b")]
    await watch.close()


async def test_a_watch_from_a_forgotten_revision_ends_with_410():
    server = make_server(history=3)
    api = Api.of(server)
    rv = (await api.post(CONFIGMAPS, configmap("a"))).rv
    for number in range(5):
        await api.merge(f"{CONFIGMAPS}/a", {"data": {"n": str(number)}})

    watch = await api.watch(CONFIGMAPS, resourceVersion=rv)

    kind, status = await watch.next()
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.ended()


async def test_a_continue_token_that_expired_says_how_to_go_on():
    server = make_server(history=3)
    api = Api.of(server)
    for number in range(4):
        await api.post(CONFIGMAPS, configmap(f"c{number}"))
    token = (await api.get(CONFIGMAPS, limit=2))["metadata"]["continue"]
    for number in range(5):
        await api.merge(f"{CONFIGMAPS}/c0", {"data": {"n": str(number)}})

    expired = await api.get(CONFIGMAPS, limit=2, **{"continue": token})
    rest = await api.get(CONFIGMAPS, **{"continue": expired["metadata"]["continue"]})

    assert (expired.status, expired["reason"]) == (410, "Expired")
    assert rest.names == ["c2", "c3"]


async def test_bookmarks_are_sent_on_request():
    server = make_server()
    server.watches.bookmark_interval = 0.01
    api = Api.of(server)
    made = await api.post(CONFIGMAPS, configmap("a"))

    watch = await api.watch(CONFIGMAPS, resourceVersion=made.rv, allowWatchBookmarks="true")

    kind, obj = await watch.next()
    assert kind == "BOOKMARK"
    assert obj["metadata"]["resourceVersion"] == made.rv
    await watch.close()


async def test_a_watch_that_is_left_behind_is_closed_and_can_resume(server: ApiServer, api: Api, monkeypatch: pytest.MonkeyPatch):
    from clusterwright.apiserver.storage import streams as watching

    monkeypatch.setattr(watching, "QUEUE_LIMIT", 5)
    watch = await api.watch(WIDGETS)
    for number in range(10):
        await api.post(WIDGETS, widget(f"w{number}"))

    seen = [json.loads(line)["object"]["metadata"]["resourceVersion"] async for line in watch.lines]
    resumed = await api.watch(WIDGETS, resourceVersion=seen[-1])

    assert len(seen) == 6
    assert await resumed.names(4) == [("ADDED", f"w{n}") for n in range(6, 10)]
    await resumed.close()


async def test_a_closed_watch_leaves_nothing_behind(server: ApiServer, api: Api):
    watch = await api.watch(WIDGETS)
    await watch.close()
    table = server.store.table("widgets.widgets.example.com")

    assert not table.observers
    assert server.watches.open() == {}


async def test_deleting_a_definition_deletes_its_objects_and_ends_its_watches(api: Api):
    await api.post(WIDGETS, widget("a"))
    watch = await api.watch(WIDGETS, resourceVersion=(await api.get(WIDGETS)).rv)

    await api.delete(f"{CRDS}/widgets.widgets.example.com")

    assert await watch.names(1) == [("DELETED", "a")]
    assert await watch.ended()
    assert (await api.get(WIDGETS)).status == 404
    assert (await api.get(f"{CRDS}/widgets.widgets.example.com")).status == 404


async def test_a_definition_under_deletion_is_marked_and_stays_while_it_has_objects(api: Api):
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(WIDGETS, held)
    path = f"{CRDS}/widgets.widgets.example.com"

    answered = await api.delete(path)
    waiting = await api.get(path)
    late = await api.post(WIDGETS, widget("late"))
    await api.merge(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})

    def terminating(crd: Any) -> tuple[str, str]:
        return next((c["status"], c["reason"]) for c in crd["status"]["conditions"] if c["type"] == "Terminating")

    assert terminating(answered) == ("True", "InstanceDeletionPending")
    assert terminating(waiting) == ("True", "InstanceDeletionInProgress")
    assert answered["metadata"]["generation"] == 1
    assert answered["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert late["message"] == (
        'widgets.widgets.example.com "late" is forbidden: create not allowed while custom resource definition is terminating'
    )
    assert (await api.get(path)).status == 404
    assert (await api.get(WIDGETS)).status == 404


async def test_selectable_fields_of_a_definition_select(api: Api):
    for name, color in (("a", "red"), ("b", "blue")):
        await api.post(WIDGETS, widget(name, color=color))

    assert (await api.get(WIDGETS, fieldSelector="spec.color=blue")).names == ["b"]
    assert (await api.get(WIDGETS, fieldSelector="spec.color!=blue")).names == ["a"]
    assert (await api.get(WIDGETS, fieldSelector="metadata.name=a,spec.color=blue")).names == []


async def test_an_index_of_a_json_patch_must_exist(api: Api):
    await api.post(WIDGETS, widget("a", tags=["x"]))

    for path in ("/spec/tags/7", "/spec/tags/x", "/spec/tags/01", "spec"):
        answer = await api.do("PATCH", f"{WIDGETS}/a", [{"op": "replace", "path": path, "value": "y"}], JSON_PATCH)
        assert answer.status == 422, path


async def test_one_and_true_are_different_values(api: Api):
    path = "/apis/widgets.example.com/v1/namespaces/default/parcels"
    body = {"apiVersion": "widgets.example.com/v1", "kind": "Parcel", "metadata": {"name": "p"}, "spec": {"a": 1}}
    made = await api.post(path, body)

    changed = await api.merge(f"{path}/p", {"spec": {"a": True}})

    assert changed["spec"]["a"] is True
    assert changed.rv != made.rv


async def test_a_namespace_under_deletion_accepts_no_new_objects(api: Api):
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    await api.delete("/api/v1/namespaces/going")

    refused = await api.post("/api/v1/namespaces/going/configmaps", configmap("late"))

    assert refused.status == 403
    assert refused["message"] == (
        'configmaps "late" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_objects_are_loaded_as_they_are():
    server = make_server(require_namespaces=False)
    server.load(
        [
            {
                "apiVersion": "example.com/v1",
                "kind": "Policy",
                "metadata": {"name": "p", "namespace": "x", "uid": "u-1", "resourceVersion": "77", "generation": 4},
                "spec": {"anything": [1, {"goes": None}]},
                "status": {"ready": True},
            },
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"unknown": 1}},
        ]
    )
    api = Api.of(server)

    policy = (await api.get("/apis/example.com/v1/namespaces/x/policies/p")).json
    node = (await api.get("/api/v1/nodes/n")).json

    assert policy["metadata"] == {"name": "p", "namespace": "x", "uid": "u-1", "resourceVersion": "77", "generation": 4}
    assert policy["spec"] == {"anything": [1, {"goes": None}]}
    assert policy["status"] == {"ready": True}
    assert node["spec"] == {"unknown": 1}
    assert node["metadata"]["uid"]
    later = await api.post(
        "/apis/example.com/v1/namespaces/x/policies", {"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": "q"}}
    )
    assert int(later.rv) > 77


async def test_every_answer_of_a_server_with_a_fixed_seed_is_the_same():
    async def play() -> list[bytes]:
        api = Api.of(make_server(Clock()))
        return [(await api.post(CONFIGMAPS, {"metadata": {"generateName": f"g{number}-"}})).raw for number in range(5)]

    assert await play() == await play()


async def test_a_patch_of_the_wrong_type_is_refused_by_its_type_alone(api: Api):
    await api.post(CONFIGMAPS, configmap("a"))
    refused = await api.do("PATCH", f"{CONFIGMAPS}/a", {}, "application/json")

    assert refused.status == 415
    assert refused["message"] == "415: Unsupported Media Type"


async def test_a_wait_for_many_writers_loses_no_update(api: Api):
    await api.post(CONFIGMAPS, configmap("shared"))
    await asyncio.gather(*(api.do("PATCH", f"{CONFIGMAPS}/shared", {"data": {f"k{n}": "v"}}, MERGE) for n in range(50)))

    assert len((await api.get(f"{CONFIGMAPS}/shared"))["data"]) == 50


async def test_a_namespace_is_released_by_its_last_finalizer(api: Api):
    await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tmp"}})
    path = "/api/v1/namespaces/tmp"
    deleted = await api.delete(path)

    kept = await api.put(f"{path}/finalize", {**deleted.json, "spec": {"finalizers": ["kubernetes", "example.com/x"]}})
    wrong = await api.put(f"{path}/finalize", {**kept.json, "spec": {"finalizers": ["nodomain"]}})
    stale = await api.put(f"{path}/finalize", {**deleted.json, "spec": {}})
    gone = await api.put(f"{path}/finalize", {**kept.json, "spec": {}})

    assert deleted["status"]["phase"] == "Terminating"
    assert (kept.status, wrong.status, stale.status, gone.status) == (200, 422, 409, 200)
    assert (await api.get(path)).status == 404


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("!!", "continue key is not valid: illegal base64 data at input byte 0"),
        ("bad", "continue key is not valid: invalid character 'm' looking for beginning of value"),
        ("eyJ2IjoieCJ9", "continue key is not valid: server does not recognize this encoded version x"),
    ],
)
async def test_an_invalid_continue_token_is_refused(api: Api, token: str, problem: str):
    answer = await api.get(WIDGETS, limit=1, **{"continue": token})

    assert (answer.status, answer["message"]) == (400, f"invalid continue token: {problem}")


async def test_repeated_keys_in_yaml_are_noticed(api: Api):
    body = b"apiVersion: widgets.example.com/v1\nkind: Widget\nmetadata:\n  name: w\nspec:\n  color: red\n  color: blue\n"

    strict = await api.do("POST", WIDGETS, body, "application/yaml", fieldValidation="Strict")
    warned = await api.do("POST", WIDGETS, body, "application/yaml")
    applied = await api.do(
        "PATCH", f"{WIDGETS}/w", body, "application/apply-patch+yaml", fieldManager="m", force="true", fieldValidation="Strict"
    )

    said = 'line 7: key "color" already set in map'
    assert strict["message"].endswith(f"strict decoding error: yaml: unmarshal errors:\n  {said}")
    assert (warned.status, warned.warnings) == (201, (said,))
    assert applied["message"] == f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {said}"


async def test_a_watch_from_a_revision_to_come_sees_only_what_comes_after_it(api: Api):
    rv = int((await api.get(WIDGETS)).rv)
    watch = await api.watch(WIDGETS, resourceVersion=rv + 2)
    for name in ("a", "b", "c"):
        await api.post(WIDGETS, widget(name))

    assert await watch.names(1) == [("ADDED", "c")]
    await watch.close()


async def test_an_applied_scale_owns_the_replicas(api: Api):
    await api.post(WIDGETS, widget("w", replicas=2))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 5}}

    refused = await api.apply(f"{WIDGETS}/w/scale", scale, "scaler")
    forced = await api.apply(f"{WIDGETS}/w/scale", scale, "scaler", force="true")
    now = (await api.get(f"{WIDGETS}/w")).json

    assert refused.status == 409
    assert refused["details"]["causes"][0]["field"] == ".spec.replicas"
    assert (forced["kind"], forced["spec"]) == ("Scale", {"replicas": 5})
    owners = {m["manager"]: (m["operation"], m.get("subresource"), m["fieldsV1"].get("f:spec")) for m in now["metadata"]["managedFields"]}
    assert owners["scaler"] == ("Apply", "scale", {"f:replicas": {}})
    assert "f:replicas" not in owners["test"][2]


async def test_the_state_before_the_first_write_is_empty(api: Api):
    await api.post(WIDGETS, widget("w"))

    before = await api.get(WIDGETS, resourceVersion=1, resourceVersionMatch="Exact")

    assert (before.status, before.names) == (200, [])


async def test_pretty_output_is_indented(api: Api):
    plain, pretty = await api.get(CONFIGMAPS), await api.get(CONFIGMAPS, pretty="true")

    assert pretty.json == plain.json
    assert pretty.raw.startswith(b'{\n  "kind"')


@pytest.mark.parametrize(("path", "obj"), [(WIDGETS, widget("w")), ("/api/v1/namespaces/default/configmaps", configmap("w"))])
async def test_applying_to_an_object_that_is_gone_does_not_make_another(api: Api, path: str, obj: dict[str, Any]):
    obj = {**obj, "metadata": {"name": "w", "uid": "7f3c1a52-0000-4000-8000-000000000000"}}

    refused = await api.apply(f"{path}/w", obj, "me")

    assert (refused.status, refused["reason"]) == (409, "Conflict")
    assert refused["message"].endswith(
        '"w": uid mismatch: the provided object specified uid 7f3c1a52-0000-4000-8000-000000000000, and no existing object was found'
    )
    assert (await api.get(f"{path}/w")).status == 404


async def test_a_timeout_must_be_a_duration(api: Api):
    refused = await api.get(WIDGETS, timeout="invalid")

    assert refused.status == 400
    assert refused["message"] == 'invalid timeout specified in the request URL - time: invalid duration "invalid"'
    assert (await api.get(WIDGETS, timeout="10s")).status == 200


async def test_a_dry_run_may_name_a_resource_version(api: Api):
    body = {**configmap("c"), "metadata": {"name": "c", "resourceVersion": "7"}}
    assert (await api.post(CONFIGMAPS, body)).status == 500
    assert (await api.post(CONFIGMAPS, body, dryRun="All")).status == 201
    assert (await api.get(f"{CONFIGMAPS}/c")).status == 404


async def test_namespaces_that_are_there_from_the_beginning_have_an_owner(api: Api):
    owners = (await api.get("/api/v1/namespaces/kube-system"))["metadata"]["managedFields"]

    assert [(e["manager"], e["operation"]) for e in owners] == [("kube-apiserver", "Update")]


async def test_reviews_have_no_table_form(api: Api):
    review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
              "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}  # fmt: skip
    headers = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}

    assert (await api.do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, headers=headers)).status == 406


async def test_events_are_selected_by_their_reporter(api: Api):
    events = "/api/v1/namespaces/default/events"
    base = {"apiVersion": "v1", "kind": "Event", "involvedObject": {"namespace": "default", "name": "x", "kind": "Pod"}}
    await api.post(events, {**base, "metadata": {"name": "old"}, "source": {"component": "me"}})
    new = {"reportingComponent": "me", "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal",
           "eventTime": "2026-05-01T12:00:00.000000Z"}  # fmt: skip
    made = await api.post(events, {**base, "metadata": {"name": "new"}, **new})
    assert made.status == 201, made

    assert (await api.get(events, fieldSelector="source=me")).names == ["new", "old"]
    assert (await api.get(events, fieldSelector="source=you")).names == []


@pytest.mark.parametrize(
    ("path", "obj", "kept"),
    [
        ("/apis/apps/v1/namespaces/default/deployments", "Deployment", {"annotations"}),
        ("/apis/apps/v1/namespaces/default/replicasets", "ReplicaSet", {"annotations", "labels"}),
        (WIDGETS, "Widget", set()),
    ],
)
async def test_a_status_write_changes_only_some_metadata(api: Api, path: str, obj: str, kept: set[str]):
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    body = widget("x") if obj == "Widget" else {"apiVersion": "apps/v1", "kind": obj, "metadata": {"name": "x"}, "spec": spec}
    assert (await api.post(path, body)).status == 201

    answer = await api.merge(f"{path}/x/status", {"metadata": {"annotations": {"k": "v"}, "labels": {"k": "v"}}})

    assert answer.status == 200
    assert {"annotations", "labels"} & answer["metadata"].keys() == kept


async def test_apply_fails_if_a_manager_owns_fields_in_a_removed_version(server: ApiServer, api: Api):
    old = {**widget("w"), "apiVersion": "widgets.example.com/v1beta1"}
    beta = WIDGETS.replace("/v1/", "/v1beta1/")
    assert (await api.apply(f"{beta}/w", old, "one")).status == 201
    crd = widget_crds()[0]
    crd["spec"]["versions"] = [v for v in crd["spec"]["versions"] if v["name"] == "v1"]
    assert (await api.merge(f"{CRDS}/{crd['metadata']['name']}", {"spec": {"versions": crd["spec"]["versions"]}})).status == 200

    for manager in ("one", "two"):
        refused = await api.apply(f"{WIDGETS}/w", widget("w"), manager, force="true")
        assert refused.status == 500
        assert refused["message"].endswith("request to convert CR to an invalid group/version: widgets.example.com/v1beta1")


async def test_an_audit_record_names_the_program_and_the_time(server: ApiServer, api: Api):
    records: list[Any] = []
    server.audit = lambda request, user, answer: in_process(server, records.append, request, user, answer)

    await api.do("POST", CONFIGMAPS, configmap("c"), headers={"user-agent": "me/1.0"}, dryRun="All")

    event = records[0].event()
    assert (event["verb"], event["userAgent"], event["requestURI"]) == ("create", "me/1.0", f"{CONFIGMAPS}?dryRun=All")
    assert event["requestReceivedTimestamp"] == "2026-05-01T12:00:00.000000Z"
    assert event["objectRef"] == {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}


async def test_tabs_are_white_space_within_brackets(api: Api):
    text = b"{\n\tapiVersion: v1,\n\tkind:\tConfigMap, metadata: {\tname: tabbed\t},\n\t\tdata: {a: 'b\tc'}\n}"

    made = await api.do("POST", CONFIGMAPS, text, "application/yaml")

    assert (made.status, made["data"]) == (201, {"a": "b\tc"})
    assert (await api.do("POST", CONFIGMAPS, b"apiVersion: v1\n\tkind: ConfigMap", "application/yaml")).status == 400


@pytest.mark.parametrize("version", ["²", "٣", "9" * 5000, "-1", "1_0", " 1"])
async def test_an_invalid_resource_version_is_reported(api: Api, version: str):
    problem = "value out of range" if version.startswith("9") else "invalid syntax"
    made = await api.post(WIDGETS, widget("v"))
    for path, query in ((WIDGETS, {}), (WIDGETS, {"watch": "true"}), (f"{WIDGETS}/v", {})):
        answer = await api.get(path, resourceVersion=version, **query)
        assert answer.status in {400, 500}
        assert f"strconv.ParseUint: parsing {quote(version)}: {problem}" in answer["message"]
    changed = {**made.json, "metadata": {**made["metadata"], "resourceVersion": version}}
    answer = await api.put(f"{WIDGETS}/v", changed)
    assert answer.status == 500
    assert answer["message"] == f"strconv.ParseUint: parsing {quote(version)}: {problem}"


@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
async def test_whole_numbers_of_custom_resources_are_integers_however_they_were_written(api: Api, media: str):
    def body(size: str, name: str = "n") -> bytes:
        text = (
            '{"apiVersion": "widgets.example.com/v1", "kind": "Widget", "metadata": {"name": "%s"}, "spec": {"color": "red", "size": %s}}'
        )
        return (text % (name, size)).encode() + (b"\n# YAML" if media.endswith("yaml") else b"")

    made = await api.do("POST", WIDGETS, body("5.0"), media)
    assert (made.status, str(made["spec"]["size"])) == (201, "5")
    applied = await api.do("PATCH", f"{WIDGETS}/n", body("1e1"), APPLY, fieldManager="m", force="true")
    assert (applied.status, str(applied["spec"]["size"])) == (200, "10")
    merged = await api.do("PATCH", f"{WIDGETS}/n", b'{"spec": {"size": 70e-1}}', MERGE)
    assert (merged.status, str(merged["spec"]["size"])) == (200, "7")
    refused = await api.do("POST", WIDGETS, body("1e400", "m"), media)
    assert refused.status == 400
    builtin = configmap("n", immutable=1.0)
    assert (await api.post(CONFIGMAPS, builtin)).status == 400


async def test_yaml_numbers_with_an_exponent_are_numbers(api: Api):
    text = b"apiVersion: widgets.example.com/v1\nkind: Widget\nmetadata: {name: e}\nspec: {color: red, size: 1e1}\n"
    assert (await api.do("POST", WIDGETS, text, "application/yaml"))["spec"]["size"] == 10
