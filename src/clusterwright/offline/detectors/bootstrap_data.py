"""Find unusable bootstrap data: lost, in an unknown format, for another cluster, or behind an unreadable lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from clusterwright.api.contract import crd_name
from clusterwright.api.meta import Unstructured
from clusterwright.offline.complaints import Complaint, Tier, with_cause
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of
from clusterwright.offline.words import TOKEN

_FORMAT: Final = "unknown format '"
"""Example: `user data has the unknown format 'powershell'`."""
_HASHES: Final = "caCertHashes"


def bootstrap_data(known: Known) -> Iterator[Found]:
    """Yield faults of bootstrap data that keep machines from booting."""
    yield from _lock(known)
    for _, machine in known.of_kind("Machine"):
        if machine.metadata.deletion_timestamp is not None:
            continue
        infrastructure = known.named(machine, "infrastructureRef")
        yield from _keys(known, machine, infrastructure)
        for source in (infrastructure, known.named(machine, "configRef")):
            for complaint in known.complaints.get(source, ()):
                yield from _of_words(known, machine, source, complaint)


def _lock(known: Known) -> Iterator[Found]:
    if known.cluster is None:
        return
    name = name_of("ConfigMap", known.cluster.key.namespace, f"{known.cluster.key.name}-lock")
    lock = known.objects.get(name)
    if lock is None:
        return
    text = lock.at("data", "lock-information")
    try:
        told = msgspec.json.decode(str(text or "null"))
        if isinstance(told, dict) and told.get("machineName"):
            return
    except msgspec.DecodeError:
        pass
    complaint = Complaint(
        Tier.ERROR,
        "cannot be read, so that no Machine of the control plane may be the first: data.lock-information names no Machine",
        path="data.lock-information",
        cause="lock.unreadable",
        facts={"namespace": lock.key.namespace, "name": lock.key.name},
    )
    waiting = [n for n, o in known.of_kind("KubeadmConfig", "KubeadmControlPlane") if known.complaints.get(n)]
    yield Found(object=name, complaint=complaint, explains=dict.fromkeys(waiting, "needs the lock"))


def _keys(known: Known, machine: Unstructured, infrastructure: str) -> Iterator[Found]:
    """Yield a Secret with bootstrap data under another key than the one that providers read."""
    name = str(machine.at("spec", "bootstrap", "dataSecretName") or "")
    secret = known.objects.get(name_of("Secret", machine.key.namespace, name))
    keys = sorted(secret.at("data") or {}) if secret is not None else []
    if secret is None or "value" in keys or machine.at("status", "nodeRef"):
        return
    text = f"has no key value, from which machines boot, but {', '.join(keys) or 'nothing'}"
    facts = {"namespace": machine.key.namespace, "secret": name, "machine": machine.key.name}
    since = str(machine.at("metadata", "creationTimestamp") or "")
    complaint = Complaint(Tier.ERROR, text, since, path="data.value", cause="data.key", facts=facts)
    yield Found(object=name_of("Secret", *secret.key), complaint=complaint, explains={infrastructure: "boots from it"}, is_all=True)


def _of_words(known: Known, machine: Unstructured, infrastructure: str, complaint: Complaint) -> Iterator[Found]:
    namespace = machine.key.namespace
    if found := complaint.raw.partition(_FORMAT)[2].partition("'")[0]:
        secret = str(machine.at("spec", "bootstrap", "dataSecretName") or "")
        facts = {"namespace": namespace, "secret": secret, "wanted": "cloud-config or ignition"}
        better = with_cause(
            complaint, "data.format", facts, tier=Tier.ERROR, text=f"Secret {secret} has bootstrap data of the unknown format {found!r}"
        )
        yield Found(object=infrastructure, complaint=better, is_all=True)
    elif _HASHES in complaint.raw:
        config = known.objects.get(known.named(machine, "configRef"))
        template = _template(known, machine, config)
        if template is None:
            return
        resource = f"{crd_name(template.gvk.group, template.kind).partition('.')[0]}/{template.key.name}"
        facts = {"namespace": namespace, "template": f"{template.kind} {template.key.name}", "resource": resource}
        facts["machine"] = machine.key.name
        yield Found(object=infrastructure, complaint=with_cause(complaint, "data.hashes", facts, tier=Tier.ERROR), is_all=True)
    elif TOKEN.said_in(complaint.raw):
        facts = {"namespace": namespace, "machine": machine.key.name}
        path = complaint.path or "spec.joinConfiguration.discovery.bootstrapToken"
        better = with_cause(complaint, "machine.unbootable", facts, tier=Tier.ERROR, path=path)
        yield Found(object=infrastructure, complaint=better, is_all=True)


def _template(known: Known, machine: Unstructured, config: Unstructured | None) -> Unstructured | None:
    """Return the object whose author wrote the Machine's bootstrap config."""
    for kind in ("KubeadmControlPlane", "MachineDeployment", "MachineSet"):
        owner = known.owner(machine, kind)
        if owner is not None:
            return owner if kind == "KubeadmControlPlane" else known.objects.get(known.named(owner, "configRef"), config)
    return config
