"""`clusterwright tour`: show a cluster's life in a minute, on a plane that keeps nothing; `make demo` runs it."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

from clusterwright.api.core import Machine
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.scheme import SCHEME
from clusterwright.api.wellknown import CORE_GROUP
from clusterwright.cli import connect, main
from clusterwright.cli.defaults import WAIT_SECONDS
from clusterwright.cli.errors import Failed
from clusterwright.cli.program import as_called
from clusterwright.runtime.following import states
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from clusterwright.simulation.defaults import KUBERNETES_VERSION

NAME, NAMESPACE = "tour", "default"
WORKERS = f"{NAME}-md-0"
UPGRADED = "v1.35.0"
_DEPLOYMENT = GroupVersionKind(CORE_GROUP, "v1beta2", "MachineDeployment")
_CHECK = GroupVersionKind(CORE_GROUP, "v1beta2", "MachineHealthCheck")
_CONTROL_PLANE = GroupVersionKind("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane")


def run(arguments: argparse.Namespace) -> int:
    """Run the whole tour; return 0 if every step succeeded."""
    with tempfile.TemporaryDirectory(prefix="clusterwright-tour-") as folder, _plane(Path(folder)) as kubeconfig:
        guide = _Guide(kubeconfig)
        for step in _STEPS:
            print(f"\n# {step.__doc__}", flush=True)
            step(guide)
    print(f"\nThe tour is over. `{as_called()} up --demo` starts a plane that stays.")
    return 0


@contextmanager
def _plane(folder: Path) -> Iterator[Path]:
    """Start a plane as a process and yield it once it is ready; end it and remove its data afterwards. Raises Failed."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "clusterwright", "up", "--in-memory", "--kubeconfig", str(kubeconfig), "--log-level", "error"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)  # noqa: S603
    try:
        assert process.stdout is not None
        line = next((line for line in process.stdout if "is ready at" in line), None)
        if line is None:
            raise Failed("the plane did not start")
        print(line, end="", flush=True)
        yield kubeconfig
    finally:
        process.terminate()
        process.communicate()  # its last words are not for people


class _Guide:
    """Runs commands as a user would, and changes objects as kubectl would."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self.broken = ""
        """The Machine that the tour broke."""

    def type(self, *words: str) -> None:
        """Run a command of this program; raises Failed."""
        print(f"$ clusterwright {' '.join(words)}", flush=True)
        if main.main([*words, "--kubeconfig", str(self._kubeconfig)]):
            raise Failed(f"`clusterwright {' '.join(words)}` failed")

    def change(self, gvk: GroupVersionKind, name: str, patch: Json, like: str) -> None:
        """Patch an object; `like`: the equivalent kubectl arguments."""
        print(f"$ kubectl {like}", flush=True)

        async def change(client: RestClient) -> None:
            await client.patch(gvk, ObjectKey(NAMESPACE, name), patch)

        asyncio.run(self._with_client(change))

    def machines(self, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """Return the Machines, once a predicate holds; raises Failed after the time limit."""
        found: list[Json] = []

        async def wait(client: RestClient) -> None:
            async with asyncio.timeout(WAIT_SECONDS), aclosing(states(client, SCHEME.of(Machine).path(NAMESPACE))) as seen:
                async for present in seen:
                    found[:] = present.values()
                    if holds(found):
                        return

        try:
            asyncio.run(self._with_client(wait))
        except TimeoutError:
            raise Failed(f"the Machines did not reach the state within {WAIT_SECONDS:g} s") from None
        return found

    async def _with_client(self, do: Callable[[RestClient], Awaitable[None]]) -> None:
        async with connect.connected(Kubeconfig.load([self._kubeconfig]).resolve()) as client:
            await do(client)


def _create(guide: _Guide) -> None:
    """Create a cluster of simulated machines, with workers that a MachineHealthCheck watches."""
    guide.type("create", "cluster", NAME, "--flavor", "health-check", "--wait")
    guide.type("get", "machines")


def _scale(guide: _Guide) -> None:
    """Scale from one worker to three."""
    guide.change(_DEPLOYMENT, WORKERS, {"spec": {"replicas": 3}}, f"scale machinedeployment {WORKERS} --replicas 3")
    guide.machines(_running(4, KUBERNETES_VERSION))
    guide.type("get", "machinedeployments")


def _upgrade(guide: _Guide) -> None:
    """Upgrade Kubernetes: new machines replace old ones, the control plane first."""
    leaders: Json = {"spec": {"version": UPGRADED}}
    guide.change(_CONTROL_PLANE, NAME, leaders, f"patch kcp {NAME} --type merge -p '{json.dumps(leaders)}'")
    guide.machines(lambda machines: _running(1, UPGRADED)([m for m in machines if _is_leader(m)]))
    workers: Json = {"spec": {"template": {"spec": {"version": UPGRADED}}}}
    guide.change(_DEPLOYMENT, WORKERS, workers, f"patch md {WORKERS} --type merge -p '{json.dumps(workers)}'")
    guide.machines(_running(4, UPGRADED))
    guide.type("get", "machines")


def _break(guide: _Guide) -> None:
    """Stop a kubelet. A Node may usually be unready for five minutes; here for five seconds."""
    rules = [{"type": "Ready", "status": status, "timeoutSeconds": 5} for status in ("Unknown", "False")]
    impatient: Json = {"spec": {"checks": {"unhealthyNodeConditions": rules}}}
    guide.change(_CHECK, WORKERS, impatient, f"patch mhc {WORKERS} --type merge -p '{json.dumps(impatient)}'")
    guide.broken = next(m["metadata"]["name"] for m in guide.machines(_running(4, UPGRADED)) if not _is_leader(m))
    guide.type("fault", "inject", f"machine/{guide.broken}", "kubelet-stops")
    guide.type("wait", f"machine/{guide.broken}", "--for", "condition=NodeHealthy=Unknown")


def _explain(guide: _Guide) -> None:
    """Explain why the cluster is unhealthy: the cause first, then the controller that acts on it."""
    guide.type("explain", f"cluster/{NAME}")


def _repair(guide: _Guide) -> None:
    """Wait until the machine is replaced, without any user action."""
    guide.type("wait", f"machine/{guide.broken}", "--for", "delete")
    guide.machines(_running(4, UPGRADED))
    guide.type("wait", f"cluster/{NAME}")
    guide.type("describe", f"cluster/{NAME}")


def _delete(guide: _Guide) -> None:
    """Delete the cluster and all its objects, in order."""
    guide.type("delete", "cluster", NAME)


_STEPS = (_create, _scale, _upgrade, _break, _explain, _repair, _delete)


def _is_leader(machine: Json) -> bool:
    return "cluster.x-k8s.io/control-plane" in (machine["metadata"].get("labels") or {})


def _running(count: int, version: str) -> Callable[[list[Json]], bool]:
    """Return whether there are this many Machines, all running this version."""

    def holds(machines: list[Json]) -> bool:
        fit = [m for m in machines if m["spec"].get("version") == version and (m.get("status") or {}).get("phase") == "Running"]
        return len(machines) == len(fit) == count

    return holds
