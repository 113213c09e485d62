"""Built-in kinds that nothing acts on: what clients count on when they create, read, change and delete them."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apiserver_testing import APPLY, Api, make_server

POD = {"containers": [{"name": "c", "image": "i"}]}
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("v1", "podtemplates"): {"kind": "PodTemplate", "template": {"spec": POD}},
    ("v1", "replicationcontrollers"): {
        "kind": "ReplicationController",
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}},
    },
    ("batch/v1", "jobs"): {"kind": "Job", "spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}},
    ("batch/v1", "cronjobs"): {
        "kind": "CronJob",
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}},
    },
    ("autoscaling/v1", "horizontalpodautoscalers"): {
        "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
    },
    ("certificates.k8s.io/v1", "certificatesigningrequests"): {
        "kind": "CertificateSigningRequest",
        "spec": {"request": "eA==", "signerName": "example.com/s", "usages": ["client auth"]},
    },
    ("networking.k8s.io/v1", "ingresses"): {"kind": "Ingress", "spec": {"rules": [{"host": "h"}]}},
    ("networking.k8s.io/v1", "ingressclasses"): {"kind": "IngressClass", "spec": {"controller": "example.com/c"}},
    ("networking.k8s.io/v1", "networkpolicies"): {"kind": "NetworkPolicy", "spec": {"egress": [{"ports": [{"port": 53}]}]}},
    ("networking.k8s.io/v1", "servicecidrs"): {"kind": "ServiceCIDR", "spec": {"cidrs": ["10.0.0.0/24"]}},
    ("node.k8s.io/v1", "runtimeclasses"): {"kind": "RuntimeClass", "handler": "runc"},
    ("scheduling.k8s.io/v1", "priorityclasses"): {"kind": "PriorityClass", "value": 7},
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas"): {
        "kind": "FlowSchema",
        "spec": {"priorityLevelConfiguration": {"name": "exempt"}},
    },
    ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations"): {
        "kind": "PriorityLevelConfiguration",
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}},
    },
    ("storage.k8s.io/v1", "csistoragecapacities"): {"kind": "CSIStorageCapacity", "storageClassName": "s", "capacity": "1Gi"},
    ("storage.k8s.io/v1", "volumeattributesclasses"): {"kind": "VolumeAttributesClass", "driverName": "d"},
    ("apiregistration.k8s.io/v1", "apiservices"): {
        "kind": "APIService",
        "spec": {"group": "g", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
    },
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"): {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {"matchConstraints": {"resourceRules": []}, "validations": [{"expression": "true"}]},
    },
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"): {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    },
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies"): {
        "kind": "MutatingAdmissionPolicy",
        "spec": {
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        },
    },
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings"): {
        "kind": "MutatingAdmissionPolicyBinding",
        "spec": {"policyName": "p"},
    },
    ("resource.k8s.io/v1", "deviceclasses"): {"kind": "DeviceClass", "spec": {}},
    ("resource.k8s.io/v1", "resourceclaims"): {
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
    },
}
CLUSTER = {
    "certificatesigningrequests", "ingressclasses", "servicecidrs", "runtimeclasses", "priorityclasses", "flowschemas",
    "prioritylevelconfigurations", "volumeattributesclasses", "apiservices", "validatingadmissionpolicies", "deviceclasses",
    "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
}  # fmt: skip


def path(version: str, plural: str) -> str:
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{prefix}/{plural}" if plural in CLUSTER else f"{prefix}/namespaces/default/{plural}"


def sample(version: str, plural: str, name: str = "x") -> dict[str, Any]:
    return {"apiVersion": version, **SAMPLES[version, plural], "metadata": {"name": name}}


@pytest.mark.parametrize(("version", "plural"), sorted(SAMPLES))
async def test_a_further_kind_can_be_created_changed_and_deleted(api: Api, version: str, plural: str):
    here = path(version, plural)
    name = "v1.g" if plural == "apiservices" else "x"
    made = await api.post(here, sample(version, plural, name), fieldValidation="Strict")
    assert made.status == 201, made
    again = await api.put(f"{here}/{name}", made.json)
    assert (again.status, again.rv) == (200, made.rv), again
    labelled = await api.merge(f"{here}/{name}", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["labels"]["a"] == "b"
    applied = await api.do(
        "PATCH",
        f"{here}/{name}",
        {**sample(version, plural, name), "metadata": {"annotations": {"k": "v"}}},
        APPLY,
        fieldManager="m",
        force="true",
    )
    assert applied.status == 200, applied
    assert (await api.get(here, labelSelector="a=b")).names == [name]
    shown = await api.do("GET", here, headers={"accept": TABLE})
    assert [row["cells"][0] for row in shown["rows"]] == [name]
    assert {len(row["cells"]) for row in shown["rows"]} == {len(shown["columnDefinitions"])}
    assert (await api.delete(here, labelSelector="a=b", propagationPolicy="Background")).status == 200
    assert (await api.get(f"{here}/{name}")).status == 404


@pytest.mark.parametrize(
    ("version", "plural", "field", "value"),
    [
        ("v1", "replicationcontrollers", "spec.selector", {"a": "b"}),
        ("batch/v1", "jobs", "spec.backoffLimit", 6),
        ("batch/v1", "jobs", "spec.parallelism", 1),
        ("batch/v1", "cronjobs", "spec.successfulJobsHistoryLimit", 3),
        ("autoscaling/v1", "horizontalpodautoscalers", "spec.minReplicas", 1),
        ("networking.k8s.io/v1", "networkpolicies", "spec.policyTypes", ["Ingress", "Egress"]),
        ("networking.k8s.io/v1", "networkpolicies", "spec.egress", [{"ports": [{"protocol": "TCP", "port": 53}]}]),
        ("scheduling.k8s.io/v1", "priorityclasses", "preemptionPolicy", "PreemptLowerPriority"),
        ("flowcontrol.apiserver.k8s.io/v1", "flowschemas", "spec.matchingPrecedence", 1000),
        ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", "spec.limited.nominalConcurrencyShares", 30),
        ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", "spec.limited.limitResponse.queuing.queues", 64),
        ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "spec.failurePolicy", "Fail"),
        ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "spec.matchConstraints.matchPolicy", "Equivalent"),
    ],
)
async def test_defaults_that_clients_count_on(api: Api, version: str, plural: str, field: str, value: Any):
    found: Any = (await api.post(path(version, plural), sample(version, plural))).json
    for step in field.split("."):
        found = found[step]
    assert found == value


async def test_a_job_chooses_its_pods_by_its_uid(api: Api):
    made = await api.post(path("batch/v1", "jobs"), sample("batch/v1", "jobs"))

    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "x"


async def test_a_job_that_always_restarts_is_refused(api: Api):
    refused = await api.post(path("batch/v1", "jobs"), {**sample("batch/v1", "jobs"), "spec": {"template": {"spec": POD}}})

    assert refused.status == 422
    assert [c["field"] for c in refused["details"]["causes"]] == ["spec.template.spec.restartPolicy"]


async def test_a_job_leaves_its_pods_behind_unless_told_otherwise(api: Api):
    jobs = path("batch/v1", "jobs")
    await api.post(jobs, sample("batch/v1", "jobs"))

    gone = await api.delete(f"{jobs}/x")

    assert gone["metadata"]["finalizers"] == ["orphan"]
    assert gone.warnings[0].startswith("child pods are preserved by default when jobs are deleted")


async def test_an_autoscaler_has_two_versions(api: Api):
    old, new = path("autoscaling/v1", "horizontalpodautoscalers"), path("autoscaling/v2", "horizontalpodautoscalers")
    body = sample("autoscaling/v1", "horizontalpodautoscalers")
    body["spec"]["targetCPUUtilizationPercentage"] = 55
    assert (await api.post(old, body))["spec"]["targetCPUUtilizationPercentage"] == 55

    shown = await api.get(f"{new}/x")
    assert shown["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 55}
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 10}}}
    changed = await api.put(f"{new}/x", {**shown.json, "spec": {**shown["spec"], "metrics": [memory]}})
    assert changed.status == 200
    assert "targetCPUUtilizationPercentage" not in (await api.get(f"{old}/x"))["spec"]
    kept = await api.merge(f"{old}/x", {"spec": {"maxReplicas": 9}})
    assert kept.status == 200
    assert (await api.get(f"{new}/x"))["spec"]["metrics"] == [memory]


async def test_a_signing_request_records_its_user_and_is_approved_separately(api: Api):
    here = path("certificates.k8s.io/v1", "certificatesigningrequests")
    body = sample("certificates.k8s.io/v1", "certificatesigningrequests")
    body["spec"]["username"] = "somebody-else"
    made = await api.post(here, body)
    assert (made["spec"]["username"], made["spec"]["groups"]) == ("kubernetes-admin", ["system:masters", "system:authenticated"])

    approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
    answer = await api.put(f"{here}/x/approval", {**made.json, "status": {"conditions": [approved]}})
    assert (answer.status, answer["status"]["conditions"][0]["type"]) == (200, "Approved")
    changed = await api.merge(f"{here}/x", {"spec": {"signerName": "example.com/other"}})
    assert changed["spec"]["signerName"] == "example.com/s"


async def test_reserved_and_fixed_priorities(api: Api):
    here = path("scheduling.k8s.io/v1", "priorityclasses")
    body = sample("scheduling.k8s.io/v1", "priorityclasses")
    assert (await api.post(here, {**body, "metadata": {"name": "system-mine"}})).status == 422
    assert (await api.post(here, {**body, "value": 2_000_000_000})).status == 422
    await api.post(here, body)
    refused = await api.merge(f"{here}/x", {"value": 8})
    assert (refused.status, refused["details"]["causes"][0]["field"]) == (422, "value")


async def test_pods_are_bound_by_name():
    api = Api.of(make_server())
    await api.post("/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": POD})
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}

    assert (await api.post("/api/v1/namespaces/default/bindings", binding)).status == 201

    assert (await api.get("/api/v1/namespaces/default/pods/p"))["spec"]["nodeName"] == "n"
