"""The ClusterClass's own steps of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from clusterwright.api.codec import DecodeError, convert
from clusterwright.api.contract import NoContract, crd_name, resolve_version
from clusterwright.api.copying import replace
from clusterwright.api.core import ClusterClass
from clusterwright.api.core.clusterclass import ClusterClassStatusVariable, ClusterClassVariable
from clusterwright.api.core.shared import ClusterClassTemplateReference
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.controllers.clusterclass.conditions import TABLES
from clusterwright.controllers.clusterclass.snapshot import ClusterClassDone, Outdated, references
from clusterwright.controllers.external import CustomResourceDefinitionMeta
from clusterwright.controllers.kit.adopt import owned_metadata, owner_reference
from clusterwright.controllers.kit.lookup import Awaited, Expectations
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime import models
from clusterwright.runtime.errors import ApiError, NotFound
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.topology.extensions import CallHandler, ExtensionError
from clusterwright.topology.variables import joined, validate_definitions
from clusterwright.topology.variables.discovery import INLINE, collected

ClassPass = Pass[ClusterClass, Snapshot[ClusterClass], ClusterClassDone]

SHAPE = Shape(
    kind=ClusterClass,
    done=ClusterClassDone,
    owned=("Paused", "RefVersionsUpToDate", "VariablesReady"),
    owned_v1beta1=("RefVersionsUpToDate", "VariablesReconciled"),
)


def make(deps: Dependencies) -> Reconciler:
    """Return the reconciler of ClusterClasses."""
    return KindReconciler(deps, SHAPE, ClusterClasses(deps))


class _Refused(Exception):
    """Variables could not be discovered. The text becomes the condition's message."""


class ClusterClasses(Kind[ClusterClass, Unowned, Snapshot[ClusterClass], ClusterClassDone]):
    """Owns templates and publishes variables."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._client = deps.client
        self._expectations = Expectations()

    async def owner(self, obj: ClusterClass) -> Unowned:
        """Return no owner."""
        return Unowned()

    def forget(self, key: ObjectKey) -> None:
        """Forget a class that is gone."""
        self._expectations.forget(key)

    async def observe(self, obj: ClusterClass, owner: Unowned) -> Snapshot[ClusterClass] | None:
        """Return the class; skip one that is being deleted."""
        if obj.metadata.deletion_timestamp is not None:
            return None
        return Snapshot(object=obj, now=self._deps.clock.now())

    async def act(self, run: ClassPass) -> None:
        """Reconcile references, then variables; a failure of one does not stop the other."""
        await self._reconcile_references(run)
        await self._reconcile_variables(run)

    def conclude(self, run: ClassPass) -> None:
        """Set both conditions, in both forms."""
        run.conclude(*TABLES)

    # ------------------------------------------------------------------------------------------- references

    async def _reconcile_references(self, run: ClassPass) -> None:
        errors: list[str] = []
        outdated: list[Outdated] = []
        for reference in references(run.object):
            try:
                latest = await self._reconcile_reference(run.object, reference)
            except (ApiError, NoContract) as error:
                run.fail(str(error), error)
                errors.append(str(error))
                continue
            current = reference.api_version.rpartition("/")[2]
            if latest != current:
                outdated.append(Outdated(reference.kind, reference.name, current, latest))
        run.done = replace(run.done, reference_errors=tuple(errors), outdated=tuple(outdated))

    async def _reconcile_reference(self, cluster_class: ClusterClass, reference: ClusterClassTemplateReference) -> str:
        """Adopt the template; return the newest version of its kind's contract. Raises ApiError, NoContract."""
        gvk = GroupVersionKind.of(reference.api_version, reference.kind)
        key = ObjectKey(cluster_class.metadata.namespace, reference.name)
        self._expectations.expect(cluster_class.key, Awaited(gvk.group, gvk.kind, key))
        named = f"refGroupVersionKind: {gvk.group}/{gvk.version}, Kind={gvk.kind}, refName: {key.name}, refNamespace: {key.namespace}"
        try:
            await self._deps.dynamic.ensure(gvk, self._expectations.referrers)
            template = await self._client.get(gvk, key)
        except NotFound as error:
            raise NotFound(f"Could not find external object for the ClusterClass. {named}: {error}") from error
        except ApiError as error:
            raise type(error)(f"failed to get the external object for the ClusterClass. {named}: {error}") from error
        patch = owned_metadata(template, owner_reference(cluster_class, controller=False), {})
        if patch is not None:
            await self._client.patch(gvk, key, patch)
        crd = await self._client.get(CustomResourceDefinitionMeta, ObjectKey("", crd_name(gvk.group, gvk.kind)))
        return resolve_version({"name": crd.metadata.name, "labels": crd.metadata.labels}).version

    # -------------------------------------------------------------------------------------------- variables

    async def _reconcile_variables(self, run: ClassPass) -> None:
        cluster_class = run.object
        try:
            discovered = await self._discover(cluster_class) if self._deps.features["RuntimeSDK"] else []
        except _Refused as error:
            self._fail_variables(run, str(error))
            return
        variables, conflicting = collected([(INLINE, _as_json(cluster_class.spec.variables)), *discovered])
        status = replace(cluster_class.status, variables=_typed(variables, ClusterClassStatusVariable))
        run.become(replace(cluster_class, status=status))
        if conflicting:
            self._fail_variables(run, f"the following variables have conflicting schemas: {','.join(conflicting)}")

    def _fail_variables(self, run: ClassPass, text: str) -> None:
        run.fail(f"failed to discover variables for ClusterClass {run.object.metadata.name}: {text}")
        run.done = replace(run.done, variables_error=text)

    async def _discover(self, cluster_class: ClusterClass) -> list[tuple[str, Sequence[Json]]]:
        """Return the variables that all patches discover; raises _Refused with all failures."""
        found: list[tuple[str, Sequence[Json]]] = []
        errors: list[str] = []
        subject = models.to_json(cluster_class)
        for patch in cluster_class.spec.patches:
            external = patch.external
            if external is None or not external.discover_variables_extension:
                continue
            question = CallHandler(
                "DiscoverVariables", external.discover_variables_extension, subject, {}, settings=external.settings or {}, cached=True
            )
            try:
                response = await self._deps.extensions.call(question)
            except ExtensionError as error:
                errors.append(f"failed to call DiscoverVariables for patch {patch.name}: {error}")
                continue
            if errors or not response.get("variables"):
                continue
            try:
                variables = _as_json(_typed(response["variables"], ClusterClassVariable))
            except DecodeError as error:
                errors.append(f"failed to call DiscoverVariables for patch {patch.name}: {error}")
                continue
            problems = validate_definitions(variables, f"{patch.name}.variables")
            if problems:
                errors.append(joined(problems))
            else:
                found.append((patch.name, variables))
        if errors:
            texts = list(dict.fromkeys(errors))
            raise _Refused(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        return found


def _as_json(variables: Sequence[ClusterClassVariable]) -> list[Json]:
    found: list[Json] = msgspec.to_builtins(list(variables))
    return found


def _typed(variables: Sequence[Json], model: Any) -> tuple[Any, ...]:
    return tuple(convert(v, model) for v in variables)
