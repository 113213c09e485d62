"""Vectors of patches, translated to calls of `clusterwright.topology.patches`."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any

from clusterwright.api.contract import NoContract, contract_of
from clusterwright.topology.extensions import Asking, CallHandler, ExtensionError
from clusterwright.topology.model import Blueprint, Desired, DesiredWorker, WorkerTemplates
from clusterwright.topology.patches import PatchError, apply_patches, patch_variables


def blueprint_of(inputs: dict[str, Any]) -> Blueprint:
    templates = inputs["templates"]
    contract, problem = None, ""
    for crd in inputs.get("crds") or ():
        try:
            contract = contract_of(crd["metadata"], templates["controlPlane"]["apiVersion"].partition("/")[2])
        except NoContract as error:
            problem = str(error)

    def workers(kind: str) -> dict[str, WorkerTemplates]:
        return {name: WorkerTemplates(t["bootstrap"], t["infrastructure"]) for name, t in (templates.get(kind) or {}).items()}

    return Blueprint(
        inputs["clusterClass"],
        templates["infrastructureCluster"],
        templates["controlPlane"],
        templates.get("controlPlaneMachine"),
        workers("machineDeployments"),
        workers("machinePools"),
        contract,
        problem,
    )


def desired_of(inputs: dict[str, Any]) -> Desired:
    given = copy.deepcopy(inputs["desired"])

    def workers(kind: str) -> dict[str, DesiredWorker]:
        return {name: DesiredWorker(w["object"], w["bootstrap"], w["infrastructure"]) for name, w in (given.get(kind) or {}).items()}

    return Desired(
        inputs["cluster"],
        given["infrastructureCluster"],
        given["controlPlane"],
        given.get("controlPlaneMachine"),
        None,
        workers("machineDeployments"),
        workers("machinePools"),
    )


def listed(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def variables_of(inputs: dict[str, Any]) -> dict[str, Any]:
    found = patch_variables(inputs["cluster"], inputs["clusterClass"], desired_of(inputs), inputs["from"])
    return {
        "global": listed(found.everywhere),
        "controlPlane": listed(found.control_plane),
        "machineDeployments": {name: listed(v) for name, v in found.machine_deployments.items()},
        "machinePools": {name: listed(v) for name, v in found.machine_pools.items()},
    }


def answered(question: CallHandler, responses: dict[str, Any]) -> dict[str, Any]:
    """The canned answer, in which items are named by their holders."""
    canned = responses[question.handler]
    if "error" in canned:
        raise ExtensionError(canned["error"])
    items = []
    for item in canned.get("items") or ():
        wanted = item.get("holder")
        uids = [
            r["uid"]
            for r in question.request["items"]
            if wanted is not None and all(r["holderReference"].get(k) == v for k, v in wanted.items())
        ]
        patch = base64.b64encode(item["patch"].encode()).decode()
        items += [{"uid": uid, "patchType": item.get("patchType"), "patch": patch} for uid in uids or [item.get("uid", "unknown")]]
    return {"status": "Success", "items": items}


def run(asking: Asking[Desired], responses: dict[str, Any]) -> Desired:
    try:
        question: Any = next(asking)
        while True:
            try:
                answer = answered(question, responses)
            except ExtensionError as error:
                question = asking.throw(error)
            else:
                question = asking.send(answer)
    except StopIteration as done:
        result: Desired = done.value
        return result


def patched(inputs: dict[str, Any]) -> dict[str, Any]:
    desired = desired_of(inputs)
    try:
        run(apply_patches(inputs["cluster"], blueprint_of(inputs), desired, runtime_sdk=True), inputs.get("responses") or {})
    except PatchError:
        return {"error": True}

    def specs(workers: dict[str, DesiredWorker]) -> dict[str, Any]:
        return {name: {"bootstrap": w.bootstrap.get("spec"), "infrastructure": w.infrastructure.get("spec")} for name, w in workers.items()}

    machine = desired.control_plane_machine
    return {
        "specs": {
            "infrastructureCluster": desired.infrastructure_cluster.get("spec"),
            "controlPlane": desired.control_plane.get("spec"),
            "controlPlaneMachine": machine.get("spec") if machine is not None else None,
            "machineDeployments": specs(desired.machine_deployments),
            "machinePools": specs(desired.machine_pools),
        }
    }


OPERATIONS = {"patch-variables": variables_of, "apply-patches": patched}
