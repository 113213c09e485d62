"""The ClusterResourceSet's own steps of a pass."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from clusterwright.api.addons import ClusterResourceSet, ClusterResourceSetBinding, ResourceRef
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.selectors import is_empty, parsed
from clusterwright.api.wellknown import CLUSTER_RESOURCE_SET_FINALIZER, RESOURCE_SET_SECRET_TYPE
from clusterwright.controllers.clusterresourceset.applying import STRATEGIES, apply_all
from clusterwright.controllers.clusterresourceset.bindings import Binding, concerns, new_binding, without
from clusterwright.controllers.clusterresourceset.conditions import RESOURCES_APPLIED
from clusterwright.controllers.clusterresourceset.content import BadContent, content_of, ordinal
from clusterwright.controllers.clusterresourceset.snapshot import ClusterFacts, Failure, ResourceSetDone, ResourceSetSnapshot, Trouble
from clusterwright.controllers.kit.adopt import owned_metadata, owner_reference
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime import models
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import AlreadyExists, ApiError, NotFound
from clusterwright.runtime.finalizers import without_finalizer
from clusterwright.runtime.reconcile import Reconciler

SetPass = Pass[ClusterResourceSet, ResourceSetSnapshot, ResourceSetDone]
Resource = ConfigMap | Secret

KINDS: Final[dict[str, type[ConfigMap] | type[Secret]]] = {"ConfigMap": ConfigMap, "Secret": Secret}
AFTER_CONFLICT: Final = timedelta(milliseconds=100)
BINDING: Final = GroupVersionKind.of(ClusterResourceSetBinding().api_version, "ClusterResourceSetBinding")

SHAPE = Shape(
    kind=ClusterResourceSet,
    done=ResourceSetDone,
    finalizer=CLUSTER_RESOURCE_SET_FINALIZER,
    owned=("Paused", RESOURCES_APPLIED.name),
    owned_v1beta1=(RESOURCES_APPLIED.name,),
)


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of ClusterResourceSets."""
    return KindReconciler(deps, SHAPE, ResourceSets(deps))


class ResourceSets(Kind[ClusterResourceSet, Unowned, ResourceSetSnapshot, ResourceSetDone]):
    """Applies resources to Clusters."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client

    async def owner(self, obj: ClusterResourceSet) -> Unowned:
        """Return no owner."""
        return Unowned()

    async def observe(self, obj: ClusterResourceSet, owner: Unowned) -> ResourceSetSnapshot:
        """Return the Clusters that the set is for; an empty selector is for none."""
        seen = ResourceSetSnapshot(object=obj, now=self._deps.clock.now())
        try:
            selector = parsed(obj.spec.cluster_selector)
        except ValueError as error:
            return replace(seen, match_error=f"unable to convert selector: {error}")
        try:
            clusters = [ClusterFacts.of(c) for c in await self._client.list(Cluster, namespace=obj.metadata.namespace)]
        except ApiError as error:
            return replace(seen, match_error=f"failed to list clusters: {error}")
        if is_empty(obj.spec.cluster_selector):
            return seen
        return replace(seen, clusters=tuple(c for c in clusters if not c.deleting and selector.matches(c.labels)))

    async def act(self, run: SetPass) -> None:
        """Apply to every Cluster, or remove the set from every binding."""
        if run.seen.match_error:
            run.fail(run.seen.match_error)
        elif run.object.metadata.deletion_timestamp is not None:
            await self._delete(run)
        else:
            for cluster in (c.key for c in run.seen.clusters):
                application = _Application(self._deps, run.seen, cluster)
                failures = await application.run()
                complete = all(f.is_contention and f.trouble is Trouble.BINDING for f in failures)
                run.done = replace(
                    run.done,
                    failures=(*run.done.failures, *failures),
                    complete=(*run.done.complete, *((cluster,) if complete else ())),
                    is_missing=run.done.is_missing or application.is_missing,
                )
            self._judge(run)

    def conclude(self, run: SetPass) -> None:
        """Set the condition, in both forms. With a missing resource, name the generation for which Applied holds."""
        run.conclude(RESOURCES_APPLIED)
        if run.done.is_missing and run.done.complete and not run.errors:
            status = replace(run.object.status, observed_generation=run.object.metadata.generation)
            run.become(replace(run.object, status=status))

    @staticmethod
    def _judge(run: SetPass) -> None:
        """Requeue soon if only write conflicts happened; fail on any other error."""
        failures = run.done.failures
        if failures and all(f.is_contention for f in failures):
            run.vote(AFTER_CONFLICT)
            return
        for failure in failures:
            run.fail(f"failed to apply ClusterResourceSet to Cluster {failure.cluster}: {failure.text}", failure.cause)

    # --------------------------------------------------------------------------------------------- deletion

    async def _delete(self, run: SetPass) -> None:
        """Remove the set from every binding that has it, whatever Clusters match now.

        A binding without other entries, of a Cluster that does not match, is left to the garbage collector: it goes with its last owner.
        """
        resource_set = run.object
        try:
            bindings = await self._client.list(BINDING, namespace=resource_set.metadata.namespace)
        except ApiError as error:
            run.fail(f"failed to list ClusterResourceSetBindings during ClusterResourceSet deletion: {error}", error)
            return
        shared = (b.key for b in bindings if concerns(b, resource_set) and without(b, resource_set) is not None)
        for key in dict.fromkeys([*(c.key for c in run.seen.clusters), *sorted(shared)]):
            try:
                await self._unbind(run, key)
            except ApiError as error:
                run.fail(f"failed to get or patch ClusterResourceSetBinding during ClusterResourceSet deletion: {error}", error)
        if not run.errors:
            run.become(without_finalizer(resource_set, CLUSTER_RESOURCE_SET_FINALIZER))

    async def _unbind(self, run: SetPass, key: ObjectKey) -> None:
        binding = await self._client.find(BINDING, key)
        if binding is None:
            return
        patch = without(binding, run.object)
        if patch is not None:
            if concerns(binding, run.object):
                await self._client.patch(BINDING, key, patch)
            return
        try:
            await self._client.delete(BINDING, key, uid=binding.metadata.uid)
        except NotFound:
            return
        except ApiError as error:
            run.record("Warning", "BindingNotDeleted", f"ClusterResourceSetBinding {key} could not be deleted: {error}")


class _Application:
    """The work of one pass for one Cluster."""

    def __init__(self, deps: Dependencies, seen: ResourceSetSnapshot, cluster: ObjectKey) -> None:
        self._deps = deps
        self._client = deps.client
        self._set = seen.object
        self._now = seen.now
        self._cluster = cluster
        self._failures: list[Failure] = []
        self.is_missing = False

    async def run(self) -> list[Failure]:
        """Own the resources, bind, apply; return the failures."""
        resources = await self._owned_resources()
        if self._failures:
            return self._failures
        try:
            binding = Binding(await self._bound(), self._set)
        except ApiError as error:
            text = f"failed to create clusterResourceSetBinding for cluster: {self._cluster}: {error}"
            return [self._failure(Trouble.BINDING, text, error)]
        binding.ensure_entry()
        try:
            client = await self._deps.workload.client(self._cluster)
        except ApiError as error:
            self._fail(Trouble.CONNECTION, str(error), error)
        else:
            for reference, resource in resources:
                await self._apply(client, binding, reference, resource)
        patch = binding.patch()
        if patch is not None:
            try:
                await self._client.patch(BINDING, self._cluster, patch)
            except ApiError as error:
                self._fail(Trouble.BINDING, f"failed to patch ClusterResourceSetBinding {self._cluster}: {error}", error)
        return self._failures

    def _failure(self, trouble: Trouble, text: str, cause: Exception | None = None, resource: str = "") -> Failure:
        return Failure(trouble, self._cluster, text, cause, resource)

    def _fail(self, trouble: Trouble, text: str, cause: Exception | None = None, resource: str = "") -> None:
        self._failures.append(self._failure(trouble, text, cause, resource))

    # -------------------------------------------------------------------------------------------- resources

    async def _owned_resources(self) -> list[tuple[ResourceRef, Resource]]:
        """Adopt the existing resources and return them; a missing one is applied when it appears."""
        found = []
        for reference in self._set.spec.resources:
            kind = KINDS.get(reference.kind)
            if kind is None:
                self._fail(Trouble.RESOURCE, f"unsupported resource kind {reference.kind!r}", resource=reference.name)
                continue
            key = ObjectKey(self._cluster.namespace, reference.name)
            try:
                resource: Resource | None = await self._client.find(kind, key)
            except ApiError as error:
                self._fail(Trouble.RESOURCE, f"failed to get {reference.kind} {key}: {error}", error, reference.name)
                continue
            if resource is None:
                self.is_missing = True
                continue
            if isinstance(resource, Secret) and resource.type != RESOURCE_SET_SECRET_TYPE:
                self._fail(Trouble.SECRET_TYPE, "unsupported secret type", resource=reference.name)
                continue
            try:
                await self._own(resource)
            except ApiError as error:
                self._fail(Trouble.OWNERSHIP, f"failed to own {reference.kind} {key}: {error}", error, reference.name)
                continue
            found.append((reference, resource))
        return found

    async def _own(self, resource: Resource) -> None:
        metadata = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": models.to_json(resource)["metadata"]}
        patch = owned_metadata(Unstructured(metadata), owner_reference(self._set, controller=False), {})
        if patch is not None:
            await self._client.patch(type(resource), resource.key, patch)

    # ---------------------------------------------------------------------------------------------- binding

    async def _bound(self) -> Json:
        """Return the Cluster's binding; create it if needed."""
        original = await self._client.read(ClusterResourceSetBinding, self._cluster)
        if original is None:
            try:
                return dict((await self._client.create(new_binding(self._set, self._cluster))).json)
            except AlreadyExists:  # another set of this Cluster was faster
                original = await self._client.live.read(ClusterResourceSetBinding, self._cluster)
        if original is None:
            raise NotFound(f"ClusterResourceSetBinding {self._cluster} not found")
        json: Json = msgspec.json.decode(original.raw)
        return json

    # --------------------------------------------------------------------------------------------- applying

    async def _apply(self, client: Client, binding: Binding, reference: ResourceRef, resource: Resource) -> None:
        strategy = self._set.spec.strategy
        try:
            if strategy not in STRATEGIES:
                raise BadContent(f'unsupported or empty resource strategy: "{strategy}"')
            content = content_of(resource)
        except BadContent as error:
            binding.note(reference, applied=False, digest="", now=self._now)
            self._fail(Trouble.CONTENT, str(error), error, reference.name)
            return
        known = binding.resource(reference)
        if known.get("applied") and (strategy == "ApplyOnce" or known.get("hash") == content.hash):
            return
        errors = await apply_all(client, strategy, content.objects)
        binding.note(reference, applied=not errors, digest=content.hash, now=self._now)
        for number, failed in errors:
            # no cause: whoever else writes in the workload cluster, it is not a race about our own objects
            self._fail(Trouble.APPLYING, _told(resource, number, failed), None, reference.name)


def _told(resource: Resource, number: int, failed: ApiError) -> str:
    """Return the message about an object that could not be applied; for one in a Secret, without its name and the server's quotes."""
    if not isinstance(resource, Secret):
        return str(failed)
    return f"failed to apply the {ordinal(number)} object in Secret {resource.key}: {type(failed).__name__} (code {failed.code})"
