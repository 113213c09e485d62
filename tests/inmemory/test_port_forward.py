"""`kubectl port-forward`, the real one, to simulated Pods; and the other ways in which clients ask for ports."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
from contextlib import asynccontextmanager

import aiohttp
import pytest

from clusterwright.inmemory import etcd
from clusterwright.inmemory.listener import TlsListener
from clusterwright.streams.pipe import TcpStream, join
from clusterwright.workload.access import EtcdError
from clusterwright.workload.etcd import MemberClient
from support.binaries import etcd_program
from support.clouds import CA, ETCD_CA, A, admin, clouds, etcd_client_context, kubeconfig, start

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
ETCDCTL = etcd_program("etcdctl")
with_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on the PATH: port-forward was not tried with it")
WAYS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])


@asynccontextmanager
async def forwarded(tmp_path, cluster, websockets, pod, port):
    """kubectl, and the local port that it forwards."""
    (tmp_path / "config").write_bytes(kubeconfig(cluster))
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    environment["KUBECTL_PORT_FORWARD_WEBSOCKETS"] = websockets
    process = await asyncio.create_subprocess_exec(
        str(KUBECTL), "-n", "kube-system", "port-forward", pod, f":{port}", "--address=127.0.0.1",
        env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith("Forwarding from 127.0.0.1:"), line
        yield process, int(line.split(":")[1].split(" ")[0])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@with_kubectl
@WAYS
async def test_kubectl_reaches_etcd_as_often_as_it_likes(tmp_path, websockets):
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0", "m1")
        async with forwarded(tmp_path, cluster, websockets, "pod/etcd-m0", 2379) as (process, port):

            async def dial(_node):
                return TcpStream(*await asyncio.open_connection("127.0.0.1", port))

            async def members():
                client = await MemberClient.connect(dial, "m0", etcd_client_context())
                try:
                    return {m.name for m in await client.members()}
                finally:
                    await client.close()

            assert await members() == {"m0", "m1"}
            assert await asyncio.gather(*(members() for _ in range(8))) == [{"m0", "m1"}] * 8
            with pytest.raises(EtcdError):
                await MemberClient.connect(dial, "m0", etcd_client_context(authority=CA))
            assert await members() == {"m0", "m1"}
            assert process.returncode is None


@with_kubectl
@WAYS
async def test_kubectl_reaches_the_api_server_and_large_answers_come_whole(tmp_path, websockets):
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        cluster.ensure(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "c"}, "data": {"k": "x" * 900_000}}
        )
        (tmp_path / "client.pem").write_bytes(admin().certificate + admin().key)
        context = ssl.create_default_context(cadata=CA.certificate.decode())
        context.load_cert_chain(tmp_path / "client.pem")
        async with (
            forwarded(tmp_path, cluster, websockets, "pod/kube-apiserver-m0", 6443) as (_, port),
            aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get("/api/v1/namespaces/default/configmaps/c") as answer,
        ):
            assert len((await answer.json())["data"]["k"]) == 900_000


@with_kubectl
@WAYS
async def test_kubectl_gets_an_error_where_nothing_listens(tmp_path, websockets):
    async with clouds(listener=TlsListener()) as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0")
        async with forwarded(tmp_path, cluster, websockets, "pod/etcd-m0", 8080) as (process, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            said = b""
            while b"connection refused" not in said:
                said += await process.stdout.readline() or pytest.fail(f"kubectl has ended: {said.decode()}")
            assert b"error forwarding port 8080 to pod etcd-m0: dial tcp4 127.0.0.1:8080: connect: connection refused" in said


@pytest.mark.skipif(ETCDCTL is None, reason="no etcdctl: etcd's own client was not tried")
async def test_etcds_own_client_manages_simulated_members(tmp_path):
    """By gRPC, with the certificates that the member wants; no kubectl in between."""
    async with clouds() as cloud:
        cluster = await cloud.ensure(A)
        await start(cluster, "m0", "m1", "m2")
        client = admin(ETCD_CA)
        for name, content in {"ca": ETCD_CA.certificate, "cert": client.certificate, "key": client.key}.items():
            (tmp_path / name).write_bytes(content)

        async def carry(reader, writer):
            await join(TcpStream(reader, writer), await cluster.dial("kube-system", "etcd-m0", 2379))

        server = await asyncio.start_server(carry, "127.0.0.1", 0)
        endpoint = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def etcdctl(*words):
            files = [f"--{flag}={tmp_path / flag}" for flag in ("cert", "key")] + [f"--cacert={tmp_path / 'ca'}"]
            process = await asyncio.create_subprocess_exec(
                str(ETCDCTL), f"--endpoints={endpoint}", "--dial-timeout=60s", "--command-timeout=60s", *files, *words,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            said, _ = await process.communicate()
            return process.returncode, said.decode()

        members = {m.name: m for m in cluster.members()}
        code, table = await etcdctl("member", "list")
        assert code == 0, table
        assert {line.split(", ")[2] for line in table.splitlines()} == {"m0", "m1", "m2"}
        assert (await etcdctl("endpoint", "health"))[0] == 0
        await cluster.annotate_etcd("m1", {etcd.ALARMS: "NOSPACE"})
        assert "alarm:NOSPACE" in (await etcdctl("alarm", "disarm"))[1]
        assert all(not m.alarms for m in cluster.members())
        assert (await etcdctl("move-leader", f"{int(members['m2'].id):x}"))[0] == 0
        assert (await etcdctl("member", "remove", f"{int(members['m1'].id):x}"))[0] == 0
        assert {m.name for m in cluster.members()} == {"m0", "m2"}
        assert etcd.leader(cluster.members()).name == "m2"
        code, refusal = await etcdctl("member", "remove", "1234")
        assert code != 0
        assert "member not found" in refusal
        server.close()
