"""What every Kubernetes store promises; run against ours and, where KUBEBUILDER_ASSETS names one, a real kube-apiserver."""

from __future__ import annotations

from apiserver.apiserver_testing import WIDGETS, Api, configmap, widget

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_write_gets_a_greater_revision_than_the_one_before(any_api: Api):
    first = await any_api.post(CONFIGMAPS, configmap("r1"))
    second = await any_api.post(CONFIGMAPS, configmap("r2"))

    assert int(second.rv) > int(first.rv)


async def test_a_stale_put_is_refused_and_changes_nothing(any_api: Api):
    before = await any_api.post(WIDGETS, widget("stale"))
    await any_api.merge(f"{WIDGETS}/stale", {"spec": {"size": 1}})

    refused = await any_api.put(f"{WIDGETS}/stale", {**before.json, "spec": {"color": "blue"}})

    assert refused.status == 409
    assert refused["reason"] == "Conflict"
    assert (await any_api.get(f"{WIDGETS}/stale"))["spec"]["color"] == "red"


async def test_a_write_that_changes_nothing_keeps_the_revision(any_api: Api):
    before = await any_api.post(WIDGETS, widget("noop", size=3))

    after = await any_api.merge(f"{WIDGETS}/noop", {"spec": {"size": 3}})

    assert after.rv == before.rv


async def test_a_list_shows_what_was_written_in_order_of_name(any_api: Api):
    for name in ("lc", "la", "lb"):
        await any_api.post(WIDGETS, widget(name, {"suite": "list"}))

    listed = await any_api.get(WIDGETS, labelSelector="suite=list")

    assert listed.names == ["la", "lb", "lc"]


async def test_a_watch_from_a_list_sees_every_later_change_once_in_order(any_api: Api):
    rv = (await any_api.get(WIDGETS)).rv
    watch = await any_api.watch(WIDGETS, resourceVersion=rv, timeoutSeconds=20)
    await any_api.post(WIDGETS, widget("wa"))
    await any_api.merge(f"{WIDGETS}/wa", {"spec": {"size": 1}})
    await any_api.merge(f"{WIDGETS}/wa", {"spec": {"size": 1}})
    await any_api.delete(f"{WIDGETS}/wa")

    assert await watch.names(3) == [("ADDED", "wa"), ("MODIFIED", "wa"), ("DELETED", "wa")]
    await watch.close()


async def test_a_watch_resumes_after_the_revision_it_saw_last(any_api: Api):
    rv = (await any_api.get(WIDGETS)).rv
    await any_api.post(WIDGETS, widget("ra"))
    await any_api.post(WIDGETS, widget("rb"))
    first = await any_api.watch(WIDGETS, resourceVersion=rv, timeoutSeconds=20)
    _, seen = await first.next()
    await first.close()

    second = await any_api.watch(WIDGETS, resourceVersion=seen["metadata"]["resourceVersion"], timeoutSeconds=20)

    assert await second.names(1) == [("ADDED", "rb")]
    await second.close()


async def test_pages_of_a_list_hold_each_object_once(any_api: Api):
    for number in range(7):
        await any_api.post(WIDGETS, widget(f"p{number}", {"suite": "pages"}))
    names: list[str] = []
    token = ""
    for _ in range(10):
        query = {"continue": token} if token else {}
        page = await any_api.get(WIDGETS, limit=2, labelSelector="suite=pages", **query)
        names += page.names
        token = page["metadata"].get("continue", "")
        if not token:
            break

    assert names == [f"p{n}" for n in range(7)]


async def test_finalizers_hold_an_object_until_the_last_is_gone(any_api: Api):
    obj = widget("fin")
    obj["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    created = await any_api.post(WIDGETS, obj)
    deleted = await any_api.delete(f"{WIDGETS}/fin")
    again = await any_api.delete(f"{WIDGETS}/fin")

    assert deleted["metadata"]["deletionTimestamp"]
    assert deleted["metadata"]["generation"] == created["metadata"]["generation"] + 1
    assert again.rv == deleted.rv
    await any_api.merge(f"{WIDGETS}/fin", {"metadata": {"finalizers": ["example.com/b"]}})
    assert (await any_api.get(f"{WIDGETS}/fin")).status == 200
    await any_api.merge(f"{WIDGETS}/fin", {"metadata": {"finalizers": []}})
    assert (await any_api.get(f"{WIDGETS}/fin")).status == 404


async def test_status_and_spec_do_not_overwrite_each_other(any_api: Api):
    await any_api.post(WIDGETS, widget("two"))
    await any_api.merge(f"{WIDGETS}/two/status", {"status": {"phase": "Up"}, "spec": {"color": "blue"}})
    await any_api.merge(f"{WIDGETS}/two", {"spec": {"size": 4}, "status": {"phase": "Down"}})

    now = (await any_api.get(f"{WIDGETS}/two")).json

    assert (now["spec"]["color"], now["spec"]["size"], now["status"]["phase"]) == ("red", 4, "Up")
    assert now["metadata"]["generation"] == 2


async def test_a_deletion_with_preconditions_checks_them(any_api: Api):
    made = await any_api.post(WIDGETS, widget("pre"))

    wrong = await any_api.delete(f"{WIDGETS}/pre", {"preconditions": {"resourceVersion": "1"}})
    right = await any_api.delete(f"{WIDGETS}/pre", {"preconditions": {"uid": made["metadata"]["uid"], "resourceVersion": made.rv}})

    assert (wrong.status, right.status) == (409, 200)
    assert "does not match the ResourceVersion in record" in wrong["message"]


async def test_a_dry_run_answers_as_if_and_stores_nothing(any_api: Api):
    rv = (await any_api.get(WIDGETS)).rv
    dry = await any_api.post(WIDGETS, widget("dry"), dryRun="All")

    assert dry.status == 201
    assert "resourceVersion" not in dry["metadata"]
    assert (await any_api.get(f"{WIDGETS}/dry")).status == 404
    assert (await any_api.get(WIDGETS)).rv == rv


async def test_generated_names_begin_as_asked_and_differ(any_api: Api):
    obj = widget("x")
    obj["metadata"] = {"generateName": "gen-"}
    names = {(await any_api.post(WIDGETS, obj))["metadata"]["name"] for _ in range(5)}

    assert len(names) == 5
    assert all(n.startswith("gen-") and len(n) == 9 for n in names)


async def test_strict_field_validation_refuses_unknown_and_repeated_fields(any_api: Api):
    unknown = await any_api.post(WIDGETS, widget("strict", nope=1), fieldValidation="Strict")
    body = b'{"apiVersion":"widgets.example.com/v1","kind":"Widget","metadata":{"name":"s"},"spec":{"color":"red","color":"blue"}}'
    repeated = await any_api.do("POST", WIDGETS, body, fieldValidation="Strict")

    assert unknown["message"] == ('Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.nope"')
    assert repeated["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.color"'
    )
    assert (unknown.status, repeated.status) == (400, 400)


async def test_a_put_with_the_uid_of_a_deleted_object_is_refused(any_api: Api):
    """Kinds that a PUT may make: with a uid, the one that had it is meant, and not made again."""
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "default"}}
    made = (await any_api.post(path, lease)).json
    await any_api.delete(f"{path}/l")

    answer = await any_api.put(f"{path}/l", made)

    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert answer.json["message"].endswith(f"Precondition failed: UID in precondition: {made['metadata']['uid']}, UID in object meta: ")
    assert (await any_api.get(f"{path}/l")).status == 404
