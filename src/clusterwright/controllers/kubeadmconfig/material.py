"""Reads and writes of Secrets: certificates, contents of files, passwords, the bootstrap data itself."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from clusterwright.api.bootstrap import ClusterConfiguration, KubeadmConfig
from clusterwright.api.codec import to_json
from clusterwright.api.kubernetes import Secret
from clusterwright.api.machine_setup import File, User
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, OwnerReference
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL
from clusterwright.controllers.kit.passing import PassFailed
from clusterwright.controllers.kubeadmconfig.foreign import why_foreign
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts
from clusterwright.kubeadm import certificates as pki
from clusterwright.kubeadm.files import MissingKey, secret_text, with_content, with_password
from clusterwright.kubeadm.presence import defined
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, ApiError, ConnectionFailed, NotFound, ServerTimeout
from clusterwright.runtime.keys import KeySource

S = TypeVar("S", File, User)


class MaterialFailed(PassFailed):
    """A Secret that is needed cannot be read or written; the text names the Secret, never its content."""


class OutcomeUnknown(MaterialFailed):
    """No answer came: the write may or may not have taken effect."""


class SecretInTheWay(MaterialFailed):
    """The bootstrap data cannot be stored, because another Secret has its name. `advice` gives the next step."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.advice = (
            f"{text}. It is left as it is: delete it if nobody needs it, or use another name for the KubeadmConfig and its Machine"
        )


# -------------------------------------------------------------------------------------------- certificates


async def look_up(client: Client, cluster: ClusterFacts, slots: Sequence[pki.Slot]) -> dict[pki.Purpose, pki.KeyPair]:
    """Return the certificates that exist. Raises ApiError, and CertificateError if an external one is missing."""
    found: dict[pki.Purpose, pki.KeyPair] = {}
    for slot in slots:
        key = ObjectKey(cluster.namespace, pki.secret_name(cluster.name, slot.purpose))
        # a cache may not know Secrets without our label, or not yet
        secret = await client.find(Secret, key) or await client.live.find(Secret, key)
        if secret is not None:
            found[slot.purpose] = pki.pair_from_secret(key.namespace, key.name, secret.data)
        elif slot.external:
            raise pki.CertificateError(f"external certificate not found: {key}")
    return found


async def generate(
    client: Client,
    keys: KeySource,
    random: Random,
    *,
    cluster: ClusterFacts,
    config: KubeadmConfig,
    slots: Sequence[pki.Slot],
    found: dict[pki.Purpose, pki.KeyPair],
    now: datetime,
) -> dict[pki.Purpose, pki.KeyPair]:
    """Generate and save the certificates that are missing; return all. Raises ApiError, CertificateError."""
    settings = config.spec.cluster_configuration or ClusterConfiguration()
    missing = [slot.purpose for slot in slots if slot.purpose not in found and not slot.external]
    if not missing:
        return found
    algorithm = pki.key_algorithm(settings.encryption_algorithm)
    made = await asyncio.gather(*(keys.new_key(algorithm) for _ in missing))
    owner = config_reference(config, block=True)
    out = dict(found)
    for purpose, key in zip(missing, made, strict=True):
        days, serial = settings.ca_certificate_validity_period_days, pki.new_serial(random)
        pair = await keys.run(partial(pki.new_pair, purpose, key, now=now, serial=serial, days=days))
        namespace, name = cluster.namespace, cluster.name
        await client.create(pki.pair_secret(namespace=namespace, cluster=name, purpose=purpose, pair=pair, owner=owner))
        out[purpose] = pair
    return out


def control_plane_slots(config: KubeadmConfig) -> tuple[pki.Slot, ...]:
    """Return the certificates that a control-plane node with this spec needs."""
    settings = config.spec.cluster_configuration or ClusterConfiguration()
    external = defined(settings.etcd.external) if settings.etcd is not None else None
    etcd = None
    if external is not None:
        etcd = pki.ExternalEtcd(ca_file=external.ca_file, cert_file=external.cert_file, key_file=external.key_file)
    return pki.control_plane_slots(settings.certificates_dir, etcd)


# ------------------------------------------------------------------------------------- files and passwords


async def resolve_files(client: Client, namespace: str, files: Sequence[File]) -> tuple[File, ...]:
    """Return the files with the contents that their Secrets hold. Raises MaterialFailed."""
    return await _resolved(client, namespace, files, lambda file: file.content_from, with_content, "file")


async def resolve_users(client: Client, namespace: str, users: Sequence[User]) -> tuple[User, ...]:
    """Return the users with the password hashes that their Secrets hold. Raises MaterialFailed."""
    return await _resolved(client, namespace, users, lambda user: user.passwd_from, with_password, "passwd")


async def _resolved(
    client: Client, namespace: str, items: Sequence[S], source_of: Callable[[S], Any], fill: Callable[[S, str], S], what: str
) -> tuple[S, ...]:
    out = []
    for item in items:
        source = defined(source_of(item))
        if source is not None:
            item = fill(item, await _secret_value(client, ObjectKey(namespace, source.secret.name), source.secret.key, what))
        out.append(item)
    return tuple(out)


async def _secret_value(client: Client, key: ObjectKey, entry: str, what: str) -> str:
    failed = f"failed to resolve {what} source"
    try:
        secret = await client.live.find(Secret, key)
    except ApiError as error:
        raise MaterialFailed(f'{failed}: failed to retrieve Secret "{key}": {error}') from error
    if secret is None:
        raise MaterialFailed(f'{failed}: secret not found: {key}: secrets "{key.name}" not found')
    try:
        return secret_text(secret.data, entry)
    except MissingKey as error:
        raise MaterialFailed(f"{failed}: {error}") from None


# --------------------------------------------------------------------------------------- the bootstrap data


def config_reference(config: KubeadmConfig, *, block: bool = False) -> OwnerReference:
    """Return a reference to the config as the controller of an object."""
    return OwnerReference(
        api_version=config.api_version,
        kind=config.kind,
        name=config.metadata.name,
        uid=config.metadata.uid,
        controller=True,
        block_owner_deletion=True if block else None,
    )


def data_secret(config: KubeadmConfig, cluster: ClusterFacts, data: bytes) -> Json:
    """Return the Secret that carries the bootstrap data to the infrastructure."""
    form = config.spec.format or "cloud-config"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": config.metadata.namespace,
            "name": config.metadata.name,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [to_json(config_reference(config))],
        },
        "type": pki.SECRET_TYPE,
        "data": {"value": b64encode(data).decode(), "format": b64encode(form.encode()).decode()},
    }


async def store(client: Client, config: KubeadmConfig, cluster: ClusterFacts, data: bytes) -> None:
    """Create the Secret, or replace one of an earlier pass. Raises MaterialFailed; SecretInTheWay if it is not ours."""
    secret, what = data_secret(config, cluster, data), "create"
    try:
        try:
            await client.create(secret)
        except AlreadyExists:
            what = "update"
            present = await client.live.get(Secret, config.key)
            if why := why_foreign(present, config, cluster):
                text = f'Secret "{config.key}" is in the way: it is not the bootstrap data of this KubeadmConfig, because {why}'
                raise SecretInTheWay(text) from None
            secret["metadata"]["resourceVersion"] = present.metadata.resource_version  # this very Secret, or none
            await client.update(secret)
    except SecretInTheWay:
        raise
    except (ConnectionFailed, ServerTimeout) as error:
        raise OutcomeUnknown(f"failed to {what} bootstrap data secret for KubeadmConfig {config.key}: {error}") from error
    except ApiError as error:
        raise MaterialFailed(f"failed to {what} bootstrap data secret for KubeadmConfig {config.key}: {error}") from error


async def holds_other_token(client: Client, config: KubeadmConfig, token: str) -> bool:
    """Return whether the stored data makes a node join with another token. Raises ApiError.

    A pass that created a token and then failed leaves such data: the spec has the new token, the data the old one.
    """
    secret = await client.find(Secret, config.key)
    if secret is None or not any(owner.uid == config.metadata.uid for owner in secret.metadata.owner_references):
        return False
    data = secret.data.get("value", b"")
    return b"kubeadm join" in unquote_to_bytes(data) and token.encode() not in data


async def discard_unused(client: Client, config: KubeadmConfig) -> bool:
    """Remove data that an earlier pass stored without recording it in the status; return whether no usable data is left."""
    try:
        secret = await client.live.find(Secret, config.key)
        if secret is None or not any(owner.uid == config.metadata.uid for owner in secret.metadata.owner_references):
            return True
        latest = await client.live.find(KubeadmConfig, config.key)
        if latest is not None and latest.status.data_secret_name:
            return False
        await client.delete(Secret, secret.key, uid=secret.metadata.uid, resource_version=secret.metadata.resource_version)
    except NotFound:
        return True
    except ApiError:
        return False
    return True


async def ensure_owner(client: Client, config: KubeadmConfig, cluster: ClusterFacts) -> None:
    """Make the config the controller of its Secret, if there is one and it is ours.

    Raises MaterialFailed; SecretInTheWay if an object of another kind controls it.
    """
    what = f"KubeadmConfig {config.metadata.name} as ownerReference to bootstrap Secret {config.metadata.name}"
    try:
        secret = await client.find(Secret, config.key)
    except ApiError as error:
        raise MaterialFailed(f"failed to add {what}: {error}") from error
    controller = secret.metadata.controller if secret is not None else None
    if controller is not None and controller.kind != config.kind:
        raise SecretInTheWay(f"could not add {what}, it is already controlled by {controller.kind} {controller.name}")
    if secret is None or why_foreign(secret, config, cluster):
        return
    owners = repaired_owners(secret.metadata.owner_references, config)
    if owners == secret.metadata.owner_references:
        return
    change: Json = {
        "metadata": {
            "resourceVersion": secret.metadata.resource_version,
            "ownerReferences": [to_json(owner) for owner in owners],
        }
    }
    try:
        await client.patch(Secret, config.key, change)
    except ApiError as error:
        raise MaterialFailed(f"could not add {what}: {error}") from error


def repaired_owners(owners: tuple[OwnerReference, ...], config: KubeadmConfig) -> tuple[OwnerReference, ...]:
    """Return the references with the config as their only controller; the same tuple if it already is."""
    ours = config_reference(config)
    if any(_exact(owner) == _exact(ours) for owner in owners):
        return owners
    kept = tuple(owner for owner in owners if _same(owner, ours) or not owner.controller)
    if any(_same(owner, ours) for owner in kept):
        return tuple(ours if _same(owner, ours) else owner for owner in kept)
    return (*kept, ours)


def _exact(owner: OwnerReference) -> tuple[object, ...]:
    return (owner.api_version, owner.kind, owner.name, owner.uid, bool(owner.controller))


def _same(a: OwnerReference, b: OwnerReference) -> bool:
    group_a, group_b = (GroupVersionKind.of(r.api_version, r.kind).group for r in (a, b))
    return (group_a, a.kind, a.name) == (group_b, b.kind, b.name)
