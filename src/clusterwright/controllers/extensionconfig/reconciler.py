"""The ExtensionConfig's own steps of a pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace as with_fields

from clusterwright.api.codec import decode
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.runtime import ExtensionConfig, ExtensionHandler, GroupVersionHook
from clusterwright.controllers.extensionconfig.conditions import DISCOVERED
from clusterwright.controllers.extensionconfig.snapshot import ExtensionConfigSnapshot
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.wiring import Dependencies
from clusterwright.runtime import models
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.reconcile import Result
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.registry import Registry, RegistryError
from clusterwright.topology.extensions import ExtensionError

ConfigPass = Pass[ExtensionConfig, ExtensionConfigSnapshot]

INJECT_ANNOTATION: Final = "runtime.cluster.x-k8s.io/inject-ca-from-secret"
CA_KEY: Final = "ca.crt"
COLD: Final = timedelta(seconds=10)
"""A registry that does not know all configs yet is asked again after this time."""
RESYNC: Final = timedelta(minutes=10)
"""Every extension is asked at least this often."""

SHAPE = Shape(kind=ExtensionConfig, owned=("Paused", DISCOVERED.name), owned_v1beta1=(DISCOVERED.name,))


class BadInjection(Exception):
    """The CA cannot be taken over; the text says why."""


class ExtensionConfigReconciler:
    """The usual pass, between the registry's being ready and the registration of what was found and written."""

    def __init__(self, deps: Dependencies, runtime: RuntimeClient) -> None:
        self._deps = deps
        self._registry = runtime.registry
        self._configs = ExtensionConfigs(deps, runtime)
        self._pass = KindReconciler(deps, SHAPE, self._configs)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass."""
        if not self._registry.is_ready:
            return Result.after(COLD)
        self._configs.discovered.discard(key)
        result = await self._pass.reconcile(key)
        if key in self._configs.discovered:
            await self._register(key)
            self._deps.enqueue_after(key, RESYNC, "extensions are asked again")
        return result

    async def _register(self, key: ObjectKey) -> None:
        written = await self._deps.client.read(ExtensionConfig, key)
        if written is not None:
            register(self._registry, msgspec.json.decode(written.raw))


def register(registry: Registry, config: Json) -> None:
    """Register the handlers of a config; raises PassFailed."""
    name = config["metadata"]["name"]
    try:
        registry.add(config)
    except RegistryError as error:
        raise PassFailed(f'failed to register ExtensionConfig {name}: failed to register ExtensionConfig "{name}": {error}') from None


class ExtensionConfigs(Kind[ExtensionConfig, ExtensionConfig, ExtensionConfigSnapshot]):
    """Discovers extensions. `discovered`: the configs whose last pass did."""

    def __init__(self, deps: Dependencies, runtime: RuntimeClient) -> None:
        self._deps = deps
        self._client = deps.client
        self._runtime = runtime
        self.discovered: set[ObjectKey] = set()

    def concerns(self, obj: ExtensionConfig) -> bool:
        """One that is being deleted is as good as gone, paused or not."""
        return obj.metadata.deletion_timestamp is None

    def forget(self, key: ObjectKey) -> None:
        """Its handlers are called no more."""
        self._runtime.registry.remove(key.name)

    async def owner(self, obj: ExtensionConfig) -> ExtensionConfig:
        """A config belongs to nobody."""
        return obj

    def is_paused(self, owner: ExtensionConfig) -> bool:
        """Only by its annotation."""
        return False

    async def observe(self, obj: ExtensionConfig, owner: ExtensionConfig) -> ExtensionConfigSnapshot:
        """The config."""
        return ExtensionConfigSnapshot(obj, self._deps.clock.now())

    async def act(self, run: ConfigPass) -> None:
        """Take the CA over, then ask."""
        try:
            bundle = await self._injected(run.object)
        except BadInjection as error:
            self._fail(run, f"failed to reconcile caBundle: {error}", error)
            return
        if bundle is not None and bundle != run.object.spec.client_config.ca_bundle:
            await self._write_bundle(run, bundle)
        config = models.to_json(run.object)
        try:
            found = await self._runtime.discover(config)
        except ExtensionError as error:
            self._fail(run, str(error), error)
            return
        handlers = tuple(
            ExtensionHandler(
                name=f"{h.name}.{run.object.metadata.name}",
                request_hook=GroupVersionHook(api_version=h.request_hook.api_version, hook=h.request_hook.hook),
                timeout_seconds=h.timeout_seconds or 0,
                failure_policy=h.failure_policy or "",
            )
            for h in found
        )
        run.become(with_fields(run.object, status=with_fields(run.object.status, handlers=handlers)))
        self.discovered.add(run.object.key)

    def conclude(self, run: ConfigPass) -> None:
        """The condition, in both forms; nothing is said where the CA could not be written, for then nothing was tried."""
        if run.seen.error or not run.errors:
            run.conclude(DISCOVERED)

    @staticmethod
    def _fail(run: ConfigPass, text: str, cause: Exception) -> None:
        run.seen = replace(run.seen, error=text)
        run.fail(f"failed to reconcile ExtensionConfig: {text}", cause)

    # --------------------------------------------------------------------------------------------------- CA

    async def _injected(self, config: ExtensionConfig) -> bytes | None:
        """The CA in the Secret that the config names; None: it names none. Raises BadInjection."""
        value = config.metadata.annotations.get(INJECT_ANNOTATION)
        if value is None:
            return None
        namespace, _, name = value.partition("/")
        if not namespace or not name:
            raise BadInjection(f'secret name "{value}" must be in the form <namespace>/<name>')
        try:
            secret = await self._client.find(Secret, ObjectKey(namespace, name)) if "/" not in name else None
        except ApiError as error:
            raise BadInjection(f'failed to get secret "{value}": {error}') from error
        if secret is None:
            raise BadInjection(f'failed to get secret "{value}": it does not exist')
        if CA_KEY not in secret.data:
            raise BadInjection(f'secret {value} does not contain a "{CA_KEY}" entry')
        return secret.data[CA_KEY]

    async def _write_bundle(self, run: ConfigPass, bundle: bytes) -> None:
        """Write the CA before asking, so that the conditions are of the generation that has it."""
        config = run.object
        spec = with_fields(config.spec, client_config=with_fields(config.spec.client_config, ca_bundle=bundle))
        changed = with_fields(run.original.object, spec=spec)
        try:
            answer = await run.write(run.original, changed)
        except ApiError as error:
            raise PassFailed(
                f"failed to reconcile ExtensionConfig: failed to patch ExtensionConfig {config.metadata.name}: {error}"
            ) from error
        if answer is not None:
            json: Json = dict(answer.json)
            raw = msgspec.json.encode(json)
            run.original = Original(decode(ExtensionConfig, raw), raw)
            run.become(run.original.object)
