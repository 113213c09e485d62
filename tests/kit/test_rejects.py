"""The kit rejects every broken provider by the rule that it breaks, and accepts the correct ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.wire import Request, Response
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.conformance import ROLES, RULES, Judgement, Options, Pace, Write, as_text, decide, evidence, judge
from clusterwright.runtime.rest import RestClient
from clusterwright.testing import Plane, run_virtual, virtual_plane
from kit.broken import RUNNING, STATIC, Broken
from kit.definitions import GROUP, GROUPS, definitions, template
from kit.fakes import Fake, Process

PACE = Pace(settle=5.0, steady=30.0, within=40.0)
GOOD = (
    *(Broken(role, "", f"good-{contract}", contract=contract) for role in ROLES for contract in ("v1beta2", "v1beta1")),
    Broken("InfraCluster", "", "endpoint-given", switch="endpoint-given"),
)


def name_of(row: Broken) -> str:
    return f"{row.rule}-{row.role}-{row.name}-{row.contract}"


UNSEEN = {
    *("IC-12", "IM-15", "MP-16", "BC-13", "BC-14", "CP-8", "CP-10", "CP-15", "CP-16", "CP-17", "CP-18", "CP-19"),  # no API shows them
    *("IC-13", "IM-16", "MP-17", "BC-12", "BC-15", "CP-20"),  # they only advise
}
"""Rules that no provider is rejected by."""


def test_every_other_rule_rejects_a_broken_provider() -> None:
    assert {rule.id for rule in RULES} - {row.rule for row in (*STATIC, *RUNNING)} == UNSEEN


@pytest.mark.parametrize("row", STATIC, ids=name_of)
def test_broken_definitions_are_rejected_by_their_rule(row: Broken) -> None:
    kind, of_template = definitions(row.role, contract=row.contract)
    assert decide(evidence(row.role, kind, of_template)).broken == ()
    assert row.change is not None
    row.change(kind, of_template)
    present = of_template if of_template["spec"]["names"]["kind"] == "GoodMachineTemplate" or row.role != "InfraMachine" else None
    assert row.rule in decide(evidence(row.role, kind, present)).broken


async def judged(plane: Plane, number: int, row: Broken, writes: Sequence[Write]) -> Judgement:
    """Judge one provider, with kinds of its own."""
    prefix = f"P{number}x"
    kind, of_template = definitions(row.role, prefix, row.contract)
    await plane.apply([kind, of_template, *policy(row, of_template)])
    gvk = GroupVersionKind(GROUPS.get(row.role, GROUP), "v1", kind["spec"]["names"]["kind"])
    cloud: dict[str, str] = {}
    client = RestClient(InProcessTransport(plane.server), clock=plane.clock)
    process = Process(lambda: Fake(client, gvk, row.role, row.contract, row.switch, cloud))
    process.start()
    options = Options(
        prefix=prefix.lower(), pace=PACE, failure_domain="a", restart=process.restart, writes=lambda: writes, secret=f"hidden-{number}-text"
    )
    given = template(row.role, prefix)
    if row.switch == "endpoint-given":
        given["spec"]["template"]["spec"] = {"controlPlaneEndpoint": {"host": "api.example.com", "port": 6443}}
    try:
        return await judge(client, row.role, given, options)
    finally:
        await process.stop()


def policy(row: Broken, of_template: Json) -> list[Json]:
    """Return a webhook's stand-in that refuses every change of a template, also in a dry run."""
    if row.switch != "dry-run-refused":
        return []
    plural = of_template["spec"]["names"]["plural"]
    rule = {"apiGroups": [GROUPS.get(row.role, GROUP)], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [plural]}
    head: Any = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": plural}}
    checks = [{"expression": "object.spec.template.spec == oldObject.spec.template.spec", "message": "templates are immutable"}]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": checks}
    bound = {"policyName": plural, "validationActions": ["Deny"]}
    return [
        {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec},
        {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound},
    ]


def all_judged(rows: Sequence[Broken]) -> dict[str, Judgement]:
    """Judge many providers at once, on one plane."""

    async def main() -> dict[str, Judgement]:
        async with virtual_plane() as plane:
            writes: list[Write] = []
            loop = asyncio.get_running_loop()

            def log(request: Request, user: User, response: Response) -> None:
                writes.append(Write(loop.time(), request.path, response.status))

            plane.server.audit = log
            done = await asyncio.gather(*(judged(plane, number, row, writes) for number, row in enumerate(rows)))
            return dict(zip(map(name_of, rows), done, strict=True))

    return run_virtual(main())


def test_correct_providers_are_accepted() -> None:
    for name, judgement in all_judged(GOOD).items():
        assert judgement.conforms, f"{name}\n{as_text([judgement])}"


FIRST = tuple({row.rule: row for row in reversed(RUNNING)}.values())
"""One broken provider for each rule."""


@pytest.mark.parametrize("rows", [FIRST, pytest.param(RUNNING, marks=pytest.mark.soak)], ids=["one of each rule", "all"])
def test_broken_providers_are_rejected_by_their_rule(rows: Sequence[Broken]) -> None:
    missed = {
        name_of(row): judgement.broken
        for row, judgement in zip(rows, all_judged(rows).values(), strict=True)
        if row.rule not in judgement.broken
    }
    assert missed == {}
