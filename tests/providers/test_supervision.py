"""A provider's process is installed, started, supervised and removed: real processes, files, certificates and an API server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from clusterwright.api.kubernetes import ConfigMap, ValidatingWebhookConfiguration
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, ObjectMeta
from clusterwright.api.providers import Provider
from clusterwright.providers.output import Output
from clusterwright.providers.process import Process, end_leftover
from clusterwright.providers.records import BadRecord, Place, Removal, claimed, place
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.errors import ApiError, Forbidden
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.kubeconfig import Kubeconfig
from clusterwright.runtime.rest import RestClient
from providers.conftest import NAME, NAMESPACE, Rig, deployment, message_of, objects, reason_of, script
from support.patience import PATIENCE

WAIT = "print('up', flush=True)\nwhile True: time.sleep(3600)\n"
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


def release(container: Json | None = None, **spec: object) -> list[Json]:
    """A release without webhooks, with a Deployment."""
    return [obj for obj in objects() if obj["kind"] not in {"Deployment", "ValidatingWebhookConfiguration"}] + [
        deployment(container, **spec)
    ]


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while is_alive(pid):  # noqa: ASYNC110 - it is not our child
            await asyncio.sleep(0.02)


# ------------------------------------------------------------------------------------------------------ what it gets


async def test_a_provider_gets_exactly_the_rights_of_its_account(rig: Rig, tmp_path: Path) -> None:
    await rig.add(script(tmp_path, "print(os.environ['KUBECONFIG'], flush=True)\n" + WAIT), release())
    await rig.until_reason("Running")

    path = Path((await rig.until_said("up")).splitlines()[0])
    client = RestClient(HttpTransport(Kubeconfig.load([path]).resolve(""), SystemClock(), {}), clock=SystemClock())
    try:
        assert isinstance(await client.list(ConfigMap, namespace=NAMESPACE), list)
        with pytest.raises(Forbidden, match="system:serviceaccount:acme-system:acme"):
            await client.create(ConfigMap(metadata=ObjectMeta(name="x", namespace=NAMESPACE)))
    finally:
        await client.close()
    assert path.stat().st_mode & 0o077 == 0
    assert (rig.place.folder / "token").stat().st_mode & 0o077 == 0


async def test_arguments_environment_and_volumes_are_those_of_the_deployment(rig: Rig, tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "creds", "namespace": NAMESPACE},
        "stringData": {"k": "v", "LD_PRELOAD": "/x"},
    }
    container = {
        "args": ["--file=/etc/acme/k", "--ns=$(NS)", "--kubeconfig=$(KUBECONFIG)"],
        "env": [
            {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "OWN", "value": "/etc/acme"},
            {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "k"}}},
        ],
        "envFrom": [{"secretRef": {"name": "creds"}}],
        "volumeMounts": [{"name": "c", "mountPath": "/etc/acme"}],
    }
    body = """
file = sys.argv[1].partition('=')[2]
print(open(file).read(), sys.argv[2], os.path.exists(sys.argv[3].partition('=')[2]), os.environ['FROM'], sorted(os.listdir(os.environ['OWN'])))
print(sorted(set(os.environ) - {'PATH', 'LC_CTYPE'}), sys.argv[4:], flush=True)
"""
    volumes = [{"name": "c", "secret": {"secretName": "creds"}}]
    found = [*release(container, volumes=volumes), secret]

    await rig.add(
        script(tmp_path, body + WAIT), found, env={"MINE": "yes"}, extra=("--more",), flags={"own": "/etc/acme/k", "else": "/etc/x"}
    )
    await rig.until_reason("Running")

    lines = (await rig.until_said("up")).splitlines()
    assert lines[0] == "v --ns=acme-system True v ['LD_PRELOAD', 'k']"
    assert (
        lines[1]
        == "['FROM', 'HOME', 'KUBECONFIG', 'LANG', 'MINE', 'NS', 'OWN', 'TMPDIR', 'k'] ['--own="
        + str(rig.place.folder)
        + "/files/0/k', '--more']"
    )


async def test_a_missing_secret_is_named_and_waited_for(rig: Rig, tmp_path: Path) -> None:
    container = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "later", "key": "k"}}}]}
    await rig.add(script(tmp_path, WAIT), release(container))

    found = await rig.until_reason("NotStarted")
    assert "Secret acme-system/later does not exist" in message_of(found)

    await rig.client.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later", "namespace": NAMESPACE}, "stringData": {"k": "v"}}
    )
    await rig.until_reason("Running")


SERVE = """
sys.path[:0] = [p for p in {path!r} if p]
import http.server, json, ssl
flags = dict(a.lstrip('-').split('=', 1) for a in sys.argv[1:])
class Check(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers['content-length'])))
        answer = {{'uid': review['request']['uid'], 'allowed': False, 'status': {{'message': 'acme says no', 'code': 403}}}}
        body = json.dumps({{'apiVersion': review['apiVersion'], 'kind': review['kind'], 'response': answer}}).encode()
        self.send_response(200); self.send_header('content-length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
server = http.server.HTTPServer(('127.0.0.1', int(flags['webhook-port'])), Check)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(flags['webhook-cert-dir'] + '/tls.crt', flags['webhook-cert-dir'] + '/tls.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
print('serving', flush=True)
server.serve_forever()
"""


async def test_webhooks_reach_the_process_and_end_with_it(rig: Rig, tmp_path: Path) -> None:
    binary = script(tmp_path, SERVE.format(path=sys.path))
    await rig.add(binary, objects(), flags={"webhook-port": "", "webhook-cert-dir": "/tmp/x"})
    await rig.until_reason("Running")
    await rig.until_said("serving")

    one = ConfigMap(metadata=ObjectMeta(name="x", namespace=NAMESPACE, labels={"acme": "yes"}))
    with pytest.raises(ApiError, match="acme says no"):
        await rig.client.create(one)

    await rig.add(binary, objects(), removal=Removal())
    await rig.until(lambda provider: provider is None)
    assert await rig.client.find(ValidatingWebhookConfiguration, ObjectKey("", "acme-hooks")) is None
    await rig.client.create(one)


# -------------------------------------------------------------------------------------------------------- its failures


async def test_a_crash_is_reported_with_the_last_output_and_the_pauses_grow(rig: Rig, tmp_path: Path) -> None:
    body = "print('token eyJhbGciOiJSUzI1NiIs.eyJzdWIiOiJ4eXoi.abc', flush=True)\nsys.exit('no cloud')\n"
    await rig.add(script(tmp_path, body), release())

    found = await rig.until_reason("Crashed", restarts=4)

    assert "the process ended: exit status 1; its last output:" in message_of(found)
    assert "no cloud" in message_of(found)
    assert "eyJ" not in message_of(found)
    assert found.status.last_exit == "exit status 1"
    assert found.status.next_start is not None
    pauses = [seconds for seconds in rig.clock.slept if seconds in {1.0, 2.0, 4.0, 8.0}]
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]


async def test_a_program_that_does_not_exist_is_reported(rig: Rig, tmp_path: Path) -> None:
    await rig.add(tmp_path / "nothing", release())

    found = await rig.until_reason("NotStarted")

    assert message_of(found) == f"{tmp_path / 'nothing'} cannot be started: No such file or directory"


async def test_a_process_that_does_not_answer_is_started_again(rig: Rig, tmp_path: Path) -> None:
    container = {"livenessProbe": {"httpGet": {"port": 1}, "failureThreshold": 2, "periodSeconds": 1}}
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\n" + WAIT
    await rig.add(script(tmp_path, body), release(container, terminationGracePeriodSeconds=1))

    found = await rig.until(lambda p: p is not None and p.status.restarts >= 1)

    assert found is not None
    assert found.status.last_exit.startswith("port 1: ")
    await until_gone(int(rig.output().splitlines()[0]))


async def test_readiness_decides_whether_it_runs(rig: Rig, tmp_path: Path) -> None:
    body = f"""
sys.path[:0] = [p for p in {sys.path!r} if p]
import http.server
flags = dict(a.lstrip('-').split('=', 1) for a in sys.argv[1:])
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists({str(tmp_path / "ready")!r}) and self.path == '/readyz' else 503); self.end_headers()
    def log_message(self, *a): pass
http.server.HTTPServer(('127.0.0.1', int(flags['health-addr'].rpartition(':')[2])), Ready).serve_forever()
"""
    container = {"readinessProbe": {"httpGet": {"path": "/readyz", "port": 9440}, "periodSeconds": 1}}
    await rig.add(script(tmp_path, body), release(container), flags={"health-addr": ""})
    await rig.until_reason("Starting")

    (tmp_path / "ready").touch()
    await rig.until_reason("Running")
    (tmp_path / "ready").unlink()
    found = await rig.until_reason("NotReady")

    assert "answers /readyz with status 503" in message_of(found)
    assert found.status.restarts == 0


async def test_a_flood_fills_neither_the_disk_nor_the_time_of_the_plane(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    (folder / "work").mkdir(parents=True)
    output = Output(folder / "output.log", SystemClock().now, largest=100_000, per_second=200_000)
    flood = script(tmp_path, "while True: os.write(1, b'x' * 999 + b'\\n')\n")
    process = await Process.start([str(flood)], {}, folder, output, SystemClock())

    before = os.times()
    await asyncio.sleep(1.5)
    used = os.times().user - before.user

    sizes = [path.stat().st_size for path in folder.glob("output.log*")]
    await process.stop(1.0)
    assert used < 0.7, "the reader waits when the process writes too much"
    assert 0 < sum(sizes) <= 300_000
    assert all(size <= 165_536 for size in sizes)
    assert "x" * 100 in process.last_output
    assert len(process.last_output) <= 600


async def test_the_children_of_a_process_end_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    (folder / "work").mkdir(parents=True)
    body = "import subprocess\nchild = subprocess.Popen(['sleep', '3600'])\nprint(child.pid, flush=True)\n" + WAIT
    process = await Process.start(
        [str(script(tmp_path, body))], {"PATH": os.environ["PATH"]}, folder, Output(folder / "output.log", SystemClock().now), SystemClock()
    )
    async with asyncio.timeout(PATIENCE):
        while not (folder / "output.log").exists() or not (folder / "output.log").read_text():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.02)

    await process.stop(5.0)

    await until_gone(int((folder / "output.log").read_text().splitlines()[0]))


# ------------------------------------------------------------------------------------------------------- its plane


async def test_a_provider_ends_with_its_plane_and_is_started_by_the_next_one(rig: Rig, tmp_path: Path) -> None:
    await rig.add(script(tmp_path, "print(os.getpid(), flush=True)\n" + WAIT), release())
    await rig.until_reason("Running")
    first = int((await rig.until_said("up")).splitlines()[0])

    await rig.stop()
    assert not is_alive(first)

    await rig.start()
    await rig.until(lambda p: p is not None and reason_of(p) == "Running" and rig.output().count("up") == 2)


async def test_a_process_that_a_killed_plane_left_is_ended_before_a_new_one_starts(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    (folder / "work").mkdir(parents=True)
    left = await Process.start([str(script(tmp_path, WAIT))], {}, folder, Output(folder / "output.log", SystemClock().now), SystemClock())
    mark = (folder / "process").read_text()

    assert await end_leftover(folder)

    assert await left.ended() == "killed by SIGKILL"
    assert not await end_leftover(folder)
    other = subprocess.Popen(["sleep", "3600"])  # noqa: ASYNC220 - it starts at once
    try:  # the number of the process is used again, by another one
        ticks, _, boot = mark.split()[1].partition("@")  # both may have been started in the same hundredth of a second
        (folder / "process").write_text(f"{other.pid} {int(ticks) - 1}@{boot}\n")
        assert not await end_leftover(folder)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_a_new_record_restarts_the_process_and_removes_what_is_no_longer_in_the_release(rig: Rig, tmp_path: Path) -> None:
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}, "data": {}}
    binary = script(tmp_path, "print(sys.argv[1:], flush=True)\n" + WAIT)
    await rig.add(binary, [*release(), extra])
    await rig.until_reason("Running")
    assert await rig.client.find(ConfigMap, ObjectKey(NAMESPACE, "old")) is not None

    digest = await rig.add(binary, release(), extra=("--second",))

    await rig.until(lambda p: p is not None and p.status.record == digest and reason_of(p) == "Running")
    assert await rig.client.find(ConfigMap, ObjectKey(NAMESPACE, "old")) is None
    assert "['--second']" in await rig.until_said("--second")


async def test_removal_keeps_definitions_and_namespace_unless_asked(rig: Rig, tmp_path: Path) -> None:
    binary, name = script(tmp_path, WAIT), ObjectKey("", "acmemachines.infrastructure.cluster.x-k8s.io")
    await rig.add(binary, release())
    await rig.until_reason("Running")

    await rig.add(binary, release(), removal=Removal())
    await rig.until(lambda provider: provider is None)

    assert await rig.client.find(CRD, name) is not None
    assert not rig.place.folder.exists()
    await rig.add(binary, release(), removal=Removal(definitions=True))
    await rig.until(lambda provider: provider is None and not rig.place.folder.exists())
    assert await rig.client.find(CRD, name) is None


async def test_a_release_with_a_kind_of_the_plane_is_refused(rig: Rig, tmp_path: Path) -> None:
    object.__setattr__(rig.ours, "taken", {"acmemachines.infrastructure.cluster.x-k8s.io": "leave it out"})

    await rig.add(script(tmp_path, WAIT), release())

    found = await rig.until_reason("KindsTaken")
    assert message_of(found) == "acmemachines.infrastructure.cluster.x-k8s.io belongs to this plane: leave it out"


# --------------------------------------------------------------------------------------------------------- security


async def test_an_object_of_the_api_starts_nothing(rig: Rig) -> None:
    """Tenants write objects; only the owner of the data directory writes records."""
    meta = ObjectMeta(name=NAME, namespace="default", annotations={"providers.clusterwright.dev/record": "x"})
    await rig.client.create(Provider(metadata=meta, provider_name="acme"))

    assert rig.supervisor is not None
    await rig.supervisor.reconcile(ObjectKey("default", NAME))
    await rig.supervisor.reconcile(ObjectKey("default", "..."))

    assert not (rig.data_dir / "providers").exists()
    found = await rig.client.get(Provider, ObjectKey("default", NAME))
    assert found.status.conditions == ()


@pytest.mark.parametrize("exposed", ["record.json", "", ".."])
async def test_a_record_that_others_can_write_is_not_run(rig: Rig, tmp_path: Path, exposed: str) -> None:
    ran = tmp_path / "ran"
    binary = script(tmp_path, f"open({str(ran)!r}, 'w')\n")
    await rig.stop()
    rig.supervisor, stopped = rig.supervisor, rig.supervisor
    await rig.add(binary, release())
    (rig.place.folder / exposed).chmod(0o777)

    with pytest.raises(BadRecord, match="other users can write it"):
        rig.place.read()
    await rig.start()
    assert rig.supervisor is not stopped
    await asyncio.sleep(0.1)

    assert not ran.exists()
    assert await rig.state() is None


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    one = place(tmp_path, NAME)
    one.folder.mkdir(parents=True, mode=0o700)
    one.folder.parent.chmod(0o700)
    (one.folder / "record.json").write_text("{")

    with pytest.raises(BadRecord, match=r"record\.json: is damaged"):
        one.read()
    assert claimed(tmp_path) == frozenset()


async def test_a_record_that_can_no_longer_be_used_is_named_in_the_state(rig: Rig, tmp_path: Path) -> None:
    await rig.add(script(tmp_path, WAIT), release())
    await rig.until_reason("Running")
    assert rig.supervisor is not None

    (rig.place.folder / "record.json").write_text("{")
    await rig.supervisor.look(NAME)

    found = await rig.until_reason("NotStarted")
    assert "record.json: is damaged" in message_of(found)
    assert not (rig.place.folder / "process").exists()


@pytest.mark.parametrize("name", ["..", "a/b", "", "A"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRecord):
        place(tmp_path, name)


async def test_a_key_of_a_secret_does_not_lead_out_of_its_volume(rig: Rig, tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAMESPACE}, "stringData": {"k": "v"}}
    container = {"volumeMounts": [{"name": "c", "mountPath": "/etc/acme"}]}
    volumes = [{"name": "c", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../../record.json"}]}}]

    await rig.add(script(tmp_path, WAIT), [*release(container, volumes=volumes), secret])

    found = await rig.until_reason("NotStarted")
    assert "leads out of the volume" in message_of(found)
    assert Place(rig.place.folder).read()[0].name == NAME


async def test_a_flag_for_the_port_of_webhooks_gets_a_free_port_that_is_kept(rig: Rig, tmp_path: Path) -> None:
    await rig.add(script(tmp_path, "print(sys.argv[1:], flush=True)\n" + WAIT), release(), flags={"webhook-port": ""})
    await rig.until_reason("Running")
    first = (await rig.until_said("up")).splitlines()[0]

    os.killpg(int((rig.place.folder / "process").read_text().split()[0]), signal.SIGKILL)
    await rig.until(lambda p: p is not None and p.status.restarts == 1 and rig.output().count("up") == 2)

    assert first.startswith("['--webhook-port=")
    assert rig.output().splitlines()[2] == first
