"""A process that cannot do its work says so: to its supervisor by exit status, to its operator by log and readiness."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from clusterwright import app
from clusterwright.api.crds import crds
from clusterwright.api.kubernetes import Lease
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.wire import Request
from clusterwright.apiserver.auth.rbac import RbacAuthorizer, bootstrap_roles
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.server import ApiServer
from clusterwright.apiserver.serving.inprocess import InProcessTransport
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.keys import sample_keys
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.leases import LeaderElector, new_identity
from clusterwright.runtime.manager import Options
from clusterwright.runtime.rest import RestClient
from clusterwright.runtime.rights import right_of
from support.patience import PATIENCE

GROUPS = ("cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io")


async def test_controllers_that_end_by_error_while_they_run_make_the_process_fail(tmp_path: Path) -> None:
    flags = ["--in-memory", "--kubeconfig", str(tmp_path / "config"), "--listen", "127.0.0.1:0", "--leader-elect"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "clusterwright.cli.main", "up", *flags,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            await process.stdout.readline()
            transport = HttpTransport(Kubeconfig.load([tmp_path / "config"]).resolve(), SystemClock(), os.environ)
            client = RestClient(transport, clock=SystemClock())
            while not (held := [lease for lease in await client.list(Lease) if lease.spec.holder_identity]):  # noqa: ASYNC110 - elections take their time
                await asyncio.sleep(0.05)
            theirs = {
                "holderIdentity": "another",
                "leaseDurationSeconds": 3600,
                "renewTime": SystemClock().now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            for lease in held:
                await client.patch(Lease, lease.key, {"spec": theirs})
            await transport.close()
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert process.returncode == 1
    assert b"is held by another" in errors.splitlines()[-1]


async def test_a_health_port_in_use_is_reported_with_its_flag(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        flags = ["--in-memory", "--kubeconfig", str(tmp_path / "config"), "--health-port", str(taken.getsockname()[1])]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "clusterwright.cli.main", "up", *flags,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 1
    assert errors.startswith(b"clusterwright up: --health-port ")


async def test_two_processes_of_one_name_and_number_do_not_lead_at_once() -> None:
    clock = SystemClock()
    server = ApiServer(now=clock.now, random=Random(1))
    server.ensure_namespaces()
    client = RestClient(InProcessTransport(server), clock=clock)
    lease = ObjectKey("kube-system", "clusterwright")
    first, second = (LeaderElector(client, clock, Random(n), lease, new_identity("same-host", 1, Random(n))) for n in (1, 2))

    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await asyncio.sleep(0.5)

    assert first.is_leader
    assert not second.is_leader
    waiting.cancel()
    server.close()


def test_a_candidate_without_an_identity_is_refused() -> None:
    clock = SystemClock()
    client = RestClient(InProcessTransport(ApiServer(now=clock.now, random=Random(1))), clock=clock)
    with pytest.raises(ValueError, match="identity"):
        LeaderElector(client, clock, Random(1), ObjectKey("a", "b"), "")


def role(*resources: str) -> Json:
    rules = [{"apiGroups": ["*"], "resources": list(resources), "verbs": ["*"]}]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "little"}, "rules": rules}


async def test_a_missing_permission_is_named_at_once_and_in_readiness(caplog: pytest.LogCaptureFixture) -> None:
    clock = SystemClock()
    server = ApiServer(now=clock.now, random=Random(1), authorizer=RbacAuthorizer())
    server.ensure_namespaces()
    server.ensure(bootstrap_roles())
    admin = RestClient(InProcessTransport(server), clock=clock)
    for obj in crds():
        await admin.create(obj)
    plurals = [crd["spec"]["names"]["plural"] for crd in crds()]
    kept = [name for name in (*plurals, "customresourcedefinitions", "secrets", "configmaps", "nodes", "events") if name != "machines"]
    await admin.create(role(*kept))
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "little"}
    ref = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "little"}
    binding = {"kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "little"}}
    await admin.create({**binding, "roleRef": ref, "subjects": [subject]})
    manager = app.build_manager(
        InProcessTransport(server, User("little")), clock=clock, random=Random(2), keys=sample_keys(), options=Options(health_port=0)
    )
    caplog.set_level(logging.WARNING)
    running = asyncio.create_task(manager.run())
    try:
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            while not manager.rights.missing or manager.endpoints is None:  # noqa: ASYNC110 - the list is under way
                await asyncio.sleep(0.02)
            async with session.get(f"http://127.0.0.1:{manager.endpoints.port}/readyz/rights") as answer:
                status, text = answer.status, await answer.text()
            said = [record.getMessage() for record in caplog.records]
            everything: Any = role("*")
            await admin.patch(
                GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"), ObjectKey("", "little"), {"rules": everything["rules"]}
            )
            while manager.rights.missing:  # noqa: ASYNC110 - the watcher asks again in its own time
                await asyncio.sleep(0.05)
    finally:
        manager.stop()
        await running
        server.close()

    assert status == 500
    assert "not allowed to list machines.cluster.x-k8s.io" in text
    assert "no controller starts before it is granted" in text
    assert "machine" in text
    assert any("A permission is missing" in line for line in said)


@pytest.mark.parametrize(
    ("method", "path", "query", "right"),
    [
        ("GET", "/apis/g.io/v1/machines", (("watch", "true"),), "watch machines.g.io"),
        ("GET", "/apis/g.io/v1/namespaces/ns/machines", (), "list machines.g.io in namespace ns"),
        ("GET", "/api/v1/namespaces/ns", (), "get namespaces"),
        ("PATCH", "/apis/g.io/v1/namespaces/ns/machines/m/status", (), "patch machines.g.io/status in namespace ns"),
        ("DELETE", "/api/v1/nodes", (), "deletecollection nodes"),
        ("POST", "/api/v1/namespaces/ns/secrets", (), "create secrets in namespace ns"),
    ],
)
def test_a_request_needs_the_right_permission(method: str, path: str, query: tuple[tuple[str, str], ...], right: str) -> None:
    assert str(right_of(Request(method=method, path=path, query=query))) == right
