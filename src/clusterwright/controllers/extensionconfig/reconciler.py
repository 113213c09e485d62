"""The ExtensionConfig's own steps of a pass."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from clusterwright.api.codec import decode
from clusterwright.api.copying import replace
from clusterwright.api.kubernetes import Secret
from clusterwright.api.meta import Json, ObjectKey
from clusterwright.api.runtime import ExtensionConfig, ExtensionHandler, GroupVersionHook
from clusterwright.controllers.extensionconfig.conditions import DISCOVERED
from clusterwright.controllers.extensionconfig.plan import REGISTRY, Begin
from clusterwright.controllers.extensionconfig.snapshot import ExtensionConfigDone
from clusterwright.controllers.kit.owners import Unowned
from clusterwright.controllers.kit.passing import Pass, PassFailed
from clusterwright.controllers.kit.reconciler import Kind, KindReconciler, Shape
from clusterwright.controllers.kit.snapshots import Snapshot
from clusterwright.controllers.wiring import Dependencies, PassTools
from clusterwright.runtime import models
from clusterwright.runtime.client import Original
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.reconcile import Reconciler
from clusterwright.runtimesdk.client import RuntimeClient
from clusterwright.runtimesdk.registry import Registry, RegistryError
from clusterwright.tables import Decision
from clusterwright.topology.extensions import ExtensionError

ConfigPass = Pass[ExtensionConfig, Snapshot[ExtensionConfig], ExtensionConfigDone]

INJECT_ANNOTATION: Final = "runtime.cluster.x-k8s.io/inject-ca-from-secret"
CA_KEY: Final = "ca.crt"
RESYNC: Final = timedelta(minutes=10)
"""How often every extension is discovered again."""

SHAPE = Shape(kind=ExtensionConfig, done=ExtensionConfigDone, owned=("Paused", DISCOVERED.name), owned_v1beta1=(DISCOVERED.name,))


class BadInjection(Exception):
    """The CA cannot be read from the Secret; the text says why."""


def make(deps: Dependencies, runtime: RuntimeClient) -> Reconciler:
    """Return the reconciler of ExtensionConfigs."""
    return KindReconciler(deps, SHAPE, ExtensionConfigs(deps, runtime))


def register(registry: Registry, config: Json) -> None:
    """Register the handlers of a config; raises PassFailed."""
    name = config["metadata"]["name"]
    try:
        registry.add(config)
    except RegistryError as error:
        raise PassFailed(f'failed to register ExtensionConfig {name}: failed to register ExtensionConfig "{name}": {error}') from None


class RegisteredConfigs(Kind[ExtensionConfig, Unowned, Snapshot[ExtensionConfig], ExtensionConfigDone]):
    """The common steps of all ExtensionConfig controllers: wait for the registry, and remove deleted configs from it."""

    def __init__(self, tools: PassTools, registry: Registry) -> None:
        self._client = tools.client
        self._clock = tools.clock
        self.registry = registry

    def unready(self) -> Decision | None:
        """Return the row that waits for the registry while it is incomplete."""
        decision = REGISTRY.decide(self.registry)
        return decision if decision.act is Begin.WAIT else None

    def concerns(self, obj: ExtensionConfig) -> bool:
        """Return whether the config is not being deleted; one that is counts as gone, even if paused."""
        return obj.metadata.deletion_timestamp is None

    def forget(self, key: ObjectKey) -> None:
        """Remove the handlers of the config."""
        self.registry.remove(key.name)

    async def owner(self, obj: ExtensionConfig) -> Unowned:
        """Return no owner."""
        return Unowned()

    async def observe(self, obj: ExtensionConfig, owner: Unowned) -> Snapshot[ExtensionConfig]:
        """Return the config."""
        return Snapshot(object=obj, now=self._clock.now())


class ExtensionConfigs(RegisteredConfigs):
    """Discovers extensions and registers their handlers."""

    def __init__(self, deps: Dependencies, runtime: RuntimeClient) -> None:
        super().__init__(deps, runtime.registry)
        self._deps = deps
        self._runtime = runtime

    async def act(self, run: ConfigPass) -> None:
        """Take the CA from its Secret, then call the extension for its handlers."""
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
        run.become(replace(run.object, status=replace(run.object.status, handlers=handlers)))

    def conclude(self, run: ConfigPass) -> None:
        """Set the condition in both forms, unless the CA could not be written: then the extension was not called."""
        if run.done.error or not run.errors:
            run.conclude(DISCOVERED)

    async def written(self, run: ConfigPass) -> None:
        """Register the written handlers, and discover again after a while. Raises PassFailed."""
        written = await self._client.read(ExtensionConfig, run.object.key)
        if written is not None:
            register(self.registry, msgspec.json.decode(written.raw))
        self._deps.enqueue_after(run.object.key, RESYNC, "extensions are asked again")

    @staticmethod
    def _fail(run: ConfigPass, text: str, cause: Exception) -> None:
        run.done = replace(run.done, error=text)
        run.fail(f"failed to reconcile ExtensionConfig: {text}", cause)

    # --------------------------------------------------------------------------------------------------- CA

    async def _injected(self, config: ExtensionConfig) -> bytes | None:
        """Return the CA from the Secret that the config names, or None if it names none. Raises BadInjection."""
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
        """Write the CA before the call, so that the conditions belong to the generation that has it."""
        config = run.object
        spec = replace(config.spec, client_config=replace(config.spec.client_config, ca_bundle=bundle))
        changed = replace(run.original.object, spec=spec)
        try:
            answer = await run.write(run.original, changed)
        except ApiError as error:
            raise PassFailed(
                f"failed to reconcile ExtensionConfig: failed to patch ExtensionConfig {config.metadata.name}: {error}"
            ) from error
        if answer is not None:
            json: Json = dict(answer.json)
            raw = msgspec.json.encode(json)
            run.rebase(Original(decode(ExtensionConfig, raw), raw))
