"""The cluster's certificates and its admin kubeconfig: looked up, made before the first Machine, never made anew after that."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from datetime import datetime, timedelta

from clusterwright.api.kubeconfig import Document, InvalidKubeconfig, data_of, read
from clusterwright.api.meta import ObjectKey, OwnerReference, Unstructured
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmcontrolplane import names
from clusterwright.controllers.kubeadmcontrolplane.observe import patch_owners
from clusterwright.controllers.kubeadmcontrolplane.scope import SECRET, EndOfPass, Scope
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.certificates import CertificateError, KeyPair, Purpose, Slot
from clusterwright.runtime.errors import AlreadyExists, ApiError

ROTATE_BEFORE = timedelta(hours=8760) / 2


async def reconcile_certificates(scope: Scope) -> None:
    """Look up or make every certificate and own it; says so in CertificatesAvailable. Raises PassFailed."""
    slots = _slots(scope)
    initialized = scope.condition(names.INITIALIZED)
    may_generate = initialized is None or initialized.status != "True"
    try:
        secrets = {slot.purpose: await _find(scope, slot) for slot in slots}
        missing = [slot for slot in slots if secrets[slot.purpose] is None]
        if may_generate:
            for slot in missing:
                await _generate(scope, slot)
    except (ApiError, CertificateError) as error:
        scope.set(names.CERTIFICATES_AVAILABLE, "Unknown", names.INTERNAL_ERROR, names.CHECK_LOGS)
        scope.set_v1beta1(names.CERTIFICATES_AVAILABLE, "False", "Warning", "CertificatesGenerationFailed", str(error))
        raise PassFailed(f"error in looking up or creating cluster certificates: {error}") from error
    if missing and not may_generate:
        which = ", ".join(slot.purpose for slot in missing)
        many = len(missing) > 1
        text = (
            f"Cluster certificate{'s' if many else ''} for {which} {'are' if many else 'is'} not available, "
            "please check cluster certificate secrets"
        )
        scope.set(names.CERTIFICATES_AVAILABLE, "False", "NotAvailable", text)
        scope.set_v1beta1(names.CERTIFICATES_AVAILABLE, "False", "Error", "CertificatesGenerationFailed", text)
        return
    try:
        for secret in secrets.values():
            if secret is not None:
                await _own(scope, secret)
    except ApiError as error:
        scope.set(names.CERTIFICATES_AVAILABLE, "Unknown", names.INTERNAL_ERROR, names.CHECK_LOGS)
        raise PassFailed(f"error in ensuring cluster certificates ownership: {error}") from error
    scope.set(names.CERTIFICATES_AVAILABLE, "True", "Available")
    scope.set_v1beta1(names.CERTIFICATES_AVAILABLE, "True")


def _slots(scope: Scope) -> tuple[Slot, ...]:
    return pki.control_plane_slots(external_etcd=None if scope.managed_etcd else pki.ExternalEtcd())


async def _find(scope: Scope, slot: Slot) -> Unstructured | None:
    """The Secret; raises CertificateError where it holds no certificate, or is missing and the user's to provide."""
    namespace, name = scope.key.namespace, pki.secret_name(scope.cluster.metadata.name, slot.purpose)
    secret = await scope.dependencies.client.find(SECRET, ObjectKey(namespace, name))
    if secret is not None:
        pki.pair_from_secret(namespace, name, _data(secret))
    elif not pki.is_generated(slot):
        raise CertificateError(f"external certificate not found, secret {name}")
    return secret


def _data(secret: Unstructured) -> dict[str, bytes]:
    try:
        return {k: b64decode(v) for k, v in (secret.at("data") or {}).items()}
    except ValueError:
        raise CertificateError(f"the data of Secret {secret.key} is not base64") from None


def _encryption(scope: Scope) -> tuple[str, int]:
    cluster = scope.owner.config_spec.get("clusterConfiguration") or {}
    return str(cluster.get("encryptionAlgorithm") or ""), int(cluster.get("caCertificateValidityPeriodDays") or 0)


async def _generate(scope: Scope, slot: Slot) -> None:
    algorithm, days = _encryption(scope)
    dependencies = scope.dependencies
    key = await dependencies.keys.new_key(pki.key_algorithm(algorithm))
    pair = pki.new_pair(slot.purpose, key, now=scope.now, serial=pki.new_serial(dependencies.random), days=days)
    secret = pki.pair_secret(
        namespace=scope.key.namespace,
        cluster=scope.cluster.metadata.name,
        purpose=slot.purpose,
        pair=pair,
        owner=scope.owner.controller_reference,
    )
    with suppress(AlreadyExists):  # our view was old: what is there counts, and the next pass sees it
        await dependencies.client.create(secret)


async def _own(scope: Scope, secret: Unstructured) -> None:
    """Be the controller of Secrets that are ours; those of other types belong to the user."""
    references = list(secret.metadata.owner_references)
    controller = next((r for r in references if r.controller), None)
    if secret.json.get("type") == pki.SECRET_TYPE:
        wanted = _with_controller(references, scope.owner.controller_reference)
    elif controller is not None and controller.kind == "KubeadmControlPlane":
        wanted = [scope.owner.controller_reference if r is controller else r for r in references]
    else:
        return
    await patch_owners(scope.dependencies.client, secret, wanted)


def _with_controller(references: list[OwnerReference], owner: OwnerReference) -> list[OwnerReference]:
    if owner in references:
        return references
    kept = [r for r in references if not r.controller and not (r.kind == owner.kind and r.name == owner.name)]
    return [*kept, owner]


# --------------------------------------------------------------------------------------- kubeconfig


async def reconcile_kubeconfig(scope: Scope) -> None:
    """Create the admin kubeconfig, own it, and renew its client certificate in time.

    Raises EndOfPass while the CA is missing, PassFailed otherwise.
    """
    endpoint = scope.cluster.spec.control_plane_endpoint
    if endpoint is None or not (endpoint.host and endpoint.port):
        return
    cluster = scope.cluster.metadata.name
    client = scope.dependencies.client
    key = ObjectKey(scope.key.namespace, pki.secret_name(cluster, Purpose.KUBECONFIG))
    try:
        secret = await client.find(SECRET, key)
    except ApiError as error:
        raise PassFailed(f"failed to retrieve kubeconfig Secret: {error}") from error
    try:
        if secret is None:
            server = f"https://{_host(endpoint.host)}:{endpoint.port}"
            kubeconfig = await _new_kubeconfig(scope, server)
            owner = scope.owner.controller_reference
            await client.create(pki.kubeconfig_secret(namespace=key.namespace, cluster=cluster, kubeconfig=kubeconfig, owner=owner))
            return
        await _own(scope, secret)
        if not _is_controlled(scope, secret):
            return
        document = _parse(secret)
        expiry = _expiry(document)
        if expiry is not None and expiry - scope.now < ROTATE_BEFORE:
            kubeconfig = await _new_kubeconfig(scope, _server(document, cluster))
            data = pki.kubeconfig_secret(namespace=key.namespace, cluster=cluster, kubeconfig=kubeconfig)["data"]
            await client.patch(SECRET, key, {"data": data})
        elif expiry is not None:
            scope.renewal = expiry - ROTATE_BEFORE
    except AlreadyExists:
        return
    except (ApiError, CertificateError) as error:
        raise PassFailed(f"failed to reconcile kubeconfig Secret: {error}") from error


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


async def _new_kubeconfig(scope: Scope, server: str) -> bytes:
    cluster = scope.cluster.metadata.name
    namespace, name = scope.key.namespace, pki.secret_name(cluster, Purpose.CA)
    secret = await scope.dependencies.client.find(SECRET, ObjectKey(namespace, name))
    if secret is None:
        raise EndOfPass(names.DEPENDENT_CERTIFICATE_WAIT)
    authority: KeyPair = pki.pair_from_secret(namespace, name, _data(secret))
    dependencies = scope.dependencies
    key = await dependencies.keys.new_key(pki.key_algorithm(_encryption(scope)[0]))
    admin = pki.new_admin_client(authority, key, now=scope.now, serial=pki.new_serial(dependencies.random))
    return pki.new_kubeconfig(cluster, server, authority, admin)


def _is_controlled(scope: Scope, secret: Unstructured) -> bool:
    controlled = secret.json.get("type") == pki.SECRET_TYPE
    return controlled or any(r.controller and r.uid == scope.control_plane.metadata.uid for r in secret.metadata.owner_references)


def _parse(secret: Unstructured) -> Document:
    try:
        return read(_data(secret).get(pki.KUBECONFIG_KEY, b""))
    except InvalidKubeconfig as error:
        raise CertificateError(f"failed to read the kubeconfig in Secret {secret.key}: {error}") from None


def _expiry(document: Document) -> datetime | None:
    """When the first of the kubeconfig's client certificates expires; None if it has no user. Raises CertificateError."""
    try:
        found = [pki.decode_certificate(data_of(user, "client-certificate")).not_valid_after_utc for user in document.users.values()]
    except ValueError as error:
        raise CertificateError("failed to read a client certificate of the kubeconfig") from error
    return min(found, default=None)


def _server(document: Document, cluster: str) -> str:
    if cluster not in document.clusters:
        raise CertificateError(f"the kubeconfig has no cluster {cluster}")
    return str(document.clusters[cluster].get("server", ""))
