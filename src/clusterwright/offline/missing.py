"""Find objects, keys and certificates that are missing or malformed although other objects need them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from clusterwright.conditions.words import plural
from clusterwright.offline.complaints import (
    TEMPLATE,
    Complaint,
    Reference,
    Tier,
    has_delivered,
    is_built_in,
    is_template_expected,
    references,
    secret_sources,
)
from clusterwright.offline.credentials import (
    CERTIFICATE_AUTHORITIES,
    EXTERNAL_ETCD,
    KEYS,
    external_etcd_secrets,
    suspicions,
)
from clusterwright.offline.detectors.workload_objects import is_in_workload
from clusterwright.offline.nodes import Node
from clusterwright.offline.ownership import class_of, resources
from clusterwright.offline.ownership import name_of as node_id
from clusterwright.offline.reported import Reported
from clusterwright.offline.words import ABSENT, CERTIFICATES, names_in

_CORE_REFERENCES = ("infrastructureRef", "controlPlaneRef", "configRef", "templateRef", "dataSecretName", "classRef", "topology.class")
_RESOURCES = "spec.resources["
_NOT_FOUND = re.compile(r'(?<![A-Za-z0-9.-])([A-Za-z]++)(?:\.[a-z0-9.-]++)?+ "(?:[a-z0-9-]+/)?([a-z0-9.-]+)" not found')


class MissingObjects(Reported):
    """The reported complaints, and complaints about objects that are named and missing."""

    def look_for_absences(self) -> None:
        """Follow every reference, then the words of messages, and look at the Secrets that are named after the cluster."""
        nodes = [n for n in self.nodes.values() if "#" not in n.id]
        for node in nodes:
            self._follow_references(node)
        nodes.sort(key=lambda n: n is self.cluster)  # it often repeats what others say
        for node in nodes:  # only objects that no field names: a field shows better than a message who must act
            self._follow_words(node)
        self._look_at_credentials()

    def _follow_references(self, node: Node) -> None:
        """Complain about missing objects that others name. An object that is being deleted may have lost them."""
        if node.object is None or node.deleting:
            return
        if node.kind == "MachineSet" and not node.object.at("spec", "replicas"):
            return  # an old revision: its templates may be gone
        named = list(references(node.object.at("spec"), home=node.namespace))
        secret = node.object.at("spec", "bootstrap", "dataSecretName")
        if isinstance(secret, str) and secret and not node.object.at("status", "nodeRef"):
            named.append(Reference("", "Secret", secret, "spec.bootstrap.dataSecretName"))
        if any("secret" in c.raw.lower() for c in node.complaints):  # a Secret that is not needed any more is not at fault
            named += secret_sources(node.object.at("spec"))
        named += self._unapplied(node)
        named += external_etcd_secrets(node.object, self.cluster.name) if self.cluster and _lacks_certificates(node) else []
        named += class_of(node.object)
        for reference in named:
            if is_template_expected(node.kind, reference) and not reference.kind.endswith("Template"):
                text = f"names {reference.kind} {reference.name} in {reference.path}, which is not a template"
                facts = {"object": f"{node.kind} {node.name}", "path": reference.path, "namespace": node.namespace}
                facts["resource"] = f"{plural(node.kind.lower())}/{node.name}"
                begun = node.worst.since if node.worst else ""
                bad = Complaint(Tier.ERROR, text, begun, TEMPLATE, path=reference.path, cause="reference.template", facts=facts)
                node.complaints.append(bad)
            target = node_id(reference.kind, reference.namespace or node.namespace, reference.name)
            found = self.nodes.get(target)
            if found is not None and found.object is not None:
                self._look_at_content(node, found, reference)
            elif self._is_surely_missing(node, reference):
                self._miss(node, target, reference)

    def _look_at_content(self, node: Node, source: Node, reference: Reference) -> None:
        """Complain about a Secret or ConfigMap that lacks a key that others need, or has content that cannot be used."""
        data = source.object.at("data") if source.object is not None else None
        more: dict[str, Any] = {}
        if reference.key and not (isinstance(data, Mapping) and reference.key in data):
            text = f"has no key {reference.key}, which {node.id} asks for in {reference.path}"
            facts = {"key": reference.key, "path": reference.path, "object": f"{node.kind} {node.name}", "namespace": node.namespace}
            facts |= {"source": f"{source.kind} {source.name}", "resource": f"{source.kind.lower()}/{source.name}"}
            more = {"path": f"data[{reference.key}]", "cause": "secret.key", "facts": facts}
        elif reference.path.startswith(_RESOURCES) and node.complaints and self._shared("connection") is None:
            text = f"could not be applied by {node.id}"
        else:
            return
        source.complaints.append(Complaint(Tier.ERROR, text, node.worst.since if node.worst else "", **more))
        node.because_of[source.id] = f"refers to it in {reference.path}"

    def _unapplied(self, node: Node) -> list[Reference]:
        """Return the sources that a ClusterResourceSet has not applied, by its binding: its conditions report no missing source."""
        named = list(resources(node.object)) if node.object is not None else []
        binding = self.nodes.get(node_id("ClusterResourceSetBinding", node.namespace, self.cluster.name)) if self.cluster else None
        if not named or binding is None or binding.object is None:
            return named if node.complaints else []
        sets = [b for b in _mappings(binding.object.at("spec", "bindings")) if b.get("clusterResourceSetName") == node.name]
        applied = {(r.get("kind"), r.get("name")) for b in sets for r in _mappings(b.get("resources")) if r.get("applied") is True}
        return [r for r in named if (r.kind, r.name) not in applied]

    def _is_surely_missing(self, node: Node, reference: Reference) -> bool:
        """Return whether the object is known to be missing: the author of the bundle may not have listed all kinds.

        These are proofs: other objects of its kind, its CRD, a message that says so, or a bundle with Events and Secrets (a full dump).
        It is likely enough if there are other objects of its API group and the object that names it is in trouble.
        """
        if reference.kind in self._unseen or (reference.group and is_built_in(reference.group)):
            return False
        if reference.namespace:
            return any(ABSENT.said_in(c.raw) and reference.name in c.raw for c in node.complaints)  # only this namespace was listed
        if reference.kind in self._kinds or reference.kind in self._served or self._seen:
            return True  # an object that was searched and not found does not exist, nor does one whose kind is not served
        if reference.path.startswith(_RESOURCES) or reference.path.endswith(EXTERNAL_ETCD):
            return True  # the binding, or the lack of certificates, proves it
        if {"Event", "Secret"} <= self._dumped and reference.path.endswith(_CORE_REFERENCES):
            return True
        if (
            reference.group
            and reference.group in self._groups
            and reference.path.endswith(_CORE_REFERENCES)
            and node.tier <= Tier.UNHEALTHY
        ):
            return True
        if reference.path.endswith("dataSecretName"):
            return False  # many leave Secrets out of a bundle
        speakers = (node, self.cluster) if node.kind == "ClusterClass" and self.cluster is not None else (node,)
        words = " ".join(c.raw or c.text for speaker in speakers for c in speaker.complaints)
        # a name alone proves nothing: a Machine and the objects that it refers to often share one
        return reference.kind in words or (reference.kind.lower() in words.lower() and reference.name in words)

    def _miss(self, referrer: Node, target: str, reference: Reference) -> None:
        missing = self.nodes.get(target)
        if missing is None:
            missing = Node(target, reference.kind, referrer.namespace, reference.name)
            self.nodes[target] = missing
        by = referrer.id.partition("#")[0]
        missing.referrers.append(by)
        worst = referrer.worst
        text = f"does not exist, but {by} names it in {reference.path}" if by == referrer.id else f"does not exist, but {by} needs it"
        is_unserved = bool(self._seen) and reference.kind not in self._seen and not reference.namespace
        if reference.group and (is_unserved or self._is_said_to_be_unserved(reference.kind)):
            text += f"; no {reference.kind} is served here at all: its provider is not installed"
        path = reference.path if reference.path.startswith("spec") else ""
        missing.complaints.append(Complaint(Tier.MISSING, text, worst.since if worst else "", path=path))
        if not referrer.complaints:
            referrer.complaints.append(Complaint(Tier.PROGRESS, f"refers to {target}, which does not exist"))
        referrer.because_of[target] = f"refers to it in {reference.path}"

    def _is_said_to_be_unserved(self, kind: str) -> bool:
        words = f'no matches for kind "{kind}"'
        return any(words in c.raw for n in self.nodes.values() for c in n.complaints)

    def _follow_words(self, node: Node) -> None:
        """Complain about objects that a message reports as not found."""
        for complaint in list(node.complaints):
            for match in _NOT_FOUND.finditer(complaint.raw):
                word = match[1]
                kind = word if word in self._kinds else self._plurals.get(word.lower(), "")
                kind = kind or {"secrets": "Secret", "configmaps": "ConfigMap"}.get(word.lower(), "")
                target = node_id(kind, node.namespace, match[2])
                if is_in_workload(kind, match[2]):
                    continue  # it was looked for in the workload cluster
                if kind and target not in self._there and target not in self.nodes:
                    self._miss(node, target, Reference("", kind, match[2], "its messages"))

    # ---------------------------------------------------------------------------------------- credentials

    def _look_at_credentials(self) -> None:
        """Complain about Secrets of the cluster that look wrong, if the cluster has trouble that they could explain."""
        cluster = self.cluster
        if cluster is None or cluster.deleting:
            return
        found = {p: self.nodes.get(node_id("Secret", cluster.namespace, f"{cluster.name}-{p}")) for p in KEYS}
        self._miss_certificates(cluster, {p for p, secret in found.items() if secret is None})
        complaining = [n for n in self.nodes.values() if any(CERTIFICATES.said_in(f"{c.about} {c.raw}") for c in n.complaints)]
        connection = self.nodes.get(self._shared("connection") or "") if self._shared("initialization") is None else None
        if not complaining and connection is None:
            return
        for node, purpose in [(n, p) for n in complaining for p, secret in found.items() if secret is None and "Secret" in self._kinds]:
            if any(purpose in names_in(c.raw.replace("-", " ")) for c in node.complaints):
                name = f"{cluster.name}-{purpose}"
                self._miss(node, node_id("Secret", cluster.namespace, name), Reference("", "Secret", name, "its messages"))
        secrets = {p: n.object for p, n in found.items() if n is not None and n.object is not None}
        used = [n.object.at("spec", "bootstrap", "dataSecretName") for n in self.nodes.values() if n.kind == "Machine" and n.object]
        bootstrap = [self.nodes.get(node_id("Secret", cluster.namespace, str(name))) for name in used if name]
        for purpose, why in suspicions(secrets, [n.object for n in bootstrap if n is not None and n.object is not None]).items():
            secret = found[purpose]
            assert secret is not None
            blamed = [n for n in complaining if purpose != "kubeconfig" or any(secret.name in c.raw for c in n.complaints)]
            blamed = [*blamed, connection] if connection is not None and purpose in {"kubeconfig", "ca"} else blamed
            if blamed:
                secret.complaints.append(Complaint(Tier.ERROR, why, path="data"))
            for node in blamed:
                node.because_of[secret.id] = "depends on it"

    def _miss_certificates(self, cluster: Node, absent: set[str]) -> None:
        """Complain about deleted certificates: they existed since kubeadm set up a control plane, and no condition reports this."""
        if "Secret" not in self._dumped:
            return
        configs = [n.object for n in self.nodes.values() if n.kind == "KubeadmConfig" and n.object is not None]
        first = [c for c in configs if c.at("spec", "initConfiguration") and has_delivered(c)]
        outside = [c for c in first if c.at("spec", "clusterConfiguration", "etcd", "external")]
        for purpose in absent & (CERTIFICATE_AUTHORITIES - ({"etcd"} if outside else set())) if first else ():
            name = f"{cluster.name}-{purpose}"
            missing = Node(node_id("Secret", cluster.namespace, name), "Secret", cluster.namespace, name, referrers=[cluster.id])
            missing.complaints.append(Complaint(Tier.MISSING, "does not exist, but the control plane was set up with it"))
            self.nodes.setdefault(missing.id, missing)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _lacks_certificates(node: Node) -> bool:
    return any(c.about == "CertificatesAvailable" for c in node.complaints)
