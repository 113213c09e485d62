"""Machines that are containers, on the engines of this machine, in a tiny image whose kubeadm is whatever the bootstrap data runs."""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from clusterwright.api.copying import replace
from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevInitializationStatus, DevMachine, DevMachineBackend, DevMachineSpec, DockerMachineBackend
from clusterwright.api.infrastructure import Mount as MountField
from clusterwright.api.kubernetes import Namespace, Secret
from clusterwright.api.meta import ObjectKey, ObjectMeta
from clusterwright.containers import naming
from clusterwright.containers.machines import DevContainers
from clusterwright.containers.site import Site
from clusterwright.engine import Container, Engine
from clusterwright.provider import Gone, Pending, ProvisionFailed, Server
from support import engines
from support.engines import IMAGE, INIT

engines.demand()
SECRET = "s3cret-of-the-user-data"


class Objects:
    """The few objects that a pass reads."""

    def __init__(self, plane: str) -> None:
        self.plane, self.data, self.format = plane, b"", b"cloud-config"
        self.listed: builtins.list[Any] = []

    async def find(self, kind: type[Any], key: ObjectKey) -> Any:
        if kind is not Secret:
            return next((o for o in self.listed if isinstance(o, kind) and o.key == key), None)
        return Secret(metadata=ObjectMeta(name=key.name, namespace=key.namespace), data={"value": self.data, "format": self.format})

    async def list(self, kind: type[Any], **_: Any) -> list[Any]:
        return [o for o in self.listed if isinstance(o, kind)]

    async def patch(self, kind: type[Any], key: ObjectKey, change: dict[str, Any]) -> None:
        [changed] = [o for o in self.listed if isinstance(o, kind) and o.key == key]
        annotations = {**changed.metadata.annotations, **change["metadata"]["annotations"]}
        self.listed.remove(changed)
        self.listed.append(replace(changed, metadata=replace(changed.metadata, annotations=annotations)))

    async def get(self, kind: type[Any], key: ObjectKey) -> Any:
        assert (kind, key.name) == (Namespace, "kube-system")
        return Namespace(metadata=ObjectMeta(name="kube-system", uid=self.plane))


class Story:
    """One machine, and the provider of containers."""

    def __init__(self, engine: Engine, mark: str) -> None:
        self.engine, self.mark = engine, mark
        self.objects = Objects(mark)
        client: Any = self.objects
        self.site = Site(engine, client, entrypoint=INIT, network=f"cw-test-{mark}", has_modules=False, name_servers=["9.9.9.9"])
        self.provider = DevContainers(client, self.site)
        backend = DevMachineBackend(docker=DockerMachineBackend(custom_image=IMAGE))
        self.obj = DevMachine(metadata=ObjectMeta(name=f"cw-{mark}", namespace="default"), spec=DevMachineSpec(backend=backend))
        machine = Machine(metadata=ObjectMeta(name=f"m-{mark}", namespace="default"))
        bootstrap = replace(machine.spec.bootstrap, data_secret_name="data")
        self.machine = replace(machine, spec=replace(machine.spec, cluster_name="c", version="v1.36.1", bootstrap=bootstrap))

    @property
    def name(self) -> str:
        return naming.container_name(self.obj.key)

    def boots(self, *commands: str, files: str = "") -> None:
        listed = "".join(f"- {json.dumps(c)}\n" for c in commands)
        self.objects.data = f"## template: jinja\n#cloud-config\n{files}runcmd:\n{listed or '[]'}".encode()

    def wants(self, **fields: Any) -> None:
        """Set fields of the backend."""
        backend = DevMachineBackend(docker=DockerMachineBackend(custom_image=IMAGE, **fields))
        self.obj = replace(self.obj, spec=replace(self.obj.spec, backend=backend))

    async def once(self) -> Server | Gone | Pending:
        return await self.provider.provision(self.obj, self.machine)

    async def up(self) -> Server:
        """Look as often as a pass would, without its waits."""
        async with asyncio.timeout(60):
            while True:
                found = await self.once()
                if isinstance(found, Server):
                    status = replace(
                        self.obj.status, initialization=DevInitializationStatus(provisioned=True), addresses=tuple(found.addresses)
                    )
                    self.obj = replace(self.obj, spec=replace(self.obj.spec, provider_id=found.provider_id), status=status)
                    return found
                assert isinstance(found, Pending)
                await asyncio.sleep(0.05)

    async def stops(self) -> Server:
        async with asyncio.timeout(30):
            while True:
                found = await self.once()
                assert isinstance(found, Server)
                if found.stopped:
                    return found
                await asyncio.sleep(0.05)

    async def fails(self) -> str:
        async with asyncio.timeout(60):
            while True:
                try:
                    assert isinstance(await self.once(), Pending)
                except ProvisionFailed as error:
                    return str(error)
                await asyncio.sleep(0.05)

    async def logs(self) -> str:
        """What `docker logs` shows of the container."""
        socket = self.engine.address.removeprefix("unix://")
        url = f"http://engine/v1.41/containers/{self.name}/logs?stdout=1&stderr=1"
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=socket)) as session, session.get(url) as answer:
            assert answer.status == 200
            return (await answer.read()).decode(errors="replace")

    async def output(self, line: str) -> str:
        return (await self.engine.run(self.name, ["/bin/sh", "-c", line])).text


@pytest.fixture(params=engines.names())
async def story(request: pytest.FixtureRequest) -> AsyncIterator[Story]:
    async with engines.engine_for_tests(Path(request.param)) as (engine, mark):
        yield Story(engine, mark)


async def test_a_machine_boots_from_its_data_and_goes(story: Story) -> None:
    story.boots(
        "echo {{ ds.meta_data.local_hostname }} > /var/hostname",
        'kubeadm_said=$(cat /run/kubeadm/kubeadm.yaml); test -n "$kubeadm_said"',
        files="write_files:\n- path: /run/kubeadm/kubeadm.yaml\n  permissions: '0600'\n  content: |\n    kind: ClusterConfiguration\n",
    )
    server = await story.up()

    assert server.provider_id == f"docker:////{story.name}"
    addresses = [(a.type, a.address) for a in server.addresses]
    assert any(type == "InternalIP" and address.count(".") == 3 for type, address in addresses), addresses
    assert ("Hostname", story.obj.metadata.name) in addresses
    assert await story.output("cat /var/hostname") == f"{story.obj.metadata.name}\n"
    assert "maxPerCore: 0" in await story.output("cat /run/kubeadm/kubeadm.yaml")
    assert not server.stopped
    assert isinstance(await story.once(), Server), "a look changes nothing"

    assert await story.provider.remove(story.obj, None) is True
    assert await story.engine.inspect(story.name) is None
    assert await story.provider.remove(story.obj, story.machine) is True


async def test_containers_of_a_machine_carry_labels(story: Story) -> None:
    story.machine = replace(story.machine, spec=replace(story.machine.spec, failure_domain="rack-7"))
    story.boots("true")
    assert (await story.up()).failure_domain == "rack-7"

    [found] = await story.engine.containers({naming.PLANE_LABEL: story.mark})
    labels = found["Labels"]
    assert labels[naming.CLUSTER_LABEL] == "c"
    assert labels[naming.NAMESPACE_LABEL] == "default"
    assert labels[naming.OBJECT_LABEL] == story.obj.metadata.name
    assert labels[naming.ROLE_LABEL] == "worker"
    assert labels[naming.FAILURE_DOMAIN_LABEL] == "rack-7"
    assert [n["Name"] for n in await story.engine.networks({naming.PLANE_LABEL: story.mark})] == [f"cw-test-{story.mark}"]


async def test_pods_of_a_node_may_have_ipv6_if_its_network_has(story: Story) -> None:
    """Engines let no new interface of a container have IPv6, which CNI plugins then cannot give to Pods."""
    story.boots("true")
    await story.up()
    if not await story.site.has_ipv6():
        pytest.skip("NO IPV6: the engine has no networks with IPv6; such nodes were not tried")

    settings = "cat /proc/sys/net/ipv6/conf/default/disable_ipv6 /proc/sys/net/ipv6/conf/all/forwarding"
    assert await story.output(settings) == "0\n1\n"


async def test_secrets_of_the_data_are_nowhere_but_in_the_node(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    since = await story.engine.now()
    story.boots(f"test {SECRET} = {SECRET}", files=f"write_files:\n- path: /var/secret\n  permissions: '0600'\n  content: {SECRET}\n")
    await story.up()
    assert await story.output("stat -c %a /var/secret; cat /var/secret") == f"600\n{SECRET}"

    seen = await story.engine.inspect(story.name)
    assert SECRET not in json.dumps(seen)
    assert SECRET not in await story.logs()
    assert SECRET not in caplog.text
    assert await story.output("ls /var/lib/clusterwright/boot 2>/dev/null") == ""
    await story.engine.remove(story.name)
    told = []
    async for event in story.engine.events({naming.PLANE_LABEL: story.mark}, since):
        told.append(event)
        if event["Action"] in {"destroy", "remove"}:
            break
    assert SECRET not in json.dumps(told), "commands are told in events"


async def test_a_failed_command_is_reported_and_not_repeated(story: Story) -> None:
    story.boots("echo again >> /var/runs", "echo 'error execution phase preflight: the port is in use' >&2; exit 1")

    said = await story.fails()
    assert said == "bootstrapping failed: runcmd 2 (echo) ended with code 1: error execution phase preflight: the port is in use"
    assert await story.fails() == said
    assert await story.output("cat /var/runs") == "again\n"
    assert await story.provider.remove(story.obj, story.machine) is True


async def test_a_restarted_plane_continues_the_boot(story: Story) -> None:
    story.boots("echo once >> /var/runs", "until test -f /var/go; do sleep 1; done")
    async with asyncio.timeout(60):
        while "once" not in (await story.output("cat /var/runs") if await story.engine.inspect(story.name) else ""):
            assert isinstance(await story.once(), Pending)
    client: Any = story.objects
    story.provider = DevContainers(client, Site(story.engine, client, entrypoint=INIT, network=f"cw-test-{story.mark}"))
    found = await story.once()
    assert isinstance(found, Pending)
    assert found.message == "Waiting for runcmd 2 (until)"

    await story.output("echo > /var/go")
    await story.up()
    assert await story.output("cat /var/runs") == "once\n"


async def test_a_stopped_container_is_reported_and_a_removed_one_is_gone(story: Story) -> None:
    story.boots("true")
    await story.up()
    await story.engine.kill(story.name, "KILL")
    found = await story.stops()
    assert "has stopped with code 137" in found.stopped
    assert found.provider_id == f"docker:////{story.name}"

    await story.engine.start(story.name)
    again = await story.once()
    assert isinstance(again, Server)
    assert not again.stopped

    await story.engine.remove(story.name)
    assert await story.once() == Gone(f"the container {story.name} was removed")
    assert await story.engine.inspect(story.name) is None, "it is not made again"


async def test_a_foreign_container_is_left_alone(story: Story) -> None:
    await story.engine.create(Container(name=story.name, image=IMAGE, entrypoint=INIT, labels={engines.TEST_LABEL: story.mark}))
    story.boots("true")

    assert f"the name {story.name} is taken by a container of another plane or user" in await story.fails()
    assert await story.provider.remove(story.obj, story.machine) is True
    assert await story.engine.inspect(story.name) is not None


async def test_half_made_containers_are_finished_or_removed(story: Story) -> None:
    story.boots("true")
    original = story.engine.start

    async def dies(container: str) -> None:
        raise asyncio.CancelledError

    story.engine.start = dies  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await story.once()
    story.engine.start = original  # type: ignore[method-assign]
    await story.up()


async def test_a_container_that_stops_right_after_its_start_is_reported_and_removed(story: Story) -> None:
    story.site.entrypoint = ("/bin/sh", "-c", "exit 3")
    story.boots("true")

    said = ""
    async with asyncio.timeout(60):
        while not said.startswith(f"the container {story.name} stops right after its start"):
            said = await story.fails()  # it may stop between two requests of a pass, which is a failure of that pass
    assert await story.provider.remove(story.obj, story.machine) is True
    assert await story.engine.inspect(story.name) is None


async def test_unusable_bootstrap_data_is_reported(story: Story) -> None:
    story.objects.data = b"{}"

    assert await story.fails() == "bootstrap data: cloud-init: user data does not start with #cloud-config"


async def test_a_machine_boots_from_ignition(story: Story) -> None:
    unit = "[Service]\nType=oneshot\nExecStart=/bin/sh /etc/kubeadm.sh\n"
    script = "data:,test%20-f%20/etc/kubeadm.yml%20%26%26%20echo%20joined%20%3E%20/var/joined"
    config = {
        "ignition": {"version": "2.3.0"},
        "storage": {
            "files": [
                {"filesystem": "root", "path": "/etc/kubeadm.sh", "mode": 0o700, "contents": {"source": script}},
                {
                    "filesystem": "root",
                    "path": "/etc/kubeadm.yml",
                    "mode": 0o600,
                    "contents": {"source": "data:,kind:%20InitConfiguration"},
                },
            ]
        },
        "systemd": {"units": [{"name": "kubeadm.service", "enabled": True, "contents": unit}]},
    }
    story.objects.data, story.objects.format = json.dumps(config).encode(), b"ignition"
    await story.up()

    assert await story.output("cat /var/joined; stat -c %a /etc/kubeadm.yml") == "joined\n600\n"
    assert "maxPerCore: 0" in await story.output("cat /etc/kubeadm.yml"), "a container's settings are added here, too"


async def test_ignition_that_needs_a_network_is_refused(story: Story) -> None:
    config = {"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/x", "contents": {"source": "https://example.com/x"}}]}}
    story.objects.data, story.objects.format = json.dumps(config).encode(), b"ignition"

    assert await story.fails() == "bootstrap data: ignition: /x has a source that cannot be fetched: only data URLs can be read here"


async def test_images_are_loaded_before_the_machine_boots(story: Story) -> None:
    story.wants(pre_load_images=(IMAGE,))
    story.boots("cp /var/imported /var/imported-before")
    await story.up()

    assert (await story.output("cat /var/imported-before")).count("images import") == 1


async def test_a_missing_image_is_reported(story: Story) -> None:
    story.wants(pre_load_images=("localhost/nowhere:1",))
    story.boots("true")

    assert "the container engine has no image localhost/nowhere:1" in await story.fails()
    assert await story.output("ls /var/lib/clusterwright 2>/dev/null") == "", "it did not boot without"


async def test_a_slow_boot_is_reported_and_may_still_succeed(story: Story) -> None:
    story.wants(bootstrap_timeout="1s")
    story.boots("until test -f /var/go; do sleep 1; done")

    assert await story.fails() == "bootstrapping takes longer than bootstrapTimeout (1s); it is at runcmd 1 (until)"
    await story.output("echo > /var/go")
    async with asyncio.timeout(30):
        while True:
            with suppress(ProvisionFailed):
                await story.once()
                break
            await asyncio.sleep(0.1)
    await story.up()


async def test_paths_of_the_host_are_refused_unless_allowed(story: Story, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host")
    story.wants(extra_mounts=(MountField(container_path="/mnt", host_path=str(tmp_path)),))
    story.boots("true")
    assert "--engine-allow-host-mounts" in await story.fails()
    assert await story.engine.inspect(story.name) is None

    story.site.allows_host_mounts = True
    await story.up()
    assert await story.output("cat /mnt/file") == "of the host"
