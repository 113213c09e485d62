"""The objects of a run: how they are created, changed and deleted, and how the run waits for them."""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.contract import Value
from clusterwright.api.core import Cluster, Machine, MachinePool
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.scheme import Resource
from clusterwright.api.wellknown import BOOT_MACHINES_ANNOTATION, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, MACHINE_POOL_NAME_LABEL
from clusterwright.conformance import manifests
from clusterwright.conformance.configs import SENTINEL
from clusterwright.conformance.definitions import lookup, schema_of
from clusterwright.conformance.evidence import KEPT_LABEL, SCALED, Evidence, Run, Subject, Write
from clusterwright.conformance.objects import identity, initialized, is_set
from clusterwright.conformance.planes import IS_KUBECONFIG
from clusterwright.conformance.recorder import Recorder, now
from clusterwright.kubeadm.cloudconfig import unpacked
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.rest import RestClient

_POLICY: Final = GroupVersionKind(manifests.POLICY_GROUP, "v1", "ValidatingAdmissionPolicy")
_BINDING: Final = GroupVersionKind(manifests.POLICY_GROUP, "v1", "ValidatingAdmissionPolicyBinding")
_SECRET: Final = GroupVersionKind("", "v1", "Secret")
_EVENT: Final = GroupVersionKind("", "v1", "Event")
_LOOK: Final = 0.5
"""Seconds between two looks at an object that is not watched."""
_BOOTED: Final = frozenset({"InfraMachine", "InfraMachinePool"})
"""Roles that are given bootstrap data."""
_TRIES: Final = 5
"""Attempts to write an object that others write too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long the run waits, in seconds."""

    settle: float = 2.0
    """So long nothing may happen before something counts as not happening."""
    steady: float = 10.0
    """So long provisioned objects are only watched."""
    within: float = 120.0
    """So long an object may take to be made, or to go."""


NORMAL: Final = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The inputs of a run besides the evidence of the definitions."""

    namespace: str
    prefix: str
    """Of the names of all objects of the run."""
    template: Json
    secret: str
    """A text that nothing else has."""
    cluster_template: Json | None = None
    """For Machines: the infrastructure of their Cluster; None: a DevCluster in memory."""
    cluster_resource: Resource | None = None
    failure_domain: str = ""
    data: str = ""
    pace: Pace = NORMAL
    restart: Callable[[], Awaitable[None]] | None = None
    writes: Callable[[], Sequence[Write]] | None = None


class Stage:
    """The objects of one run, and the actions on them."""

    def __init__(self, client: RestClient, seen: Evidence, resource: Resource, plan: Plan) -> None:
        self.client, self.seen, self.resource, self.plan = client, seen, resource, plan
        self.run = Run(secret=plan.secret if seen.role in _BOOTED else "", could_restart=plan.restart is not None)
        made = manifests.subject(resource, plan.namespace, "given", plan.template, "", {})
        self.run.is_identity_given = is_set(identity(seen), made)
        self.recorder = Recorder(client, resource, plan.namespace)
        self.cleaning: list[tuple[Any, ObjectKey]] = []
        self.is_booted = seen.role in _BOOTED
        self.is_pool = seen.role == "InfraMachinePool"
        self.is_config = seen.role == "BootstrapConfig"
        owners: dict[str, type[Cluster | Machine | MachinePool]] = {
            "InfraCluster": Cluster,
            "ControlPlane": Cluster,
            "InfraMachinePool": MachinePool,
        }
        self.owner = owners.get(seen.role, Machine)
        """The kind of the core object that refers to a subject."""

    # objects

    def _name(self, purpose: str) -> str:
        return f"{self.plan.prefix}-{purpose}"

    def _cluster_name(self, purpose: str) -> str:
        """Return the Cluster of a subject: each has its own, but machines and pools share that which is paused."""
        return self._name("cluster") if self.is_booted else self._name(purpose)

    def _is_owned(self, purpose: str) -> bool:
        last = self.run.subjects[purpose].last
        return last is not None and bool(last["metadata"].get("ownerReferences"))

    def _is_made(self, purpose: str) -> bool:
        last = self.run.subjects[purpose].last
        return initialized(self.seen, last) and (not self.is_pool or is_set(identity(self.seen), last))

    def _is_begun(self, purpose: str) -> bool:
        last = self.run.subjects[purpose].last
        return last is not None and bool(last["metadata"].get("finalizers"))

    async def _create(self, obj: Json, kind: Any = None) -> None:
        key = ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        with suppress(AlreadyExists):
            await self.client.create(obj)
        self.cleaning.append((kind or GroupVersionKind.of(obj["apiVersion"], obj["kind"]), key))

    async def _create_subject(self, purpose: str, annotations: Mapping[str, str] | None = None) -> None:
        name = self._name(purpose)
        self.run.subjects[purpose] = self.recorder.add(Subject(name))
        made = manifests.subject(
            self.resource, self.plan.namespace, name, self.plan.template, self._cluster_name(purpose), dict(annotations or {})
        )
        if purpose == "second":
            made["metadata"]["finalizers"] = [KEPT_LABEL]
        await self._create(made)
        await self.recorder.until(lambda: bool(self.run.subjects[purpose].states), self.plan.pace.within)

    async def _create_cluster(self, name: str, control_plane: Json | None = None) -> None:
        """Create a Cluster with infrastructure that is not judged, and wait until its infrastructure is provisioned."""
        resource, template = self.plan.cluster_resource, self.plan.cluster_template
        if resource is None or template is None:
            made = manifests.dev_cluster(self.plan.namespace, name)
            reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name}
        else:
            made = manifests.subject(resource, self.plan.namespace, name, template, name, {})
            reference = manifests.reference(resource, name)
        await self._create(made)
        noted: dict[str, str] = {}
        if self.is_pool:  # core controllers make Machines of a pool when they reach its cluster
            *objects, control_plane = manifests.control_plane(self.plan.namespace, name)
            for obj in objects:
                await self._create(obj)
            noted = {BOOT_MACHINES_ANNOTATION: "true"} if template is not None else {}
        await self._create(manifests.cluster(self.plan.namespace, name, reference, control_plane, noted), Cluster)
        deadline = now() + self.plan.pace.within
        while True:
            found = await self.client.get(Cluster, ObjectKey(self.plan.namespace, name))
            latches = found.status.initialization
            if latches is not None and latches.infrastructure_provisioned and (latches.control_plane_initialized or not self.is_pool):
                break
            if now() > deadline:
                what = "control plane was not initialized" if self.is_pool else "infrastructure was not provisioned"
                raise TimeoutError(f"the {what} of Cluster {name} within {self.plan.pace.within:g} s")
            await asyncio.sleep(_LOOK)
        domains = [domain.name for domain in found.status.failure_domains]
        self.run.failure_domain = self.plan.failure_domain or (domains[0] if domains else "")

    async def _create_owner(self, purpose: str, *, has_data: bool) -> None:
        name, namespace = self._name(purpose), self.plan.namespace
        reference = manifests.reference(self.resource, name)
        if self.seen.role == "InfraCluster":
            await self._create(manifests.cluster(namespace, name, reference), Cluster)
            return
        if self.seen.role == "ControlPlane":
            await self._create_cluster(name, reference)
            return
        cluster = self._cluster_name(purpose)
        if self.is_config:
            await self._create_cluster(cluster)
            made = manifests.machine(namespace, name, cluster, manifests.machine_reference(name), reference)
            made["metadata"]["labels"][CONTROL_PLANE_LABEL] = ""  # a worker would wait for a control plane
        elif self.is_pool:
            config = manifests.config_reference(name)
            made = manifests.machine_pool(namespace, name, cluster, reference, config, data=name if has_data else "")
        else:
            data, domain = name if has_data else "", self.run.failure_domain
            config = manifests.config_reference(name)
            made = manifests.machine(namespace, name, cluster, reference, config, data=data, failure_domain=domain)
        await self._create(made, self.owner)

    async def _create_whole(self, purpose: str) -> None:
        """Create a subject that has all it waits for."""
        if self.is_booted:
            await self._create_secret(purpose)
        await self._create_subject(purpose)
        await self._create_owner(purpose, has_data=True)

    async def _create_secret(self, purpose: str) -> None:
        plan = self.plan
        await self._create(
            manifests.bootstrap_data(plan.namespace, self._name(purpose), self._cluster_name(purpose), plan.secret, plan.data), _SECRET
        )

    async def _give_data(self, purpose: str) -> None:
        await self._create_secret(purpose)
        name = self._name(purpose)
        spec: Json = {"bootstrap": {"dataSecretName": name, "configRef": None}}  # a pool takes data only from one of them
        patch = {"spec": {"template": {"spec": spec}} if self.is_pool else spec}
        await self.client.patch(self.owner, ObjectKey(self.plan.namespace, name), patch)

    async def _scale(self, replicas: int) -> None:
        await self.client.patch(MachinePool, ObjectKey(self.plan.namespace, self._name(SCALED)), {"spec": {"replicas": replicas}})

    async def _patch(self, purpose: str, patch: Json) -> None:
        with suppress(NotFound):
            await self.client.patch(self.resource.gvk, ObjectKey(self.plan.namespace, self._name(purpose)), patch)

    async def _annotate(self, purpose: str, name: str, value: str | None) -> None:
        await self._patch(purpose, {"metadata": {"annotations": {name: value}}})

    async def _annotate_finalizer(self, purpose: str) -> None:
        """Take the run's own finalizer away."""
        for _ in range(_TRIES):
            last = self.run.subjects[purpose].last
            if last is None:
                return
            kept = [name for name in last["metadata"].get("finalizers") or () if name != KEPT_LABEL]
            try:
                await self._patch(purpose, {"metadata": {"finalizers": kept, "resourceVersion": last["metadata"]["resourceVersion"]}})
                return
            except ApiError:
                await asyncio.sleep(self.plan.pace.settle)

    async def _pause_cluster(self, *, paused: bool) -> None:
        key = ObjectKey(self.plan.namespace, self._cluster_name("second"))
        await self.client.patch(Cluster, key, {"spec": {"paused": paused}})

    async def _delete_subject(self, purpose: str) -> None:
        await self._remove(self.resource.gvk, ObjectKey(self.plan.namespace, self._name(purpose)))

    async def _delete_owner(self, purpose: str) -> None:
        await self._remove(self.owner, ObjectKey(self.plan.namespace, self._name(purpose)))

    async def _remove(self, kind: Any, key: ObjectKey) -> None:
        with suppress(NotFound):
            await self.client.delete(kind, key)

    # around the steps

    @asynccontextmanager
    async def _stage(self, name: str) -> AsyncIterator[None]:
        begin = now()
        try:
            yield
        finally:
            self.run.spans[name] = (begin, now())

    @asynccontextmanager
    async def _refusing(self) -> AsyncIterator[None]:
        """Let the API server refuse writes of one subject's status."""
        name = self._name("refused")
        policy, binding = manifests.refusal(self.resource, name, name)
        try:
            await self._create(policy)
            await self._create(binding)
            self.run.could_refuse = True
        except ApiError:
            self.run.could_refuse = False
        try:
            yield
        finally:
            for kind in (_BINDING, _POLICY):
                await self._remove(kind, ObjectKey("", name))

    async def _try_template(self) -> None:
        """Create the template, and dry-run a change of it."""
        template, definition = self.plan.template, self.seen.template
        if definition is None or not template["kind"].endswith("Template"):
            return
        made = {**template, "metadata": {"name": self._name("template"), "namespace": self.plan.namespace}}
        await self._create(made)
        body = lookup(schema_of(definition), ("spec", "template", "spec")) or {}
        try:
            await self.client.apply(manifests.changed_template(made, body), field_manager="capi-topology", dry_run=True)
            self.run.dry_run = ""
        except ApiError as error:
            self.run.dry_run = str(error)

    async def _read_events(self) -> None:
        names = {subject.name for subject in self.run.subjects.values()}
        events = await self.client.list(_EVENT, namespace=self.plan.namespace)
        self.run.events = [
            dict(event.json)
            for event in events
            if (event.json.get("involvedObject") or event.json.get("regarding") or {}).get("name") in names
        ]

    async def _read_secrets(self) -> None:
        """Read the Secrets that bootstrap configs name, and kubeconfigs; of their data, keep only whether there are some."""
        path = self.seen.paths.bootstrap_config.data_secret_name
        for subject in self.run.subjects.values() if not self.is_booted else ():
            read = path.read(subject.last) if subject.last is not None else None
            name = f"{subject.name}-kubeconfig" if not self.is_config else read.value if isinstance(read, Value) else ""
            found = await self.client.find(_SECRET, ObjectKey(self.plan.namespace, name)) if name else None
            if found is None:
                continue
            data = found.json.get("data") or {}
            text = _plain(base64.b64decode(data.get("value") or ""))
            kept = {"metadata": dict(found.json["metadata"]), "data": {key: bool(value) for key, value in data.items()}}
            self.run.secrets[subject.name] = {**kept, SENTINEL: SENTINEL.encode() in text, IS_KUBECONFIG: b"clusters:" in text}

    async def _read_machines(self) -> None:
        """Read the machines of pools that name the kind of theirs."""
        path = self.seen.paths.infra_machine_pool.infrastructure_machine_kind
        for subject in self.run.subjects.values() if self.is_pool else ():
            read = path.read(subject.last) if subject.last is not None else None
            if isinstance(read, Value) and read.value:
                kind = GroupVersionKind(self.resource.gvk.group, self.resource.gvk.version, read.value)
                labels = {MACHINE_POOL_NAME_LABEL: subject.name, CLUSTER_NAME_LABEL: self._cluster_name("second")}
                with suppress(ApiError):  # there may be no such kind
                    found = await self.client.list(kind, namespace=self.plan.namespace, labels=labels)
                    self.run.machines[subject.name] = [dict(one.json) for one in found]

    async def _clean(self) -> None:
        """Delete what is left, newest first, and wait for it; what the provider does not let go loses its finalizers."""
        left = list(reversed(self.cleaning))
        for kind, key in left:
            with suppress(ApiError):
                await self.client.delete(kind, key)
        for subject in self.run.subjects.values():
            if subject.last is not None:
                await self.recorder.until(lambda one=subject: one.last is None, self.plan.pace.settle)  # type: ignore[misc]
            if subject.last is not None:
                with suppress(ApiError):
                    key = ObjectKey(self.plan.namespace, subject.name)
                    await self.client.patch(self.resource.gvk, key, {"metadata": {"finalizers": []}})
        deadline = now() + self.plan.pace.within
        while now() < deadline and (left := [one for one in left if await self._exists(*one)]):  # noqa: ASYNC110 - no watch has all kinds
            await asyncio.sleep(_LOOK)

    async def _exists(self, kind: Any, key: ObjectKey) -> bool:
        try:
            return await self.client.find(kind, key) is not None
        except ApiError:
            return False


def _plain(data: bytes) -> bytes:
    """Return the data, decompressed if they are compressed."""
    try:
        return unpacked(data) if data[:2] == b"\x1f\x8b" else data
    except (ValueError, zlib.error):
        return data
