"""Find certificate authorities with mistakes of their authors."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from clusterwright.api.meta import Unstructured
from clusterwright.kubeadm.certificates import CertificateError, decode_private_key
from clusterwright.offline.complaints import Complaint, Tier
from clusterwright.offline.known import Found, Known
from clusterwright.offline.ownership import name_of

_PURPOSES = ("ca", "etcd", "proxy", "sa")
_PAIR = ("tls.crt", "tls.key")


def certificate_authorities(known: Known) -> Iterator[Found]:
    """Yield the Secrets of a cluster that is not initialized yet, or in trouble, whose pair cannot be used."""
    cluster = known.cluster
    if cluster is None or cluster.metadata.deletion_timestamp is not None:
        return
    yield from _external(known, cluster)
    initialized = known.said(name_of(cluster.kind, *cluster.key), "ControlPlaneInitialized")
    if initialized is not None and initialized.status == "True":
        return  # the pair in use must come back; no other one fits
    for purpose in _PURPOSES:
        name = name_of("Secret", cluster.key.namespace, f"{cluster.key.name}-{purpose}")
        secret = known.objects.get(name)
        if secret is None:
            continue
        cause, text, path = mistake(secret, known.now) or _told(known.suspicions.get(name, ""))
        if not cause:
            continue
        facts = {"namespace": secret.key.namespace, "name": secret.key.name, "cluster": cluster.key.name}
        facts["found"] = ", ".join(secret.at("data") or {})
        complaint = Complaint(Tier.ERROR, text, path=path, cause=cause, facts=facts)
        kinds = ("KubeadmConfig", "KubeadmControlPlane", "Machine", "DevMachine")
        waiting = [n for n, o in known.objects.items() if o.kind in kinds and known.complaints.get(n)]
        yield Found(
            object=name,
            complaint=complaint,
            explains=dict.fromkeys((*waiting, name_of(cluster.kind, *cluster.key)), "depends on it"),
            is_all=True,
        )


def _external(known: Known, cluster: Unstructured) -> Iterator[Found]:
    """Yield the CA Secret that a foreign control plane has not created although workers wait for it."""
    reference = cluster.at("spec", "controlPlaneRef")
    kind = reference.get("kind") if isinstance(reference, Mapping) else None
    waiting = [n for n, _ in known.of_kind("KubeadmConfig") if any(c.about == "CertificatesAvailable" for c in known.complaints.get(n, ()))]
    name = f"{cluster.key.name}-ca"
    missing = name_of("Secret", cluster.key.namespace, name)
    if not waiting or kind == "KubeadmControlPlane" or missing in known.objects or "Secret" not in known.seen:
        return
    owner = f"{kind} {reference.get('name')}" if isinstance(reference, Mapping) else f"of Cluster {cluster.key.name}"
    facts = {"namespace": cluster.key.namespace, "name": name, "control_plane": owner}
    text = f"does not exist, but workers cannot join without it: the control plane {owner} is to bring it"
    since = min(c.since for n in waiting for c in known.complaints[n] if c.about == "CertificatesAvailable")
    complaint = Complaint(Tier.MISSING, text, since, path="spec.controlPlaneRef", cause="credentials.external", facts=facts)
    yield Found(object=missing, complaint=complaint, explains=dict.fromkeys(waiting, "cannot join without it"), is_all=True)


def mistake(secret: Unstructured, now: datetime | None) -> tuple[str, str, str] | None:
    """Return the cause, its text and the field if the Secret's pair cannot be used; None if it can or was redacted."""
    data = secret.at("data")
    data = data if isinstance(data, Mapping) else {}
    if lacking := [key for key in _PAIR if key not in data]:
        return "authority.keys", f"has no {', '.join(lacking)}, but {', '.join(sorted(data)) or 'nothing'}", "data"
    try:
        certificate, key = (base64.b64decode(str(data[k]), validate=True) for k in _PAIR)
    except (binascii.Error, ValueError):
        return None
    if not certificate or not key or b"CERTIFICATE" not in certificate:
        return None
    try:
        parsed, private = x509.load_pem_x509_certificate(certificate), decode_private_key(key)
    except (ValueError, TypeError, CertificateError):
        return None
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if parsed.public_key().public_bytes(*form) != private.public_key().public_bytes(*form):
        return "authority.mismatch", "its tls.key does not belong to its tls.crt", "data[tls.key]"
    if now is not None and parsed.not_valid_after_utc < now:
        return "authority.expired", f"its certificate is expired since {parsed.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}", "data[tls.crt]"
    return None


def _told(suspicion: str) -> tuple[str, str, str]:
    cause, _, rest = suspicion.partition("|")
    text, _, path = rest.partition("|")
    return cause, text, path
