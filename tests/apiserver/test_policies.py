"""Admission policies: what they refuse, warn of and change."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apiserver_testing import WIDGETS, Api, configmap, make_server, widget
from clusterwright.apiserver.server import ApiServer

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BETA = WIDGETS.replace("/v1/", "/v1beta1/")
RULE = {"operations": ["*"], "apiGroups": ["widgets.example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}


def policy(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    constraints = {"resourceRules": [RULE], **spec.pop("matchConstraints", {})}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"matchConstraints": constraints, **spec},
    }


async def bind(api: Api, made: dict[str, Any], name: str = "b", **spec: Any) -> None:
    kind = made["kind"]
    plural = kind.lower().replace("policy", "policies")
    answer = await api.post(f"{GROUP}/{plural}", made)
    assert answer.status == 201, answer
    extra = {"validationActions": ["Deny"]} if kind.startswith("V") else {}
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": name},
        "spec": {"policyName": made["metadata"]["name"], **extra, **spec},
    }
    answer = await api.post(f"{GROUP}/{kind.lower()}bindings", binding)
    assert answer.status == 201, answer


def validating(*validations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return policy("ValidatingAdmissionPolicy", "p", validations=list(validations), **spec)


def mutating(*mutations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return policy("MutatingAdmissionPolicy", "m", mutations=list(mutations), reinvocationPolicy="Never", **spec)


def configuration(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


NO_RED = {"expression": "object.spec.color != 'red'"}


async def test_a_policy_refuses_what_violates_it(api: Api):
    await bind(api, validating(NO_RED))

    refused = await api.post(WIDGETS, widget("w"))

    text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.spec.color != 'red'"
    assert (refused.status, refused["reason"]) == (422, "Invalid")
    assert refused["message"] == f'widgets.widgets.example.com "w" is forbidden: {text}'
    assert refused["details"]["causes"] == [{"message": text}]
    assert (await api.post(WIDGETS, widget("w", color="blue"))).status == 201
    assert (await api.merge(f"{WIDGETS}/w", {"spec": {"color": "red"}})).status == 422
    assert (await api.delete(f"{WIDGETS}/w")).status == 422  # object is null: the expression fails, and the policy with it


@pytest.mark.parametrize(
    ("validation", "status", "said"),
    [
        ({"message": " not red "}, 422, "not red"),
        ({"message": "m", "messageExpression": "'no ' + object.spec.color"}, 422, "no red"),
        ({"message": "m", "messageExpression": "object.spec.nope"}, 422, "m"),
        ({"reason": "Forbidden"}, 403, "failed expression: object.spec.color != 'red'"),
        ({"reason": "Unauthorized"}, 401, "failed expression: object.spec.color != 'red'"),
    ],
)
async def test_a_policy_refusal_has_a_reason(api: Api, validation: dict[str, Any], status: int, said: str):
    await bind(api, validating({**NO_RED, **validation}))

    refused = await api.post(WIDGETS, widget("w"))

    assert refused.status == status
    assert refused["message"].endswith(f"denied request: {said}")


async def test_a_binding_may_warn_only(api: Api):
    await bind(api, validating({**NO_RED, "message": "red"}), validationActions=["Warn"])

    made = await api.post(WIDGETS, widget("w"))

    assert (made.status, made.warnings) == (201, ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': red",))


@pytest.mark.parametrize(
    ("spec", "binding", "status"),
    [
        ({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'other'"}]}, {}, 201),
        ({"matchConditions": [{"name": "c", "expression": "request.operation == 'CREATE'"}]}, {}, 422),
        ({"matchConditions": [{"name": "c", "expression": "object.nope == 1"}]}, {}, 422),
        ({"matchConditions": [{"name": "c", "expression": "object.nope == 1"}], "failurePolicy": "Ignore"}, {}, 201),
        ({"matchConstraints": {"objectSelector": {"matchLabels": {"a": "b"}}}}, {}, 201),
        ({"matchConstraints": {"excludeResourceRules": [RULE]}}, {}, 201),
        ({"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["other"]}]}}, {}, 201),
        ({}, {"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}}, 422),
        ({}, {"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}}, 201),
    ],
)
async def test_policies_apply_to_the_selected_writes(api: Api, spec: dict[str, Any], binding: dict[str, Any], status: int):
    await bind(api, validating(NO_RED, **spec), **binding)

    assert (await api.post(WIDGETS, widget("w"))).status == status


@pytest.mark.parametrize(("match_policy", "status"), [("Equivalent", 422), ("Exact", 201)])
async def test_other_versions_are_judged_in_the_one_that_the_policy_names(api: Api, match_policy: str, status: int):
    await bind(api, validating({"expression": "object.apiVersion.endsWith('/v1') && object.spec.color != 'red'"},
                               matchConstraints={"matchPolicy": match_policy}))  # fmt: skip

    assert (await api.post(BETA, {**widget("w"), "apiVersion": "widgets.example.com/v1beta1"})).status == status


async def test_variables_parameters_and_the_namespace(api: Api):
    made = validating(
        {"expression": "variables.size <= int(params.data.limit)", "messageExpression": "'at most ' + params.data.limit"},
        {"expression": "namespaceObject.metadata.name == 'default'"},
        {"expression": "!has(variables.unused)"},
        variables=[
            {"name": "spec", "expression": "object.spec"},
            {"name": "size", "expression": "has(variables.spec.size) ? variables.spec.size : 0"},
        ],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    await bind(api, made, paramRef={"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"})
    missing = await api.post(WIDGETS, widget("w"))
    assert missing["message"].endswith("no params found for policy binding with `Deny` parameterNotFoundAction")
    await api.post(CONFIGMAPS, configmap("limits", data={"limit": "3"}))

    assert (await api.post(WIDGETS, widget("small", size=3))).status == 201
    refused = await api.post(WIDGETS, widget("large", size=4))

    assert refused["message"].endswith("denied request: at most 3")


async def test_a_policy_changes_objects_by_configuration(api: Api):
    expression = "Object{metadata: Object.metadata{labels: {'made': 'yes'}}, spec: Object.spec{title: object.metadata.name + '!'}}"
    await bind(api, mutating(configuration(expression)))

    made = await api.post(WIDGETS, widget("w", {"kept": "too"}))

    assert (made.status, made["spec"]["title"], made["metadata"]["labels"]) == (201, "w!", {"kept": "too", "made": "yes"})
    assert (await api.get(f"{WIDGETS}/w"))["spec"]["title"] == "w!"


async def test_a_policy_changes_objects_by_patch(api: Api):
    label = "JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}"
    operations = f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{}}}}, {label}]"
    await bind(api, mutating({"patchType": "JSONPatch", "jsonPatch": {"expression": operations}}))

    assert (await api.post(WIDGETS, widget("w")))["metadata"]["labels"] == {"a/b": "c"}


async def test_the_result_of_a_policy_is_validated(api: Api):
    await bind(api, mutating(configuration("Object{spec: Object.spec{color: 'pink'}}")))

    refused = await api.post(WIDGETS, widget("w"))

    assert (refused.status, refused["details"]["causes"][0]["field"]) == (422, "spec.color")


async def test_a_mutation_that_fails_refuses_or_is_ignored(api: Api):
    await bind(api, mutating(configuration("Object{spec: Object.spec{title: object.spec.nope}}")))
    refused = await api.post(WIDGETS, widget("w"))
    assert (refused.status, "MutatingAdmissionPolicy 'm' with binding 'b' denied request: " in refused["message"]) == (422, True)

    await api.merge(f"{GROUP}/mutatingadmissionpolicies/m", {"spec": {"failurePolicy": "Ignore"}})

    assert (await api.post(WIDGETS, widget("w"))).status == 201


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (validating({"expression": "object.spec.("}), "spec.validations[0].expression"),
        (validating({"expression": "authorizer.group('')"}), "spec.validations[0].expression"),
        (validating(NO_RED, variables=[{"name": "v", "expression": "nope"}]), "spec.variables[0].expression"),
        (validating(), "spec.validations"),
        (mutating(configuration("Foo{}")), "spec.mutations[0].applyConfiguration.expression"),
    ],
)
async def test_expressions_must_compile(api: Api, made: dict[str, Any], field: str):
    refused = await api.post(f"{GROUP}/{made['kind'].lower().replace('policy', 'policies')}", made)

    assert refused.status == 422
    assert [c["field"] for c in refused["details"]["causes"]] == [field]


async def test_a_server_without_bindings_has_no_such_link(server: ApiServer, api: Api):
    before = list(server.admission)
    await api.post(f"{GROUP}/validatingadmissionpolicies", validating(NO_RED))
    assert server.admission == before
    assert make_server().admission == []


async def test_policies_count_again_after_a_restart(server: ApiServer, api: Api):
    await bind(api, validating(NO_RED))
    kept = [(name, entry) for name, table in server.store.tables.items() for entry in table.objects.values()]
    again = make_server(namespaces=())
    again.recover(kept, server.store.revision)

    assert (await Api.of(again).post(WIDGETS, widget("w"))).status == 422


async def test_null_has_no_fields(api: Api):
    await bind(api, validating({"expression": "!has(object.spec) || !has(object.spec.color) || object.spec.color != 'blue'"}))
    assert (await api.post(WIDGETS, widget("w"))).status == 201

    assert (await api.delete(f"{WIDGETS}/w")).status == 200
