"""Built-in kinds and CRDs through a whole server: decoding, defaults, rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.apiserver_testing import CRDS, Api, configmap
from clusterwright.api import kubernetes as models
from clusterwright.apiserver.builtins.kinds import RESOURCES
from clusterwright.apiserver.encoding import protobuf
from clusterwright.apiserver.interfaces import DecodeError
from clusterwright.apiserver.schema.gotypes import json_fields, struct, table
from clusterwright.golang.quantities import parse_quantity

HANDLERS = {(r.group, r.kind): r.handler for r in RESOURCES}


def causes(answer: Any) -> list[str]:
    assert answer.status == 422, answer
    return [f"{c['field']}: {c['message']}" for c in answer["details"]["causes"]]


async def test_a_pod_gets_its_defaults(api: Api):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "a/b:v1", "resources": {"limits": {"cpu": "0.5"}}, "livenessProbe": {"httpGet": {"port": 80}}}],
        "volumes": [{"name": "v", "secret": {"secretName": "x"}}, {"name": "e"}]}}  # fmt: skip
    made = (await api.post("/api/v1/namespaces/default/pods", pod)).json
    container = made["spec"]["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}  # fmt: skip
    assert made["spec"]["volumes"] == [{"name": "v", "secret": {"secretName": "x", "defaultMode": 420}}, {"name": "e", "emptyDir": {}}]
    assert made["status"] == {"phase": "Pending", "qosClass": "Burstable"}


async def test_workloads_need_a_selector_that_fits(api: Api):
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    def deployment(**spec: Any) -> dict[str, Any]:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template, **spec}}

    assert causes(await api.post(path, deployment())) == [
        "spec.selector: Required value",
        'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
    ]
    assert (await api.post(path, deployment(selector={"matchLabels": {"a": "b"}}))).status == 201
    changed = await api.merge(f"{path}/d", {"spec": {"selector": {"matchLabels": {"a": "c"}}}})
    assert 'spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable' in causes(changed)


@pytest.mark.parametrize(
    ("container", "wanted"),
    [
        ({"livenessProbe": {}}, ["livenessProbe: Required value: must specify a handler type"]),
        ({"readinessProbe": {"exec": {"command": ["a"]}, "httpGet": {"port": 80}}}, [
            "readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type"]),
        ({"livenessProbe": {"httpGet": {"port": "UP"}, "successThreshold": 3}}, [
            'livenessProbe.httpGet.port: Invalid value: "UP": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
            'livenessProbe.httpGet.port: Invalid value: "UP": must contain at least one letter (a-z)',
            "livenessProbe.successThreshold: Invalid value: 3: must be 1"]),
        ({"ports": [{"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}]}, ['ports[1].name: Duplicate value: "x"']),
        ({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}, [
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1']),
        ({"resources": {"limits": {"a.b/c": "1500m"}}}, [
            'resources.limits[a.b/c]: Invalid value: "1500m": must be an integer',
            'resources.requests[a.b/c]: Invalid value: "1500m": must be an integer']),
        ({"env": [{"name": "A=B"}, {"name": "B", "valueFrom": {}}]}, [
            "env[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
            'env[1].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`']),
        ({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]}, [
            'volumeMounts[1].mountPath: Invalid value: "/a": must be unique', 'volumeMounts[1].name: Not found: "w"']),
    ],
)  # fmt: skip
async def test_containers_are_judged_as_kubernetes_does(api: Api, container: dict[str, Any], wanted: list[str]):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v"}], "containers": [
        {"name": "c", "image": "i", **container}]}}  # fmt: skip
    answer = await api.post("/api/v1/namespaces/default/pods", pod)
    assert sorted(causes(answer)) == sorted(f"spec.containers[0].{text}" for text in wanted)


async def test_templates_warn_of_ports_and_variables_that_hide_others(api: Api):
    containers = [
        {"name": "c", "image": "i", "ports": [{"containerPort": 80, "name": "x"}], "env": [{"name": "A", "value": "1"}, {"name": "A"}]},
        {"name": "d", "image": "i", "ports": [{"containerPort": 80, "name": "x"}]},
    ]
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}}}  # fmt: skip
    answer = await api.post("/apis/apps/v1/namespaces/default/deployments", deployment)
    here, there = "spec.template.spec.containers[1].ports[0]", "spec.template.spec.containers[0].ports[0]"
    assert answer.status == 201
    assert list(answer.warnings) == [
        'spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        f"{here}: duplicate port definition with {there}",
        f'{here}: duplicate port name "x" with {there}, services and probes that select ports by name will use {there}',
    ]


async def test_wrong_types_are_refused_with_their_path(api: Api):
    answer = await api.post("/api/v1/namespaces/default/configmaps", configmap("m", data={"a": 5}))
    assert answer.status == 400
    assert answer["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string'
    )


def crd(schema: dict[str, Any] | None, **spec: Any) -> dict[str, Any]:
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    if schema is not None:
        version["schema"] = {"openAPIV3Schema": schema}
    names = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version], **spec},
    }  # fmt: skip


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


ROOT = "spec.validation.openAPIV3Schema"
BAD_SCHEMAS = [
    (obj(a={}), [f"{ROOT}.properties[a].type: Required value: must not be empty for specified object fields"]),
    (obj(a={"type": "foo"}), [f'{ROOT}.properties[a].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string"']),
    (obj(a={"type": "string", "pattern": "("}), [f'{ROOT}.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`']),
    (obj(a={"type": "object", "properties": {"b": {"type": "string"}}, "oneOf": [{"nullable": True}]}), [f"{ROOT}.properties[a].oneOf[0].nullable: Forbidden: must be false to be structural"]),
    (obj(metadata=obj(labels={"type": "object"})), [f"{ROOT}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"]),
    (obj(a={"type": "string", "maxLength": 2, "default": "abc"}), [f"{ROOT}.properties[a].default: Too long: may not be more than 2 bytes"]),
    (obj(a={"type": "string", "default": "b", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}), [f"{ROOT}.properties[a].default: Invalid value: \"b\": failed rule: self == 'a'"]),
    (obj(a={"type": "integer", "x-kubernetes-validations": [{"rule": "self + 1"}]}), [
        f'{ROOT}.properties[a].x-kubernetes-validations[0].rule: Invalid value: {{"Rule":"self + 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}}: cel expression must evaluate to a bool']),
    (obj(a={"type": "array", "maxItems": 3, "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}), [
        f'{ROOT}.properties[a].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within {ROOT}.properties[a]']),
    (obj(a={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}), [f'{ROOT}.properties[a].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"']),
    (obj(a={"type": "string", "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}), [f"{ROOT}.properties[a].allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"]),
    (obj(a={"type": "object", "anyOf": [{"additionalProperties": {}}, {"properties": {"metadata": {}}}]}), [
        f"{ROOT}.properties[a].anyOf[0].additionalProperties: Forbidden: must be undefined to be structural",
        f"{ROOT}.properties[a].anyOf[1].properties[metadata]: Forbidden: must not be specified in a nested context"]),
    (obj(metadata={"type": "object", "description": "x"}), [f"{ROOT}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"]),
    ({"type": "object", "additionalProperties": False}, [f"{ROOT}.additionalProperties: Forbidden: must not be used at the root"]),
    (obj(a={"$ref": "#/b"}, b={}), [f"{ROOT}.properties[a].$ref: Forbidden: $ref is not supported"]),  # not structural in form: what else it lacks is not said
    (obj(a={"type": "string", "additionalItems": False}), [f"{ROOT}.properties[a].additionalItems: Forbidden: additionalItems is not supported"]),
    ({**obj(a={"type": "string"}), "$schema": "x"}, [f'{ROOT}: Invalid value: "": OpenAPIV3Schema \'schema\' is not supported']),
    ({"type": "array"}, [f"{ROOT}.items: Required value: must be specified", f'{ROOT}.type: Invalid value: "array": must be object at the root']),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "wanted"), BAD_SCHEMAS)
async def test_definitions_with_bad_schemas_are_refused(api: Api, schema: dict[str, Any], wanted: list[str]):
    assert causes(await api.post(CRDS, crd(schema))) == wanted


async def test_definitions_have_warnings_about_ineffective_parts(api: Api):
    schema = obj(a={"type": "string", "format": "zip", "bogus": 1})
    answer = await api.post(CRDS, crd(schema))
    assert answer.status == 201
    assert answer.warnings == (
        'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.a.bogus"',
        'unrecognized format "zip"',
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("1000m", "1"), ("0.5", "500m"), ("1024Ki", "1Mi"), ("1e3", "1e3"), ("1.5Gi", "1536Mi"), ("100n", "100n"), ("0", "0"), ("-1k", "-1k")],
)
def test_quantities_have_one_form(text: str, canonical: str):
    assert parse_quantity(text).canonical() == canonical


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda c: (
        st.lists(c, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "spec", "data", "a", "containers", "metadata", "labels"]), c, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(HANDLERS)),
    st.dictionaries(st.sampled_from(["metadata", "spec", "data", "status", "type", "rules", "webhooks"]), JSON),
)
def test_any_body_is_decoded_or_refused_and_then_judged(which: tuple[str, str], body: dict[str, Any]):
    handler = HANDLERS[which]
    value = json.loads(json.dumps(body))
    try:
        handler.decode(value)
    except DecodeError:
        return
    again = json.loads(json.dumps(value))
    assert handler.decode(again) == [], "what was decoded once has nothing unknown"
    assert again == value
    handler.default(value)
    value.setdefault("metadata", {}).setdefault("name", "x")
    handler.prepare_for_create(value)
    list(handler.validate_create(value))
    list(handler.validate_update(value, json.loads(json.dumps(value))))


def test_our_models_have_only_fields_of_the_types():
    """The typed models of built-ins are projections of the same types that the server decodes by."""
    for resource in RESOURCES:
        model = getattr(models, resource.kind, None)
        if model is None or getattr(model, "api_version", None) is None or resource.api_version != model().api_version:
            continue
        known = set(json_fields(resource.handler.schema.go_type)) | {"apiVersion", "kind"}
        written = {f.encode_name for f in __import__("msgspec").structs.fields(model)}
        assert written <= known, resource.kind


def test_the_table_of_types_is_closed():
    for name, entry in table().items():
        struct(name)
        for field in entry["f"].values():
            bare = field["t"].lstrip("*[]{}")
            assert "." not in bare or bare in table(), (name, field)


async def test_a_definition_without_stored_versions_has_the_one_to_be_stored(api: Api):
    assert (await api.post(CRDS, crd(obj(a={"type": "string"})))).status == 201
    name = crd(obj())["metadata"]["name"]
    answer = await api.merge(f"{CRDS}/{name}/status", {"status": {"storedVersions": []}})
    assert (answer.status, answer["status"]["storedVersions"]) == (200, ["v1"])


async def test_the_cost_of_a_rule_is_reported_together_with_its_errors(api: Api):
    numbers = {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}
    said = causes(await api.post(CRDS, crd(obj(a={"type": "array", "items": numbers}))))
    assert [text.split(": ", 2)[2][:30] for text in said] == [
        '"self == oldSelf": oldSelf can',
        "estimated rule cost exceeds bu",
        "contributed to estimated rule ",
        "x-kubernetes-validations estim",
    ]


SERVICE_FAULTS = [
    ({"type": "NodePort", "clusterIP": "None"}, ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"]),
    ({"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.1"}, ["spec.clusterIPs: Forbidden: may not be set for ExternalName services"]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "wanted"), SERVICE_FAULTS)
async def test_addresses_of_services_fit_their_types(api: Api, spec: dict[str, Any], wanted: list[str]):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], **spec}}
    assert causes(await api.post("/api/v1/namespaces/default/services", service)) == wanted


async def test_init_containers_are_not_probed(api: Api):
    first = {"name": "i", "image": "x", "readinessProbe": {"tcpSocket": {"port": 80}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "initContainers": [first]},
    }
    wanted = ["spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"]
    assert causes(await api.post("/api/v1/namespaces/default/pods", pod)) == wanted
    first["restartPolicy"] = "Always"
    assert (await api.post("/api/v1/namespaces/default/pods", pod)).status == 201


async def test_jobs_keep_what_they_were_made_for(api: Api):
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": -1, "template": template}}
    assert causes(await api.post(jobs, job)) == ["spec.parallelism: Invalid value: -1: must be greater than or equal to 0"]
    job["spec"] = {"completions": 2, "template": template}
    assert (await api.post(jobs, job))["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"
    assert causes(await api.merge(f"{jobs}/j", {"spec": {"completions": 3}})) == ["spec.completions: Invalid value: 3: field is immutable"]
    assert "child pods are preserved" in (await api.do("DELETE", f"{jobs}/nobody")).warnings[0]


CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def stateful_set(claims: list[Any], **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], **spec.pop("pod", {})}}
    rest = {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template, "volumeClaimTemplates": claims, **spec}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": rest}


async def test_pods_of_a_stateful_set_mount_the_volumes_of_its_claim_templates(api: Api):
    claim = {"metadata": {"name": "data"}, "spec": CLAIM}
    made = await api.post(
        "/apis/apps/v1/namespaces/default/statefulsets", stateful_set([claim], pod={"volumes": [{"name": "data", "emptyDir": {}}]})
    )

    assert made.status == 201
    assert made["spec"]["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"}


@pytest.mark.parametrize(
    ("claims", "spec", "wanted"),
    [
        ([], {}, ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"']),
        ([{"metadata": {"name": "data"}, "spec": {**CLAIM, "accessModes": []}}], {}, ["spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required"]),
        ([{"metadata": {"name": "data"}, "spec": {**CLAIM, "resources": {}}}], {}, ["spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"]),
        ([{"metadata": {"name": "data"}, "spec": CLAIM}], {"podManagementPolicy": "x"}, ["spec.podManagementPolicy: Invalid value: \"x\": must be 'OrderedReady' or 'Parallel'"]),
        ([{"metadata": {"name": "data"}, "spec": CLAIM}], {"ordinals": {"start": -1}}, ["spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"]),
    ],
)  # fmt: skip
async def test_a_stateful_set_that_cannot_work_is_refused(api: Api, claims: list[Any], spec: dict[str, Any], wanted: list[str]):
    assert causes(await api.post("/apis/apps/v1/namespaces/default/statefulsets", stateful_set(claims, **spec))) == wanted


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"accessModes": ["x"]}, 'spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'),
        ({"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]}, "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"),
        ({"resources": {"requests": {"storage": "0"}}}, 'spec.resources[storage]: Invalid value: "0": must be greater than zero'),
        ({"volumeMode": "x"}, 'spec.volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"'),
    ],
)  # fmt: skip
async def test_a_claim_that_nothing_can_satisfy_is_refused(api: Api, spec: dict[str, Any], wanted: str):
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {**CLAIM, **spec}}
    assert causes(await api.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)) == [wanted]


async def test_only_a_bound_claim_may_ask_for_more_room(api: Api):
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    await api.post(claims, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": CLAIM})
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    before = (await api.merge(f"{claims}/c", more)).status
    await api.merge(f"{claims}/c/status", {"status": {"phase": "Bound"}})

    assert (before, (await api.merge(f"{claims}/c", more)).status) == (422, 200)


async def test_an_eviction_of_the_version_that_is_not_served_any_more_is_read_from_protobuf():
    eviction = {"kind": "Eviction", "apiVersion": "policy/v1beta1", "metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}
    body = protobuf.encode(eviction)

    assert body is not None
    assert protobuf.decode(body)["deleteOptions"]["gracePeriodSeconds"] == 0
    assert protobuf.decode(body)["apiVersion"] == "policy/v1beta1"
