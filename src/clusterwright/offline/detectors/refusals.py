"""Find refusals of API requests: webhooks that do not answer, rules that deny, rights, quotas and gates that lack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from clusterwright.api.contract import crd_name
from clusterwright.api.copying import replace
from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Tier, used_up, with_cause
from clusterwright.offline.detectors.passes import FAILS
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of

_REFUSED: Final = re.compile(
    r'failed calling webhook "(?P<down>[^"]+)": (?:failed to call webhook: )?(?P<why>[^\n]*)'
    r'|(?P<rule>admission webhook "(?P<webhook>[^"]+)" denied|ValidatingAdmissionPolicy \'(?P<policy>[^\']+)\')'
    r'|User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<plural>[^"/]+)/?(?P<below>[^"]*)" in API group "(?P<group>[^"]*)"'
    r"|if (?:the )?(?P<gate>\w+) feature (?:flag|gate) is (?:disabled|not enabled)"
    r"|exceeded quota: (?P<quota>[a-z0-9.-]+)"
)
"""Examples: `failed calling webhook "a.example.com": connection refused`, `admission webhook "a.example.com" denied the request: no`,
`User "u" cannot get resource "nodes" in API group ""`, `if the MachinePool feature flag is disabled`, `exceeded quota: team`."""


def refusals(known: Known) -> Iterator[Found]:
    """Yield the objects whose messages report a refusal, or the webhook or quota behind it."""
    for name, complaint in known.everything_told():
        found = None if complaint.cause not in {"", FAILS} else _REFUSED.search(complaint.raw or complaint.text)
        if found is not None and name in known.objects:
            told = {key: value for key, value in found.groupdict().items() if value}
            yield from _found(known, name, known.objects[name], complaint, told)
        if complaint.about == "ScalingUp" and complaint.tier is Tier.UNHEALTHY:
            yield from _spent(known, name, complaint)


def _found(known: Known, name: str, obj: Unstructured, complaint: Complaint, told: Mapping[str, str]) -> Iterator[Found]:
    resource = (
        f"{crd_name(obj.gvk.group, obj.kind).partition('.')[0]}/{obj.key.name}" if obj.gvk.group else f"{obj.kind.lower()}/{obj.key.name}"
    )
    facts = {"object": f"{obj.kind} {obj.key.name}", "namespace": obj.key.namespace, "resource": resource, **told}
    if webhook := told.get("down"):
        yield _unanswered(known, name, complaint, webhook, told["why"])
        return
    if quota := known.objects.get(name_of("ResourceQuota", obj.key.namespace, told.get("quota", ""))):
        better = _quota(quota, complaint.text, complaint.since)
        yield Found(object=name_of(quota.kind, *quota.key), complaint=better, explains={name: "a request exceeds it"})
        return
    if "rule" in told:
        cause, facts["rule"] = "admission.denied", f"{'webhook' if 'webhook' in told else 'policy'} {told.get('webhook') or told['policy']}"
    elif "user" in told:
        below = told.get("below", "")
        what = told["plural"] + (f".{told['group']}" if told.get("group") else "")
        cause, facts["what"] = "rights.lacking", what + (f"/{below}" if below else "")
        facts["asked"] = what + (f" --subresource={below}" if below else "")
    elif "gate" in told:
        cause = "gate.off"
    else:
        return
    yield Found(object=name, complaint=with_cause(complaint, cause, facts, secondary=complaint.secondary), replaces=complaint)


def _unanswered(known: Known, name: str, complaint: Complaint, webhook: str, why: str) -> Found:
    configuration = known.webhooks.get(webhook)
    hooks = configuration.at("webhooks") if configuration is not None else None
    named = [h for h in hooks if h.get("name") == webhook] if isinstance(hooks, list) else []
    service = named[0].get("clientConfig", {}).get("service") or {} if named else {}
    look = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
    if service:
        look = f"kubectl -n {service.get('namespace')} get endpointslices,pods -l kubernetes.io/service-name={service.get('name')}"
    elif configuration is not None:
        look = f"kubectl get {configuration.kind.lower()} {configuration.metadata.name} -o yaml"
    where = f" (Service {service.get('namespace')}/{service.get('name')})" if service else ""
    facts = {"webhook": f"{webhook}{where}", "look": look}
    cause = "webhook.certificate" if "x509" in why else "webhook.down"
    if configuration is None:
        return Found(object=name, complaint=with_cause(complaint, cause, facts, secondary=complaint.secondary), replaces=complaint)
    text = f"the webhook {webhook} cannot be asked, and nothing is written without it that it has to see: {why}"
    better = Complaint(Tier.ERROR, text, complaint.since, path="webhooks", cause=cause, facts=facts)
    name_of_it = name_of(configuration.kind, "", configuration.metadata.name)
    return Found(object=name_of_it, complaint=better, explains={name: "writes are refused"}, definition=configuration)


def _spent(known: Known, name: str, complaint: Complaint) -> Iterator[Found]:
    """Yield the quotas that are used up while Machines are wanted and do not appear."""
    for quota_name, quota in known.of_kind("ResourceQuota"):
        if spent := used_up(quota):
            better = _quota(quota, f"is used up: {spent}", complaint.since)
            yield Found(object=quota_name, complaint=better, explains={name: "may not create more"})


def _quota(quota: Unstructured, text: str, since: str) -> Complaint:
    facts = {"name": quota.key.name, "namespace": quota.key.namespace}
    return replace(Complaint(Tier.ERROR, text, since), path="spec.hard", cause="quota.spent", facts=facts)
