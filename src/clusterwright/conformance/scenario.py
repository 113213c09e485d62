"""The dynamic part: it creates, pauses, changes and deletes objects of a provider through the API, and records what happens.

The subjects, by purpose:

    first        paused by its annotation before it may be made, and again while it is deleted
    second       paused by its Cluster before it may be made; has labels added in place, and a finalizer of somebody else
    refused      writes of its status are refused for a while
    interrupted  the provider restarts while it is made
    unowned      never has an owner
    managed      of an InfraCluster: has the annotation cluster.x-k8s.io/managed-by
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.contract import Value
from clusterwright.api.core import Cluster, Machine
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.scheme import Resource
from clusterwright.api.wellknown import CONTROL_PLANE_LABEL, MANAGED_BY_ANNOTATION, PAUSED_ANNOTATION
from clusterwright.conformance import manifests
from clusterwright.conformance.configs import SENTINEL
from clusterwright.conformance.definitions import lookup, schema_of
from clusterwright.conformance.evidence import IN_PLACE, KEPT_LABEL, Evidence, Run, Subject, Write
from clusterwright.conformance.objects import is_set, latch
from clusterwright.conformance.recorder import Recorder, now
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.rest import RestClient

_POLICY: Final = GroupVersionKind(manifests.POLICY_GROUP, "v1", "ValidatingAdmissionPolicy")
_BINDING: Final = GroupVersionKind(manifests.POLICY_GROUP, "v1", "ValidatingAdmissionPolicyBinding")
_SECRET: Final = GroupVersionKind("", "v1", "Secret")
_EVENT: Final = GroupVersionKind("", "v1", "Event")
MADE: Final = ("first", "second", "refused", "interrupted")
"""The subjects that the provider must make."""


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


class Scenario:
    """One run over one kind."""

    def __init__(self, client: RestClient, seen: Evidence, resource: Resource, plan: Plan) -> None:
        self.client, self.seen, self.resource, self.plan = client, seen, resource, plan
        self.run = Run(secret=plan.secret if seen.role == "InfraMachine" else "", could_restart=plan.restart is not None)
        self.recorder = Recorder(client, resource, plan.namespace)
        self.cleaning: list[tuple[Any, ObjectKey]] = []
        self.is_machine = seen.role == "InfraMachine"
        self.is_config = seen.role == "BootstrapConfig"

    # the steps

    async def play(self) -> Run:
        """Play everything, remove what was created, and return what happened."""
        async with self.recorder:
            try:
                await self._play()
            finally:
                await self._clean()
        if self.plan.writes is not None:
            self.run.writes = self.plan.writes()
        return self.run

    async def _play(self) -> None:
        pace = self.plan.pace
        await self._try_template()
        await self._create_subject("unowned")
        async with self._stage("unowned"):
            await asyncio.sleep(pace.settle)
        await self._own()
        await self._pause()
        await self._disturb()
        await self.recorder.until(lambda: self._is_made("interrupted"), pace.within)
        await asyncio.sleep(pace.settle)
        async with self._stage("steady"):
            await asyncio.sleep(pace.steady)
        await self._read_secrets()
        await self._touch()
        if self.plan.restart is not None:
            async with self._stage("restarted"):
                await self.plan.restart()
                await asyncio.sleep(pace.settle * 2)
        await self._read_events()
        await self._delete()

    async def _own(self) -> None:
        """Give the first two subjects their owners; they are paused, or have no data, so that nothing may be made yet."""
        if self.is_machine:
            await self._create_cluster(self._cluster_name("second"))
        for purpose in ("first", "second"):
            await self._create_subject(purpose, {} if self.is_machine else {PAUSED_ANNOTATION: ""})
            await self._create_owner(purpose, has_data=False)
        if self.seen.role == "InfraCluster":
            await self._create_subject("managed", {MANAGED_BY_ANNOTATION: "somebody"})
            await self._create_owner("managed", has_data=False)
        owned = [purpose for purpose in ("first", "second", "managed") if purpose in self.run.subjects]
        await self.recorder.until(lambda: all(map(self._is_owned, owned)), self.plan.pace.within)
        if self.is_machine:
            async with self._stage("without-data"):
                await asyncio.sleep(self.plan.pace.settle)

    async def _pause(self) -> None:
        """Pause one subject by its annotation and one by its Cluster, give them all they wait for, and let them continue."""
        await self._annotate("first", PAUSED_ANNOTATION, "")
        await self._pause_cluster(paused=True)
        await self._annotate("second", PAUSED_ANNOTATION, None)
        await asyncio.sleep(self.plan.pace.settle)  # what is on its way when the pause begins may arrive
        async with self._stage("paused-object"), self._stage("paused-cluster"):
            if self.is_machine:
                for purpose in ("first", "second"):
                    await self._give_data(purpose)
            await asyncio.sleep(self.plan.pace.settle * 2)
        if "managed" in self.run.subjects:
            self.run.spans["managed"] = (self.run.spans["paused-object"][0], self.run.spans["paused-object"][1])
        await self._pause_cluster(paused=False)
        await self._annotate("first", PAUSED_ANNOTATION, None)
        async with self._stage("resumed"):
            await self.recorder.until(lambda: self._is_made("first") and self._is_made("second"), self.plan.pace.within)
            await asyncio.sleep(self.plan.pace.settle)

    async def _disturb(self) -> None:
        """Create a subject whose status cannot be written for a while, and one during which the provider restarts."""
        pace = self.plan.pace
        async with self._refusing():
            await self._create_whole("refused")
            async with self._stage("refused"):
                await asyncio.sleep(pace.settle * 3)
        async with self._stage("recovered"):
            await self.recorder.until(lambda: self._is_made("refused"), pace.within)
            await asyncio.sleep(pace.settle)  # the last state is before the end
        await self._create_whole("interrupted")
        if self.plan.restart is not None:
            await self.recorder.until(lambda: self._is_begun("interrupted"), pace.settle * 2)
            await self.plan.restart()

    async def _touch(self) -> None:
        """Add a label and an annotation to a provisioned object, as in-place changes do."""
        async with self._stage("touched"):
            await self._patch("second", {"metadata": {"labels": {IN_PLACE: "yes"}, "annotations": {IN_PLACE: "yes"}}})
            await asyncio.sleep(self.plan.pace.settle * 2)

    async def _delete(self) -> None:
        """Delete everything; the first subject is paused when its deletion begins."""
        pace = self.plan.pace
        await self._delete_subject("unowned")
        async with self._stage("unowned-deleted"):
            await self.recorder.until(lambda: self.run.subjects["unowned"].last is None, pace.within)
        await self._annotate("first", PAUSED_ANNOTATION, "")
        await asyncio.sleep(pace.settle)
        async with self._stage("paused-deletion"):
            await self._delete_subject("first")
            await asyncio.sleep(pace.settle * 2)
        await self._annotate("first", PAUSED_ANNOTATION, None)
        async with self._stage("deleted"):
            for purpose in MADE:
                await self._delete_owner(purpose)
            await self._annotate_finalizer("second")
            await self.recorder.until(lambda: all(self.run.subjects[p].last is None for p in MADE), pace.within)

    # objects

    def _name(self, purpose: str) -> str:
        return f"{self.plan.prefix}-{purpose}"

    def _cluster_name(self, purpose: str) -> str:
        """Return the Cluster of a subject: each has its own, but InfraMachines share that which is paused."""
        return self._name("cluster") if self.is_machine else self._name(purpose)

    def _is_owned(self, purpose: str) -> bool:
        last = self.run.subjects[purpose].last
        return last is not None and bool(last["metadata"].get("ownerReferences"))

    def _is_made(self, purpose: str) -> bool:
        return is_set(latch(self.seen), self.run.subjects[purpose].last)

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

    async def _create_cluster(self, name: str) -> None:
        """Create the Cluster of the Machines, and wait until its infrastructure is provisioned."""
        resource, template = self.plan.cluster_resource, self.plan.cluster_template
        if resource is None or template is None:
            made = manifests.dev_cluster(self.plan.namespace, name)
            reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name}
        else:
            made = manifests.subject(resource, self.plan.namespace, name, template, name, {})
            reference = manifests.reference(resource, name)
        await self._create(made)
        await self._create(manifests.cluster(self.plan.namespace, name, reference), Cluster)
        deadline = now() + self.plan.pace.within
        while True:
            found = await self.client.get(Cluster, ObjectKey(self.plan.namespace, name))
            if found.status.initialization is not None and found.status.initialization.infrastructure_provisioned:
                break
            if now() > deadline:
                raise TimeoutError(f"the infrastructure of Cluster {name} was not provisioned within {self.plan.pace.within:g} s")
            await asyncio.sleep(0.5)
        domains = [domain.name for domain in found.status.failure_domains]
        self.run.failure_domain = self.plan.failure_domain or (domains[0] if domains else "")

    async def _create_owner(self, purpose: str, *, has_data: bool) -> None:
        name, namespace = self._name(purpose), self.plan.namespace
        reference = manifests.reference(self.resource, name)
        if self.seen.role == "InfraCluster":
            await self._create(manifests.cluster(namespace, name, reference), Cluster)
            return
        cluster = self._cluster_name(purpose)
        if self.is_config:
            await self._create_cluster(cluster)
            made = manifests.machine(namespace, name, cluster, manifests.machine_reference(name), reference)
            made["metadata"]["labels"][CONTROL_PLANE_LABEL] = ""  # a worker would wait for a control plane
        else:
            data, domain = name if has_data else "", self.run.failure_domain
            config = manifests.config_reference(name)
            made = manifests.machine(namespace, name, cluster, reference, config, data=data, failure_domain=domain)
        await self._create(made, Machine)

    async def _create_whole(self, purpose: str) -> None:
        """Create a subject that has all it waits for."""
        if self.is_machine:
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
        await self.client.patch(Machine, ObjectKey(self.plan.namespace, name), {"spec": {"bootstrap": {"dataSecretName": name}}})

    async def _patch(self, purpose: str, patch: Json) -> None:
        with suppress(NotFound):
            await self.client.patch(self.resource.gvk, ObjectKey(self.plan.namespace, self._name(purpose)), patch)

    async def _annotate(self, purpose: str, name: str, value: str | None) -> None:
        await self._patch(purpose, {"metadata": {"annotations": {name: value}}})

    async def _annotate_finalizer(self, purpose: str) -> None:
        """Take the run's own finalizer away."""
        last = self.run.subjects[purpose].last
        if last is not None:
            kept = [name for name in last["metadata"].get("finalizers") or () if name != KEPT_LABEL]
            patch: Json = {"metadata": {"finalizers": kept, "resourceVersion": last["metadata"]["resourceVersion"]}}
            for _ in range(5):
                try:
                    await self._patch(purpose, patch)
                    return
                except ApiError:
                    await asyncio.sleep(self.plan.pace.settle)
                    if (last := self.run.subjects[purpose].last) is None:
                        return
                    kept = [name for name in last["metadata"].get("finalizers") or () if name != KEPT_LABEL]
                    patch = {"metadata": {"finalizers": kept, "resourceVersion": last["metadata"]["resourceVersion"]}}

    async def _pause_cluster(self, *, paused: bool) -> None:
        key = ObjectKey(self.plan.namespace, self._cluster_name("second"))
        await self.client.patch(Cluster, key, {"spec": {"paused": paused}})

    async def _delete_subject(self, purpose: str) -> None:
        await self._remove(self.resource.gvk, ObjectKey(self.plan.namespace, self._name(purpose)))

    async def _delete_owner(self, purpose: str) -> None:
        await self._remove(Cluster if self.seen.role == "InfraCluster" else Machine, ObjectKey(self.plan.namespace, self._name(purpose)))

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
        """Read the Secrets that bootstrap configs name; of their data, keep only whether there are some."""
        path = self.seen.paths.bootstrap_config.data_secret_name
        for subject in self.run.subjects.values() if self.is_config else ():
            name = path.read(subject.last) if subject.last is not None else None
            found = await self.client.find(_SECRET, ObjectKey(self.plan.namespace, name.value)) if isinstance(name, Value) else None
            if found is None:
                continue
            data = found.json.get("data") or {}
            text = _plain(base64.b64decode(data.get("value") or ""))
            kept = {"metadata": dict(found.json["metadata"]), "data": {key: bool(value) for key, value in data.items()}}
            self.run.secrets[subject.name] = {**kept, SENTINEL: SENTINEL.encode() in text}

    async def _clean(self) -> None:
        """Delete what is left, newest first; what the provider does not let go loses its finalizers."""
        for kind, key in reversed(self.cleaning):
            with suppress(ApiError):
                await self.client.delete(kind, key)
        for subject in self.run.subjects.values():
            if subject.last is not None:
                await self.recorder.until(lambda one=subject: one.last is None, self.plan.pace.settle)  # type: ignore[misc]
            if subject.last is not None:
                with suppress(ApiError):
                    key = ObjectKey(self.plan.namespace, subject.name)
                    await self.client.patch(self.resource.gvk, key, {"metadata": {"finalizers": []}})


def _plain(data: bytes) -> bytes:
    """Return the data, decompressed if they are compressed."""
    try:
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error):
        return data
