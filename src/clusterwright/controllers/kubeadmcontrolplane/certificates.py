# ruff: noqa: E501 - tables are laid out to be read as such
"""The cluster's certificates and its admin kubeconfig: looked up, created before the first Machine, never created again after that."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from clusterwright.api.codec import DecodeError
from clusterwright.api.copying import replace
from clusterwright.api.kubeconfig import Document, InvalidKubeconfig, data_of, read
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey, OwnerReference
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.conditions import is_true
from clusterwright.controllers.kit.conditions import CHECK_LOGS, decided
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.adoption import own_secret
from clusterwright.controllers.kubeadmcontrolplane.machine_writer import Run
from clusterwright.controllers.kubeadmcontrolplane.snapshot import ControlPlaneSnapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.certificates import CertificateError, KeyPair, Purpose, Slot
from clusterwright.runtime.errors import AlreadyExists, ApiError
from clusterwright.tables import KEEP, OTHERWISE, Row, Table, false, guard, message, true, unknown

_MAKERS = frozenset({"Cluster", "KubeadmControlPlane", "KubeadmConfig"})
"""The kinds whose controllers create the Secrets of a cluster."""
ROTATE_BEFORE = timedelta(hours=8760) / 2


# ------------------------------------------------------------------------------------------ the condition


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """The result of looking up the certificates: the error, those missing for good, and why adopting them failed."""

    error: str = ""
    missing: tuple[str, ...] = ()
    unowned: str = ""


@guard("certificates could not be looked up or made")
def unknown_certificates(f: CertificateFacts) -> bool:
    return bool(f.error)


@guard("certificates are missing, and the control plane is initialized")
def missing_certificates(f: CertificateFacts) -> bool:
    return bool(f.missing)


@guard("a certificate could not be made ours")
def unowned_certificates(f: CertificateFacts) -> bool:
    return bool(f.unowned)


@message("<error>")
def lookup_error(f: CertificateFacts) -> str:
    return f.error


@message("Cluster certificates for <purposes> are not available, please check cluster certificate secrets")
def missing_text(f: CertificateFacts) -> str:
    many = len(f.missing) > 1
    return (
        f"Cluster certificate{'s' if many else ''} for {', '.join(f.missing)} {'are' if many else 'is'} not available, "
        "please check cluster certificate secrets"
    )


@message("error in looking up or creating cluster certificates: <error>")
def lookup_failure(f: CertificateFacts) -> str:
    return f"error in looking up or creating cluster certificates: {f.error}"


@message("error in ensuring cluster certificates ownership: <error>")
def ownership_failure(f: CertificateFacts) -> str:
    return f"error in ensuring cluster certificates ownership: {f.unowned}"


# fmt: off
CERTIFICATES: Table[CertificateFacts] = Table(
    names.CERTIFICATES_AVAILABLE,
    Row("unknown",   unknown_certificates, unknown("InternalError", CHECK_LOGS),     v1beta1=false("CertificatesGenerationFailed", lookup_error, "Warning"), error=lookup_failure),
    Row("missing",   missing_certificates, false("NotAvailable", missing_text),      v1beta1=false("CertificatesGenerationFailed", missing_text, "Error")),
    Row("unowned",   unowned_certificates, unknown("InternalError", CHECK_LOGS),     v1beta1=KEEP, error=ownership_failure),
    Row("available", OTHERWISE,            true("Available"),                        v1beta1=true("")),
    about="the cluster's certificates: created before the first Machine, never again after that",
    at_most_one=[(unknown_certificates, missing_certificates, unowned_certificates)],
)
# fmt: on


# ---------------------------------------------------------------------------------------------- certificates


async def look_after_certificates(deps: Dependencies, run: Run) -> bool:
    """Look up, create and adopt every certificate, and set CertificatesAvailable. Return False if the pass has failed."""
    cause: Exception | None = None
    try:
        facts = await _certificates(deps, run.done)
    except (ApiError, CertificateError) as error:
        facts, cause = CertificateFacts(error=str(error) or type(error).__name__), error
    decision = run.decide_on(CERTIFICATES, facts, cause)
    run.become(decided(run.object, CERTIFICATES, decision, run.seen.now))
    return not decision.error


async def _certificates(deps: Dependencies, seen: ControlPlaneSnapshot) -> CertificateFacts:
    """Return all certificates; raises ApiError or CertificateError."""
    slots = pki.control_plane_slots(external_etcd=None if seen.managed_etcd else pki.ExternalEtcd())
    found = {slot.purpose: await _find(deps, seen, slot) for slot in slots}
    missing = [slot for slot in slots if found[slot.purpose] is None]
    if is_true(seen.conditions, names.INITIALIZED):
        if missing:
            return CertificateFacts(missing=tuple(slot.purpose for slot in missing))
    else:
        for slot in missing:
            await _generate(deps, seen, slot)
    try:
        for secret in found.values():
            if secret is not None:
                await _own(deps, seen, secret)
    except ApiError as error:
        return CertificateFacts(unowned=str(error) or type(error).__name__)
    return CertificateFacts()


async def _find(deps: Dependencies, seen: ControlPlaneSnapshot, slot: Slot) -> Secret | None:
    """Return the Secret; raises CertificateError if it holds no certificate, or if it is missing and the user must provide it."""
    name = pki.secret_name(seen.cluster.key.name, slot.purpose)
    secret = await _secret(deps, ObjectKey(seen.key.namespace, name))
    if secret is not None:
        pki.pair_from_secret(seen.key.namespace, name, secret.data)
    elif not pki.is_generated(slot):
        raise CertificateError(f"external certificate not found, secret {name}")
    return secret


async def _secret(deps: Dependencies, key: ObjectKey) -> Secret | None:
    """Return a Secret; raises ApiError, or CertificateError if its data cannot be read."""
    try:
        return await deps.client.find(Secret, key)
    except DecodeError:
        raise CertificateError(f"the data of Secret {key} is not base64") from None


def _encryption(seen: ControlPlaneSnapshot) -> tuple[str, int]:
    cluster = seen.owner.config_spec.get("clusterConfiguration") or {}
    return str(cluster.get("encryptionAlgorithm") or ""), int(cluster.get("caCertificateValidityPeriodDays") or 0)


async def _generate(deps: Dependencies, seen: ControlPlaneSnapshot, slot: Slot) -> None:
    algorithm, days = _encryption(seen)
    key = await deps.keys.new_key(pki.key_algorithm(algorithm))
    serial = pki.new_serial(deps.random)
    pair = await deps.keys.run(partial(pki.new_pair, slot.purpose, key, now=seen.now, serial=serial, days=days))
    secret = pki.pair_secret(
        namespace=seen.key.namespace,
        cluster=seen.cluster.key.name,
        purpose=slot.purpose,
        pair=pair,
        owner=seen.owner.controller_reference,
    )
    with suppress(AlreadyExists):  # our view was old: what is there counts, and the next pass sees it
        await deps.client.create(secret)


async def _own(deps: Dependencies, seen: ControlPlaneSnapshot, secret: Secret) -> None:
    """Become the controller of the cluster's Secrets; skip those of other types, which users provide, and those of other owners."""
    if is_foreign(seen, secret):
        return
    references, owner = secret.metadata.owner_references, seen.owner.controller_reference
    controller = secret.metadata.controller
    if secret.type == pki.SECRET_TYPE:
        await own_secret(deps, secret.metadata, _with_controller(references, owner))
    elif controller is not None and controller.kind == "KubeadmControlPlane":
        await own_secret(deps, secret.metadata, [owner if r is controller else r for r in references])


def is_foreign(seen: ControlPlaneSnapshot, secret: Secret) -> bool:
    """Return whether a Secret belongs to another cluster, or to a kind that creates no certificates. The name alone proves nothing."""
    if secret.metadata.labels.get(CLUSTER_NAME_LABEL, seen.cluster.key.name) != seen.cluster.key.name:
        return True
    controller = secret.metadata.controller
    if controller is None:
        return False
    holds_bootstrap_data = controller.kind == "KubeadmConfig" and "format" in secret.data
    return controller.kind not in _MAKERS or holds_bootstrap_data


def _with_controller(references: Sequence[OwnerReference], owner: OwnerReference) -> Sequence[OwnerReference]:
    if owner in references:
        return references
    kept = [r for r in references if not r.controller and not (r.kind == owner.kind and r.name == owner.name)]
    return [*kept, owner]


# --------------------------------------------------------------------------------------- kubeconfig


async def look_after_kubeconfig(deps: Dependencies, run: Run) -> bool:
    """Create the admin kubeconfig, own it, and renew its client certificate in time. Raises PassFailed.

    Return False while the CA is missing: the pass ends and is requeued.
    """
    seen, cluster = run.done, run.seen.cluster
    key = ObjectKey(seen.key.namespace, pki.secret_name(cluster.key.name, Purpose.KUBECONFIG))
    try:
        secret = await _secret(deps, key)
    except (ApiError, CertificateError) as error:
        raise PassFailed(f"failed to retrieve kubeconfig Secret: {error}") from error
    try:
        if secret is None:
            return await _create_kubeconfig(deps, run, key)
        await _own(deps, seen, secret)
        if not _is_controlled(seen, secret):
            return True
        document = _parse(secret)
        expiry = _expiry(document)
        if expiry is not None and expiry - seen.now < ROTATE_BEFORE:
            kubeconfig = await _new_kubeconfig(deps, run, _server(document, cluster.key.name))
            if kubeconfig is None:
                return False
            data = pki.kubeconfig_secret(namespace=key.namespace, cluster=cluster.key.name, kubeconfig=kubeconfig)["data"]
            await deps.client.patch(Secret, key, {"data": data})
        elif expiry is not None:
            run.done = replace(seen, renewal=expiry - ROTATE_BEFORE)
    except (ApiError, CertificateError) as error:
        raise PassFailed(f"failed to reconcile kubeconfig Secret: {error}") from error
    return True


async def _create_kubeconfig(deps: Dependencies, run: Run, key: ObjectKey) -> bool:
    cluster = run.seen.cluster
    kubeconfig = await _new_kubeconfig(deps, run, f"https://{_host(cluster.host)}:{cluster.port}")
    if kubeconfig is None:
        return False
    owner = run.done.owner.controller_reference
    with suppress(AlreadyExists):  # as above
        await deps.client.create(
            pki.kubeconfig_secret(namespace=key.namespace, cluster=cluster.key.name, kubeconfig=kubeconfig, owner=owner)
        )
    return True


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


async def _new_kubeconfig(deps: Dependencies, run: Run, server: str) -> bytes | None:
    """Return a kubeconfig of the administrator; None while the CA is missing."""
    seen, cluster = run.done, run.seen.cluster.key.name
    key = ObjectKey(seen.key.namespace, pki.secret_name(cluster, Purpose.CA))
    secret = await _secret(deps, key)
    if secret is None:
        run.vote(names.DEPENDENT_CERTIFICATE_WAIT)
        return None
    authority: KeyPair = pki.pair_from_secret(key.namespace, key.name, secret.data)
    private = await deps.keys.new_key(pki.key_algorithm(_encryption(seen)[0]))
    serial = pki.new_serial(deps.random)
    admin = await deps.keys.run(partial(pki.new_admin_client, authority, private, now=seen.now, serial=serial))
    return pki.new_kubeconfig(cluster, server, authority, admin)


def _is_controlled(seen: ControlPlaneSnapshot, secret: Secret) -> bool:
    ours = any(r.controller and r.uid == seen.object.metadata.uid for r in secret.metadata.owner_references)
    return ours or (secret.type == pki.SECRET_TYPE and not is_foreign(seen, secret))


def _parse(secret: Secret) -> Document:
    if pki.KUBECONFIG_KEY not in secret.data:
        raise CertificateError(f'Secret {secret.key} has no key "{pki.KUBECONFIG_KEY}". Delete the Secret, then it is made again')
    try:
        return read(secret.data[pki.KUBECONFIG_KEY])
    except InvalidKubeconfig as error:
        raise CertificateError(f"failed to read the kubeconfig in Secret {secret.key}: {error}") from None


def _expiry(document: Document) -> datetime | None:
    """Return when the first of the kubeconfig's client certificates expires; None without a user. Raises CertificateError."""
    try:
        found = [pki.decode_certificate(data_of(user, "client-certificate")).not_valid_after_utc for user in document.users.values()]
    except ValueError as error:
        raise CertificateError("failed to read a client certificate of the kubeconfig") from error
    return min(found, default=None)


def _server(document: Document, cluster: str) -> str:
    if cluster not in document.clusters:
        raise CertificateError(f"the kubeconfig has no cluster {cluster}")
    return str(document.clusters[cluster].get("server", ""))
