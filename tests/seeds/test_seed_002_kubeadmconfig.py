"""Seed 002, row by row: its eight transition tables (28 rows) and every edge of its flowchart, on the real controller.

`TABLES` is the seed's text as data, and names the rows of our tables that say the same: their words, order, requeue and error are
compared. Each row has a scenario that arranges the observed status, runs one pass and compares which of our rows fired and what the
seed says of the result. Where a ruling differs from the seed's wording, the row says so.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.core import Machine
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.controllers.kubeadmconfig import conditions as tables
from clusterwright.controllers.kubeadmconfig import plan, reconciler
from clusterwright.kubeadm import tokens
from clusterwright.offline.catalogue import tables_of
from clusterwright.runtime.paused import PAUSE
from clusterwright.tables import Later, Table, Transition
from clusterwright.tables import Row as TableRow
from support import kubeadmconfig as harness

World = Any
Scenario = Callable[[World], Awaitable[None]]

WAITING_INFRASTRUCTURE = "Waiting for Cluster status.infrastructureReady to be true"
WAITING_CONTROL_PLANE = "Waiting for Cluster control plane to be initialized"
CHECK_LOGS = "Please check controller logs for errors"
USERS = "Failed to read password from secrets for spec.users"
KUBECONFIG = "Failed to create kubeconfig for spec.joinConfiguration.discovery.file"
TRUE = ("True", "Available", "")
READY = ("True", "Ready", "")
TTL = tokens.DEFAULT_TTL.total_seconds()


@dataclass(frozen=True)
class Expected:
    """A row of the seed: `words` is the cell that says when it holds; `ours` are the rows of our tables that fire.

    The last of `ours` is the row that asks what the seed asks. A condition that is not named is not spoken of; None: it must be absent.
    """

    words: str
    ours: tuple[str, ...]
    conditions: dict[str, tuple[str, str, str] | None]
    requeue: float | None = None
    error: str = ""
    ruling: str = ""


NOTHING: dict[str, tuple[str, str, str] | None] = {"DataSecretAvailable": None, "Ready": None}
ALL_TRUE: dict[str, tuple[str, str, str] | None] = {"DataSecretAvailable": TRUE, "CertificatesAvailable": TRUE, "Ready": READY}
DATA_TRUE: dict[str, tuple[str, str, str] | None] = {"DataSecretAvailable": TRUE, "Ready": READY}


def waiting(text: str) -> dict[str, tuple[str, str, str] | None]:
    return {"DataSecretAvailable": ("False", "NotAvailable", text)}


CERTIFICATES_UNKNOWN: dict[str, tuple[str, str, str] | None] = {"CertificatesAvailable": ("Unknown", "InternalError", CHECK_LOGS)}

# table -> row -> what it says
TABLES: dict[str, dict[str, Expected]] = {
    "Pre-Reconciliation Checks": {
        "no-kubeadmconfig": Expected("KubeadmConfig not found", ("reconcile/not-found",), {}),
        "no-owner-reference": Expected("Owner (Machine/MachinePool) not yet assigned", ("Presence/no-owner",), NOTHING),
        "cluster-not-found": Expected("Cluster reference resolution fails", ("Presence/no-cluster",), NOTHING),
        "deletion-timestamp": Expected("KubeadmConfig marked for deletion", ("Presence/deleting",), NOTHING),
        "paused": Expected(
            "`paused.EnsurePausedCondition` returns paused",
            ("Paused/paused",),
            {"Paused": ("True", "Paused", "Cluster spec.paused is set to true"), "DataSecretAvailable": None},
        ),
    },
    "Initial Control Plane Bootstrap": {
        "infrastructure-not-provisioned": Expected(
            "`cluster.status.initialization.infrastructureProvisioned=false`",
            ("Step/infrastructure-not-provisioned",),
            waiting(WAITING_INFRASTRUCTURE),
        ),
        "first-control-plane": Expected("First control plane machine needs init", ("Step/init-control-plane", "InitLock/free"), ALL_TRUE),
        "lock-held-by-another": Expected(
            "Another CP machine already initializing",
            ("Step/init-control-plane", "InitLock/held"),
            waiting(WAITING_CONTROL_PLANE),
            requeue=30,
            ruling="the row itself changes nothing; a condition never set is first initialised as for workers",
        ),
        "worker-waits": Expected(
            "`infrastructureProvisioned=true`, `ControlPlaneInitialized=false`, is worker",
            ("Step/await-control-plane",),
            waiting(WAITING_CONTROL_PLANE),
            requeue=30,
        ),
    },
    "Control Plane Join": {
        "join": Expected(
            "`ControlPlaneInitialized=true`, CP machine, `dataSecretCreated=false`",
            ("Discovery/token-missing", "Step/join-control-plane"),
            ALL_TRUE,
            requeue=TTL / 3,
        ),
        "endpoint-missing": Expected(
            "Waiting for LB endpoint via `reconcileDiscovery`",
            ("Step/join-control-plane", "Discovery/endpoint-missing"),
            {"DataSecretAvailable": None, "CertificatesAvailable": TRUE},
            requeue=10,
            ruling="CertificatesAvailable says what the look-up before it found; the endpoint is asked for before the token",
        ),
        "certificates-missing": Expected(
            "Certificates not found or EnsureAllExist fails",
            ("Step/join-control-plane", "CertificatesAvailable/lookup-failed"),
            CERTIFICATES_UNKNOWN,
            error="missing certificate",
        ),
    },
    "Worker Join": {
        "join": Expected(
            "`ControlPlaneInitialized=true`, worker machine, `dataSecretCreated=false`",
            ("Discovery/token-missing", "Step/join-worker"),
            ALL_TRUE,
            requeue=TTL / 3,
        ),
        "control-plane-set": Expected(
            "Worker machine, `JoinConfiguration.ControlPlane` set",
            ("Step/join-worker", "Discovery/control-plane-set"),
            {"DataSecretAvailable": None},
            error="Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object",
        ),
    },
    "Bootstrap Token Management": {
        "periodic-check": Expected(
            "`dataSecretCreated=true`, token exists, node not joined (`!hasNodeRefs`)",
            ("Step/refresh-token", "BootstrapToken/good"),
            DATA_TRUE,
            requeue=TTL / 3,
        ),
        "token-expiring": Expected(
            "Token near expiration detected", ("Step/refresh-token", "BootstrapToken/near-its-end"), DATA_TRUE, requeue=TTL / 3
        ),
        "machine-pool-rotation": Expected(
            "Call `shouldRotate()`, if true (past `TTL/2`)",
            ("Step/rotate-token", "BootstrapToken/past-half"),
            DATA_TRUE,
            requeue=TTL / 3,
        ),
        "machine-pool-token-missing": Expected(
            "Token deleted externally (IsNotFound)", ("BootstrapToken/gone-and-unused",), DATA_TRUE, requeue=TTL / 3
        ),
    },
    "Pivot/Restore Scenarios": {
        "status-not-preserved": Expected(
            '`status.initialization.dataSecretCreated=false` or `status.dataSecretName=""`, but `configOwner.DataSecretName()` is set',
            ("Step/restore-status",),
            ALL_TRUE,
        ),
        "upgrade-to-v1beta2": Expected(
            "`status.initialization.dataSecretCreated=true`, v1beta2 conditions missing", ("Step/generated",), ALL_TRUE
        ),
    },
    "Deletion Handling": {"deletion-timestamp": Expected("KubeadmConfig deletion", ("Presence/deleting",), NOTHING)},
    "Error Handling": {
        "certificate-generation": Expected(
            "Certificate generation fails (initial CP)",
            ("InitLock/free", "CertificatesAvailable/generation-failed"),
            CERTIFICATES_UNKNOWN,
            error="refused",
        ),
        "certificate-lookup": Expected(
            "Certificate lookup fails (join)",
            ("CertificatesAvailable/lookup-failed",),
            CERTIFICATES_UNKNOWN,
            error="for certificate: ca: missing key data",
        ),
        "file-resolution": Expected(
            "File resolution fails",
            ("DataSecretAvailable/files-unresolved",),
            {},
            error="failed to resolve file source",
            ruling="v1.14 says what is wrong: Failed to prepare spec.files: <error> (cluster-api #13433)",
        ),
        "user-resolution": Expected(
            "User password resolution fails",
            ("DataSecretAvailable/users-unresolved",),
            waiting(USERS),
            error="failed to resolve passwd source",
        ),
        "token-creation": Expected(
            "Workload cluster unreachable or token creation error",
            ("BootstrapToken/not-created",),
            {"DataSecretAvailable": None},
            error="failed to create new bootstrap token",
        ),
        "init-lock": Expected(
            "Concurrent init attempt or ConfigMap creation conflict",
            ("InitLock/not-acquired",),
            waiting(WAITING_CONTROL_PLANE),
            requeue=30,
            ruling="as lock-held-by-another",
        ),
        "discovery-kubeconfig": Expected(
            "Discovery kubeconfig resolution fails",
            ("DataSecretAvailable/kubeconfig-failed",),
            waiting(KUBECONFIG),
            error="cannot marshal",
        ),
    },
}
# The seed's words where our guard says the same in others: a table's order implies what the rows above it excluded.
SAME_WORDS = {
    "`paused.EnsurePausedCondition` returns paused": "the Cluster's spec.paused || annotation cluster.x-k8s.io/paused present",
    "`cluster.status.initialization.infrastructureProvisioned=false`": "!cluster.status.initialization.infrastructureProvisioned=true",
    "`infrastructureProvisioned=true`, `ControlPlaneInitialized=false`, is worker": "!ControlPlaneInitialized=true",
    "`ControlPlaneInitialized=true`, CP machine, `dataSecretCreated=false`": "is control plane machine",
    "`ControlPlaneInitialized=true`, worker machine, `dataSecretCreated=false`": "otherwise",
    "Waiting for LB endpoint via `reconcileDiscovery`": "Waiting for LB endpoint via reconcileDiscovery",
    "Certificates not found or EnsureAllExist fails": "Certificate lookup fails (join)",
    "Worker machine, `JoinConfiguration.ControlPlane` set": "Worker machine, JoinConfiguration.ControlPlane set",
    "`dataSecretCreated=true`, token exists, node not joined (`!hasNodeRefs`)": "token exists",
    "Call `shouldRotate()`, if true (past `TTL/2`)": "past TTL/2",
    "Token deleted externally (IsNotFound)": (
        "Token deleted externally (IsNotFound) && !(the infrastructure was created with the token)"
        " && !(owner is a Machine && !ControlPlaneInitialized=true)"
    ),
    '`status.initialization.dataSecretCreated=false` or `status.dataSecretName=""`, but `configOwner.DataSecretName()` is set': (
        "configOwner.DataSecretName() is set && !(dataSecretCreated=true && status.dataSecretName is set)"
    ),
    "`status.initialization.dataSecretCreated=true`, v1beta2 conditions missing": "dataSecretCreated=true",
    "KubeadmConfig deletion": "KubeadmConfig marked for deletion",
}
ROWS = [(table, row) for table, rows in TABLES.items() for row in rows]

SCENARIOS: dict[tuple[str, str], Scenario] = {}
AFTERWARDS: dict[tuple[str, str], Scenario] = {}


def arranges(table: str, row: str) -> Callable[[Scenario], Scenario]:
    return lambda scenario: SCENARIOS.setdefault((table, row), scenario)


def then(table: str, row: str) -> Callable[[Scenario], Scenario]:
    return lambda scenario: AFTERWARDS.setdefault((table, row), scenario)


# ---------------------------------------------------------------------------------------- pre-checks

PRE = "Pre-Reconciliation Checks"


@arranges(PRE, "no-kubeadmconfig")
async def _(w: World) -> None:
    await w.cluster()


@arranges(PRE, "no-owner-reference")
async def _(w: World) -> None:
    await w.cluster()
    await w.config()


@arranges(PRE, "cluster-not-found")
async def _(w: World) -> None:
    await w.worker()


async def _deleting(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.config(owner=await w.machine(), finalizers=["example.com/wait"])
    await w.delete(KubeadmConfig, "m1")


arranges(PRE, "deletion-timestamp")(_deleting)
arranges("Deletion Handling", "deletion-timestamp")(_deleting)


@then(PRE, "deletion-timestamp")
@then("Deletion Handling", "deletion-timestamp")
async def _(w: World) -> None:
    assert w.transport.writes == []
    assert await w.tokens() == []


@arranges(PRE, "paused")
async def _(w: World) -> None:
    await w.cluster(paused=True, initialized=True)
    await w.certificates()
    await w.worker()


@then(PRE, "paused")
async def _(w: World) -> None:
    assert not await w.has_data()
    assert (await w.read()).status.observed_generation == 0


# ---------------------------------------------------------------------------------------------- init

INIT = "Initial Control Plane Bootstrap"


@arranges(INIT, "infrastructure-not-provisioned")
async def _(w: World) -> None:
    await w.cluster(infrastructure=False)
    await w.control_plane_machine(spec={"initConfiguration": {"skipPhases": ["addon/kube-proxy"]}})


@then(INIT, "infrastructure-not-provisioned")
async def _(w: World) -> None:
    assert (await w.conditions())["Ready"][:2] == ("False", "NotReady")
    assert await w.lock() is None


@arranges(INIT, "first-control-plane")
async def _(w: World) -> None:
    await w.cluster(control_plane_ref=False)
    await w.control_plane_machine()


@then(INIT, "first-control-plane")
async def _(w: World) -> None:
    config = await w.read()
    assert config.status.data_secret_name == "m1"
    assert config.status.initialization is not None
    assert config.status.initialization.data_secret_created is True
    assert await w.holder() == "m1"
    assert [d["kind"] for d in await w.documents()] == ["ClusterConfiguration", "InitConfiguration"]
    for name in ("c1-ca", "c1-etcd", "c1-proxy", "c1-sa"):  # stand-alone: looked up or generated
        assert (await w.judge.get(Secret, config.key._replace(name=name))).data["tls.key"]


async def _lock_held(w: World) -> None:
    await w.cluster()
    await w.certificates()
    await w.control_plane_machine("m0")
    await w.reconcile("m0")
    await w.control_plane_machine()


arranges(INIT, "lock-held-by-another")(_lock_held)


@then(INIT, "lock-held-by-another")
async def _(w: World) -> None:
    assert await w.holder() == "m0"
    assert not await w.has_data()


@arranges(INIT, "worker-waits")
async def _(w: World) -> None:
    await w.cluster()
    await w.certificates()
    await w.worker()


# ---------------------------------------------------------------------------------------------- joins

JOIN = "Control Plane Join"


@arranges(JOIN, "join")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.control_plane_machine(spec={"joinConfiguration": {"controlPlane": {}}})


@then(JOIN, "join")
async def _(w: World) -> None:
    (document,) = await w.documents()
    assert document["controlPlane"] == {"localAPIEndpoint": {}}
    assert document["discovery"]["bootstrapToken"]["apiServerEndpoint"] == "10.0.0.1:6443"
    assert "/etc/kubernetes/pki/ca.key" in await w.files()
    assert len(await w.tokens()) == 1


@arranges(JOIN, "endpoint-missing")
async def _(w: World) -> None:
    await w.cluster(initialized=True, endpoint=None)
    await w.certificates()
    await w.control_plane_machine()


@then(JOIN, "endpoint-missing")
async def _(w: World) -> None:
    assert not await w.has_data()
    assert await w.tokens() == []


@arranges(JOIN, "certificates-missing")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.control_plane_machine()


@then(JOIN, "certificates-missing")
async def _(w: World) -> None:
    assert (await w.conditions())["Ready"][:2] == ("Unknown", "ReadyUnknown")


WORKER = "Worker Join"


@arranges(WORKER, "join")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates("ca")
    await w.worker(spec={"joinConfiguration": {"nodeRegistration": {"name": "n1"}}})


@then(WORKER, "join")
async def _(w: World) -> None:
    (document,) = await w.documents()
    assert document["nodeRegistration"]["taints"] == [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]
    join = (await w.read()).spec.join_configuration
    assert join.node_registration.taints is None  # temporary, not persisted


@arranges(WORKER, "control-plane-set")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.worker(spec={"joinConfiguration": {"controlPlane": {}}})


@then(WORKER, "control-plane-set")
async def _(w: World) -> None:
    assert await w.tokens() == []  # ruling: checked before anything is created
    assert not await w.has_data()


# ---------------------------------------------------------------------------------------------- tokens

TOKENS = "Bootstrap Token Management"


async def _joined(w: World, make: str = "worker", **how: Any) -> str:
    await w.cluster(initialized=True)
    await w.certificates()
    name = "mp1" if make == "pool_config" else "m1"
    await getattr(w, make)(name, **how)
    await w.reconcile(name)
    token: str = await w.token(name)
    return token


@arranges(TOKENS, "periodic-check")
async def _(w: World) -> None:
    w.before = await w.expiration(await _joined(w))


@then(TOKENS, "periodic-check")
async def _(w: World) -> None:
    assert await w.expiration(await w.token()) == w.before


@arranges(TOKENS, "token-expiring")
async def _(w: World) -> None:
    w.before = await w.expiration(await _joined(w))
    w.later(minutes=5)


@then(TOKENS, "token-expiring")
async def _(w: World) -> None:
    assert (await w.expiration(await w.token()) - w.before).total_seconds() == 300


@arranges(TOKENS, "machine-pool-rotation")
async def _(w: World) -> None:
    w.name = "mp1"
    w.before = await _joined(w, "pool_config", replicas=2, nodes=2)
    w.old_data = await w.data("mp1")
    w.later(minutes=8)


@then(TOKENS, "machine-pool-rotation")
@then(TOKENS, "machine-pool-token-missing")
async def _(w: World) -> None:
    token = await w.token("mp1")
    assert token != w.before
    assert token in await w.data("mp1")
    assert w.before not in await w.data("mp1")
    assert await w.expiration(token) > w.clock.now()


@arranges(TOKENS, "machine-pool-token-missing")
async def _(w: World) -> None:
    w.name = "mp1"
    w.before = await _joined(w, "pool_config", replicas=2, nodes=0)
    (secret,) = await w.tokens()
    await w.remote.delete(Secret, secret.key)


# ---------------------------------------------------------------------------------- pivot and upgrade

PIVOT = "Pivot/Restore Scenarios"


@arranges(PIVOT, "status-not-preserved")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.worker(data_secret="something")


@then(PIVOT, "status-not-preserved")
async def _(w: World) -> None:
    assert (await w.read()).status.data_secret_name == "something"
    assert (await w.v1beta1())["CertificatesAvailable"][0] == "True"  # ruling: both forms


@arranges(PIVOT, "upgrade-to-v1beta2")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    status = {"initialization": {"dataSecretCreated": True}, "dataSecretName": "m1"}
    await w.config(owner=await w.machine(data_secret="m1"), status=status)


# ---------------------------------------------------------------------------------------------- errors

ERRORS = "Error Handling"


@arranges(ERRORS, "certificate-generation")
async def _(w: World) -> None:
    await w.cluster(control_plane_ref=False)
    await w.control_plane_machine()
    w.refuse("POST", "/secrets$")


@then(ERRORS, "certificate-generation")
async def _(w: World) -> None:
    assert await w.lock() is None
    assert (await w.v1beta1())["CertificatesAvailable"][:3] == ("False", "Warning", "CertificatesGenerationFailed")


@arranges(ERRORS, "certificate-lookup")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.secret("c1-ca", {"tls.crt": harness.certificate_pair(harness.pki.Purpose.CA).certificate})
    await w.worker()


@then(ERRORS, "certificate-lookup")
async def _(w: World) -> None:
    assert (await w.v1beta1())["CertificatesAvailable"][:3] == ("False", "Error", "CertificatesCorrupted")


@arranges(ERRORS, "file-resolution")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.worker(spec={"files": [{"path": "/etc/x", "contentFrom": {"secret": {"name": "gone", "key": "k"}}}]})


@arranges(ERRORS, "user-resolution")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.secret("s", {"other": "x"})
    await w.worker(spec={"users": [{"name": "u", "passwdFrom": {"secret": {"name": "s", "key": "k"}}}]})


@arranges(ERRORS, "token-creation")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    await w.worker()
    w.refuse_remote("POST", "/secrets$")


@arranges(ERRORS, "init-lock")
async def _(w: World) -> None:
    await w.cluster()
    await w.certificates()
    await w.control_plane_machine()
    w.refuse("POST", "/configmaps$", 409, "AlreadyExists")


@then(ERRORS, "init-lock")
async def _(w: World) -> None:
    assert not await w.has_data()


@arranges(ERRORS, "discovery-kubeconfig")
async def _(w: World) -> None:
    await w.cluster(initialized=True)
    await w.certificates()
    kubeconfig = {"user": {"exec": {"command": "/bootstrap"}}}
    await w.worker(spec={"joinConfiguration": {"discovery": {"file": {"kubeConfigPath": "/k", "kubeConfig": kubeconfig}}}})


# ----------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{t}: {r}" for t, r in ROWS])
async def test_row(table: str, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = TABLES[table][row]
    world: Any = await harness.a_world()
    world.name = "m1"
    await SCENARIOS[(table, row)](world)
    world.transport.writes.clear()
    world.rows.clear()
    if row == "discovery-kubeconfig":  # our emitter cannot fail on what the schema lets through

        def unmarshallable(discovery: Any) -> Any:
            raise ValueError("cannot marshal")

        monkeypatch.setattr(reconciler, "discovery_kubeconfig", unmarshallable)

    if expected.error:
        assert expected.error in await world.failing(world.name)
    else:
        assert await world.reconcile(world.name) == expected.requeue

    fired = {f"{table}/{row}" for table, row in world.rows.items()}
    assert set(expected.ours) <= fired
    if row != "no-kubeadmconfig":
        said = await world.conditions(world.name)
        for type_, outcome in expected.conditions.items():
            assert said.get(type_) == outcome, type_
    await AFTERWARDS.get((table, row), _nothing_more)(world)


async def _nothing_more(world: World) -> None:
    """The row says nothing more."""


def test_the_seed_has_28_rows_in_eight_tables() -> None:
    assert (len(TABLES), len(ROWS)) == (8, 28)
    assert set(SCENARIOS) == set(ROWS)


CODE: dict[str, Table[Any]] = {t.name: t for t in (*tables_of("kubeadmconfig"), PAUSE)}
CONDITIONS = {t.name: t for t in tables.TABLES}
OURS_ALONE = {("DataSecretAvailable", "secret-in-the-way"), ("DataSecretAvailable", "files-unresolved")}
"""Rulings: a Secret of somebody else is left alone, and the condition says so; the text about files is v1.14's."""
NO_TABLE = "reconcile/not-found"
"""There is no object that a table could ask about; the trace alone says it."""


def code_row(name: str) -> TableRow[Any]:
    table, _, row = name.partition("/")
    found = CODE[table].row(row)
    assert isinstance(found, TableRow)
    return found


def seconds(requeue: Any) -> float | None:
    return TTL / 3 if isinstance(requeue, Later) and requeue.text == "TTL/3" else requeue.total_seconds() if requeue else None


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{t}: {r}" for t, r in ROWS])
def test_a_seeds_row_and_ours_have_the_same_texts(table: str, row: str) -> None:
    seed = TABLES[table][row]
    ours = [code_row(name) for name in seed.ours if name != NO_TABLE]

    assert [r.guard.text for r in ours[-1:]] == [SAME_WORDS.get(seed.words, seed.words)][: len(ours)]
    assert [seconds(r.requeue) for r in ours if r.requeue] == ([seed.requeue] if seed.requeue else [])
    errors = [r.error if isinstance(r.error, str) else r.error.text for r in ours if r.error]
    assert errors in ([seed.error], ["<error>"]) if seed.error else errors == []


@pytest.mark.parametrize("table", TABLES)
def test_a_seeds_rows_and_ours_are_in_the_same_order(table: str) -> None:
    asked = [seed.ours[-1].partition("/") for seed in TABLES[table].values() if seed.ours[-1] != NO_TABLE]

    for name in {code for code, _, _ in asked}:
        places = [CODE[name].row_names.index(row) for code, _, row in asked if code == name]
        assert places == sorted(places), name


def test_every_row_of_our_tables_of_steps_is_the_seeds_or_a_ruling() -> None:
    seeds = {name for rows in TABLES.values() for seed in rows.values() for name in seed.ours}
    ours = {f"{t.name}/{row}" for t in (plan.PRESENCE, plan.STEP, plan.LOCK, plan.DISCOVERY, plan.TOKEN) for row in t.row_names}

    assert ours - seeds == {
        "Presence/present",  # none of the seed's rows before the reconciliation
        "InitLock/ours",  # the seed's sequence of the lock
        "InitLock/stale",
        "InitLock/initialized-meanwhile",  # a cache that lags behind
        "Discovery/file",  # the seed's sentence about file-based discovery
        "Discovery/complete",  # a token that the user or an earlier pass wrote
        "BootstrapToken/gone-and-used",  # the seed speaks of MachinePools only
        "BootstrapToken/gone-too-early",
        "BootstrapToken/unreadable",
    }


def test_every_condition_that_the_seed_names_is_a_row_of_our_tables_and_the_reverse() -> None:
    seed = {(t, *o) for rows in TABLES.values() for e in rows.values() for t, o in e.conditions.items() if o and t in CONDITIONS}
    ours = {
        (name, row.transition.status, str(row.transition.reason), row.transition.message_text)
        for name, table in CONDITIONS.items()
        for row in table.rows
        if isinstance(row, TableRow) and isinstance(row.transition, Transition) and row.transition.status
        if (name, row.name) not in OURS_ALONE
    }

    assert ours == seed


def test_conditions_are_in_the_seeds_vocabulary() -> None:
    reasons = {"Ready", "NotReady", "ReadyUnknown", "Available", "NotAvailable", "InternalError", "Paused", "NotPaused"}
    used = {
        str(r.transition.reason)
        for t in CONDITIONS.values()
        for r in t.rows
        if isinstance(r, TableRow) and isinstance(r.transition, Transition) and r.transition.status
    }

    assert used <= reasons


# ------------------------------------------------------------------------------ the flowchart's edges

# edge -> (scenario, what the pass leaves behind)
EDGES: dict[str, tuple[Scenario, Callable[[World, Any], Awaitable[None]]]] = {}


def edge(name: str, arrange: Scenario) -> Callable[[Callable[[World, Any], Awaitable[None]]], None]:
    def register(check: Callable[[World, Any], Awaitable[None]]) -> None:
        assert name not in EDGES
        EDGES[name] = (arrange, check)

    return register


async def _nothing_written(w: World, result: Any) -> None:
    assert result is None
    assert w.transport.writes == []


for _edge, _row in (
    ("NotFound -->|Yes| EndOK", (PRE, "no-kubeadmconfig")),
    ("OwnerExists -->|No| EndOK", (PRE, "no-owner-reference")),
    ("ClusterExists -->|No| EndOK", (PRE, "cluster-not-found")),
    ("CheckDeleted -->|Yes| EndOK", (PRE, "deletion-timestamp")),
):
    edge(_edge, SCENARIOS[_row])(_nothing_written)


def _fires(step: str) -> Callable[[World, Any], Awaitable[None]]:
    async def check(w: World, result: Any) -> None:
        assert w.rows["Step"] == step

    return check


for _edge, _row, _step in (
    ("NotFound -->|No| GetOwner -> OwnerExists -->|Yes| GetCluster", (WORKER, "join"), "join-worker"),
    ("ClusterExists -->|Yes| InitPatchHelper -> CheckPaused -->|No| CheckDeleted", (JOIN, "join"), "join-control-plane"),
    ("CheckDeleted -->|No| EnsureOwnerRef -> MainReconcile", (INIT, "first-control-plane"), "init-control-plane"),
    ("CheckInfra -->|No| WaitInfra", (INIT, "infrastructure-not-provisioned"), "infrastructure-not-provisioned"),
    ("CheckInfra -->|Yes| CheckPivot -->|Yes| SyncStatus", (PIVOT, "status-not-preserved"), "restore-status"),
    ("CheckPivot -->|No| CheckDataSecretCreated -->|Yes| HandleExisting", (PIVOT, "upgrade-to-v1beta2"), "generated"),
    ("CheckHasNodeRefs -->|No, Machine| RefreshToken", (TOKENS, "token-expiring"), "refresh-token"),
    ("CheckHasNodeRefs -->|Yes, MachinePool| RotateToken", (TOKENS, "machine-pool-rotation"), "rotate-token"),
    ("CheckDataSecretCreated -->|No| CheckCPInit -->|No| HandleNotInit", (INIT, "worker-waits"), "await-control-plane"),
    ("IsCPMachine -->|No| RequeueWait", (INIT, "worker-waits"), "await-control-plane"),
    ("IsCPMachine -->|Yes| AcquireLock", (INIT, "first-control-plane"), "init-control-plane"),
):
    edge(_edge, SCENARIOS[_row])(_fires(_step))


@edge("CheckPaused -->|Yes| SetPausedCond", SCENARIOS[(PRE, "paused")])
async def _(w: World, result: Any) -> None:
    assert result is None
    assert (await w.conditions())["Paused"][0] == "True"


async def _node_joined(w: World) -> None:
    await _joined(w)
    change = {"status": {"nodeRef": {"name": "n1"}}}
    await w.judge.patch(Machine, (await w.read()).key, change, subresource="status")
    w.later(minutes=10)


@edge("CheckHasNodeRefs -->|Yes, Machine| EndOK", _node_joined)
async def _(w: World, result: Any) -> None:
    assert (w.rows["Step"], result) == ("generated", None)


async def _init_then_join(w: World) -> None:
    await _lock_held(w)
    await w.set_initialized()


@edge("CheckCPInit -->|Yes| UnlockInit", _init_then_join)
async def _(w: World, result: Any) -> None:
    assert await w.lock() is None
    assert w.rows["Step"] == "join-control-plane"


@edge("CheckCPMachine -->|Yes| JoinCP -> LookupCerts -> ReconcileDiscovery -> StoreJoinSecret -> RequeueToken", SCENARIOS[(JOIN, "join")])
async def _(w: World, result: Any) -> None:
    assert result == TTL / 3
    assert await w.has_data()


@edge(
    "CheckCPMachine -->|No| JoinWorker -> LookupWorkerCerts -> ValidateSpec -->|No| AddTaint -> RequeueTokenWorker",
    SCENARIOS[(WORKER, "join")],
)
async def _(w: World, result: Any) -> None:
    assert result == TTL / 3
    assert "/etc/kubernetes/pki/ca.crt" not in await w.files()


@edge("ValidateSpec -->|Yes| ReturnError", SCENARIOS[(WORKER, "control-plane-set")])
async def _(w: World, result: Any) -> None:
    assert re.search("Machine is a Worker", result)


@edge("AcquireLock -->|No| RequeueWait", _lock_held)
async def _(w: World, result: Any) -> None:
    assert result == 30


@edge(
    "AcquireLock -->|Yes| InitCP -> GenerateCerts -> ResolveFiles -> GenerateCloudInit -> StoreSecret",
    SCENARIOS[(INIT, "first-control-plane")],
)
async def _(w: World, result: Any) -> None:
    assert result is None
    written = [path for method, path in w.transport.writes if method == "POST"]
    assert written == ["default/configmaps", *["default/secrets"] * 5]


@pytest.mark.parametrize("name", EDGES)
async def test_edge(name: str) -> None:
    arrange, check = EDGES[name]
    world: Any = await harness.a_world()
    world.name = "m1"
    await arrange(world)
    world.transport.writes.clear()
    world.rows.clear()
    try:
        result: Any = await world.reconcile(world.name)
    except Exception as error:
        result = str(error)

    await check(world, result)


async def test_lock_sequence_of_the_seed() -> None:
    """M1 creates and generates; M2 is refused, takes over when M1 is gone, and the first join removes the lock."""
    w = await harness.a_world()
    await w.cluster()
    await w.certificates()
    await w.control_plane_machine("m1")
    await w.control_plane_machine("m2")

    assert await w.reconcile("m1") is None
    assert await w.reconcile("m2") == 30
    assert await w.holder() == "m1"
    await w.delete(Machine, "m1")
    assert await w.reconcile("m2") is None
    assert await w.holder() == "m2"
    await w.set_initialized()
    await w.control_plane_machine("m3")
    await w.reconcile("m3")
    assert await w.judge.list(ConfigMap, namespace="default") == []
