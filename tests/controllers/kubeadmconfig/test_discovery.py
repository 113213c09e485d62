"""Edge cases 54 to 62 of the spec: how a joining node finds its cluster. Each test is named after its number."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
import yaml

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.kubeadm.certificates import discovery_hashes

HASH = "sha256:" + "0" * 64


async def _join(world: Any, discovery: Any = None, **cluster: Any) -> Any:
    await world.cluster(initialized=True, **({"endpoint": ("example.com", 6443)} | cluster))
    await world.certificates()
    await world.worker(spec={"joinConfiguration": {"discovery": discovery}} if discovery else None)
    requeue = await world.reconcile()
    join = (await world.read()).spec.join_configuration
    return requeue, join.discovery if join else None


async def test_given_ca_hashes_are_kept(world: Any) -> None:
    _, found = await _join(world, {"bootstrapToken": {"caCertHashes": [HASH]}})

    token = found.bootstrap_token
    assert token.token
    assert token.api_server_endpoint == "example.com:6443"
    assert (token.ca_cert_hashes, token.unsafe_skip_ca_verification) == ((HASH,), None)


async def test_a_discovery_file_of_the_user_is_kept(world: Any) -> None:
    requeue, found = await _join(world, {"file": {"kubeConfigPath": "/etc/discovery.conf"}})

    assert requeue == 300
    assert found.bootstrap_token is None
    assert await world.tokens() == []
    assert (await world.documents())[0]["discovery"] == {"file": {"kubeConfigPath": "/etc/discovery.conf"}}


EXEC = {"file": {"kubeConfigPath": "/k", "kubeConfig": {"user": {"exec": {"command": "/bootstrap"}}}}}


async def test_a_kubeconfig_for_discovery_is_made(world: Any) -> None:
    _, found = await _join(world, EXEC)

    cluster = found.file.kube_config.cluster
    ca = await world.judge.get(Secret, ObjectKey("default", "c1-ca"))
    assert cluster.server == "https://example.com:6443"
    assert cluster.certificate_authority_data == ca.data["tls.crt"]
    assert found.file.kube_config.user.exec.command == "/bootstrap"
    assert await world.tokens() == []


async def test_discovery_that_the_user_configured_is_kept(world: Any) -> None:
    given = {"apiServerEndpoint": "bar.com:6443", "token": "abcdef.0123456789abcdef", "caCertHashes": [HASH]}
    _, found = await _join(world, {"bootstrapToken": given})

    token = found.bootstrap_token
    assert (token.api_server_endpoint, token.token, token.ca_cert_hashes) == ("bar.com:6443", "abcdef.0123456789abcdef", (HASH,))
    assert await world.tokens() == []


@pytest.mark.parametrize("discovery", [None, EXEC])
async def test_discovery_waits_for_an_endpoint(world: Any, discovery: Any) -> None:
    requeue, _ = await _join(world, discovery, endpoint=None)

    assert requeue == 10


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"token": "abcdef.0123456789abcdef"}, None),
        ({"unsafeSkipCAVerification": True}, True),
        ({"unsafeSkipCAVerification": False}, False),
    ],
)
async def test_skipping_verification_is_never_changed(world: Any, section: Any, expected: Any) -> None:
    _, found = await _join(world, {"bootstrapToken": section})

    assert found.bootstrap_token.unsafe_skip_ca_verification is expected
    assert len(found.bootstrap_token.ca_cert_hashes) == 1


async def test_the_kubeconfig_file_of_discovery_is_written(world: Any) -> None:
    exec_ = {"command": "/usr/bin/bootstrap", "env": [{"name": "ENV_TEST", "value": "value"}]}
    await _join(world, {"file": {"kubeConfigPath": "/etc/k.conf", "kubeConfig": {"user": {"exec": exec_}}}})

    file = (await world.files())["/etc/k.conf"]
    made = yaml.safe_load(file["content"])
    assert (file["owner"], file["permissions"]) == ("root:root", "0640")
    assert made["users"] == [
        {
            "name": "default",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "/usr/bin/bootstrap",
                    "args": None,
                    "env": [{"name": "ENV_TEST", "value": "value"}],
                    "interactiveMode": "Never",
                    "provideClusterInfo": False,
                }
            },
        }
    ]
    (cluster,) = made["clusters"]
    assert b64decode(cluster["cluster"]["certificate-authority-data"]).startswith(b"-----BEGIN CERTIFICATE-----")
    assert made["current-context"] == "default"
    assert set(made) == {"clusters", "contexts", "current-context", "users"}


async def test_a_bundle_of_two_certificates_gives_two_hashes(world: Any) -> None:
    await world.cluster(initialized=True)
    await world.certificates()
    ca = await world.judge.get(Secret, ObjectKey("default", "c1-ca"))
    bundle = ca.data["tls.crt"] * 2
    await world.judge.patch(Secret, ca.key, {"data": {"tls.crt": b64encode(bundle).decode()}})
    await world.worker()
    await world.reconcile()

    found = (await world.read()).spec.join_configuration.discovery.bootstrap_token
    assert found.ca_cert_hashes == discovery_hashes(bundle)
    assert len(found.ca_cert_hashes) == 2


async def test_an_ipv6_endpoint_is_put_in_brackets(world: Any) -> None:
    _, found = await _join(world, endpoint=("fd00::1", 6443))

    assert found.bootstrap_token.api_server_endpoint == "[fd00::1]:6443"
