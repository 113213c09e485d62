"""Bootstrap data as our own controllers make it: what a simulated machine really gets to see."""

from dataclasses import dataclass
from datetime import datetime

import pytest

from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import ObjectKey
from clusterwright.inmemory import boot
from clusterwright.runtime.clock import LoopClock
from clusterwright.simulation import samples
from clusterwright.simulation.loop import run_virtual
from clusterwright.simulation.plane import plane
from clusterwright.simulation.world import START


@dataclass(frozen=True)
class Recorded:
    """The bootstrap data of three machines of a cluster, and what they saw around them."""

    data: dict[str, bytes]
    format: str
    now: datetime
    endpoint: str
    ca: bytes
    tokens: dict[str, dict[str, str]]

    def before(self):
        """What the first machine sees: nothing answers."""
        return boot.Neighbourhood(endpoint=self.endpoint, is_serving=False, ca=b"", find_token=lambda _: None)

    def after(self, **changes):
        """What a joining machine sees."""
        seen = {"endpoint": self.endpoint, "is_serving": True, "ca": self.ca, "find_token": self.tokens.get}
        return boot.Neighbourhood(**{**seen, **changes})


async def record(format):
    async with plane(LoopClock(START)) as p:
        await p.apply(samples.cluster("c"))
        for name in ("cp-0", "cp-1", "w-0"):
            objects = samples.machine("c", name, is_control_plane=name != "w-0")
            if format == "ignition":
                objects[0]["spec"]["format"] = "ignition"
            if name != "w-0":
                objects[0]["spec"]["clusterConfiguration"]["encryptionAlgorithm"] = "RSA-2048"
            await p.apply(objects)
        await p.until_available("c", control_plane=2, workers=1)
        machines = {}
        init = None
        for name in ("cp-0", "cp-1", "w-0"):
            secret = await p.client.get(Secret, ObjectKey("default", name))
            text = secret.data["value"]
            assert secret.data.get("format", b"cloud-config").decode() == (format or "cloud-config")
            machines[name] = text
            if b"kubeadm init" in text or b"kubeadm%20init" in text or b"ClusterConfiguration" in text:
                init = name
        other = "cp-1" if init == "cp-0" else "cp-0"
        workload = p.workload("c")
        secrets = await workload.client.list(Secret, namespace="kube-system")
        tokens = {
            s.metadata.name.removeprefix("bootstrap-token-"): {k: v.decode() for k, v in s.data.items()}
            for s in secrets
            if s.metadata.name.startswith("bootstrap-token-")
        }
        return Recorded(
            {"init": machines[str(init)], "control-plane": machines[other], "worker": machines["w-0"]},
            format,
            p.clock.now(),
            workload.endpoint,
            workload.serving.authority.certificate,
            tokens,
        )


@pytest.fixture(scope="session")
def cloud_config():
    return run_virtual(record("cloud-config"))


@pytest.fixture(scope="session")
def ignition():
    return run_virtual(record("ignition"))


@pytest.fixture(params=["cloud-config", "ignition"])
def recorded(request, cloud_config, ignition):
    return cloud_config if request.param == "cloud-config" else ignition
