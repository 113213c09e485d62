"""Registered handlers of runtime extensions, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from clusterwright.api.codec import convert
from clusterwright.api.meta import Json, LabelSelector
from clusterwright.api.selectors import Selector, parsed

GROUP = "hooks.runtime.cluster.x-k8s.io"
DEFAULT_TIMEOUT = 10


class RegistryError(Exception):
    """The registry is not ready, or lacks the handler."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler of an ExtensionConfig. `name` is `<handler>.<config>`; `selector` None selects no Namespace."""

    name: str
    config: str
    config_version: str
    api_version: str
    hook: str
    client_config: Json
    timeout_seconds: int
    failure_policy: str
    settings: Mapping[str, str]
    selector: Selector | None

    @property
    def short_name(self) -> str:
        """The name without that of the ExtensionConfig."""
        return self.name.removesuffix(f".{self.config}")

    @property
    def group(self) -> str:
        """The group of the hook."""
        return self.api_version.partition("/")[0]


def selector_of(selector: Json) -> Selector:
    """Return the parsed LabelSelector; raises ValueError."""
    return parsed(convert(selector, LabelSelector))


def handlers_of(config: Json) -> tuple[Handler, ...]:
    """Return the handlers in an ExtensionConfig's status; raises ValueError for an invalid selector or apiVersion."""
    name, spec = config["metadata"]["name"], config.get("spec") or {}
    selector = spec.get("namespaceSelector")
    matched = None if selector is None else selector_of(selector)
    found = []
    for entry in (config.get("status") or {}).get("handlers") or ():
        hook = entry.get("requestHook") or {}
        if hook.get("apiVersion", "").count("/") != 1:
            raise ValueError(f"failed to parse GroupVersion {hook.get('apiVersion')!r}")
        found.append(
            Handler(
                entry["name"],
                name,
                config["metadata"].get("resourceVersion", ""),
                hook["apiVersion"],
                hook.get("hook", ""),
                spec.get("clientConfig") or {},
                entry.get("timeoutSeconds") or DEFAULT_TIMEOUT,
                entry.get("failurePolicy") or "Fail",
                spec.get("settings") or {},
                matched,
            )
        )
    return tuple(found)


def discovery_handler(config: Json) -> Handler:
    """Return the handler of every extension that lists the others."""
    name, client_config = config["metadata"]["name"], (config.get("spec") or {}).get("clientConfig") or {}
    return Handler(f"discovery.{name}", name, "", f"{GROUP}/v1alpha1", "Discovery", client_config, DEFAULT_TIMEOUT, "Fail", {}, None)


@dataclass(slots=True)
class Registry:
    """The handlers of all ExtensionConfigs. Until it is warmed up, reading it fails, because handlers may be missing."""

    _configs: dict[str, tuple[Handler, ...]] = field(default_factory=dict)
    _undiscovered: dict[str, tuple[Handler, ...]] = field(default_factory=dict)
    """Handlers of extensions that were not discovered since the start: their hooks must not be skipped."""
    is_ready: bool = False
    _listeners: list[Callable[[], None]] = field(default_factory=list)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function whenever handlers were registered."""
        self._listeners.append(listener)

    def start(self, configs: Iterable[Json], known: Callable[[Json], bool]) -> None:
        """Become ready: `known` configs count with their present status; hooks of all others fail until they are added.

        So one dead extension only stops the calls that need it.
        """
        for config in configs:
            try:
                (self._configs if known(config) else self._undiscovered)[config["metadata"]["name"]] = handlers_of(config)
            except ValueError:
                continue  # its own pass says what is wrong with it
        self.is_ready = True
        self._tell()

    def warm_up(self, configs: Iterable[Json]) -> None:
        """Register every config at once; if one is invalid, raises RegistryError and stays cold."""
        if self.is_ready:
            text = "failed to warm up registry: invalid operation: WarmUp cannot be called on a registry which has already been warmed up"
            raise RegistryError(text)
        made = {}
        for config in configs:
            try:
                made[config["metadata"]["name"]] = handlers_of(config)
            except ValueError as error:
                raise RegistryError(f"failed to warm up registry: {_failed_to_add(config, error)}") from None
        self._configs, self.is_ready = made, True

    def add(self, config: Json) -> None:
        """Replace the handlers of a config; raises RegistryError and keeps the previous ones if they are invalid."""
        name = config["metadata"]["name"]
        if not self.is_ready:
            raise _cold(f'failed to add ExtensionConfig "{name}" to registry', "Add")
        try:
            self._configs[name] = handlers_of(config)
        except ValueError as error:
            raise RegistryError(_failed_to_add(config, error)) from None
        self._undiscovered.pop(name, None)
        self._tell()

    def remove(self, name: str) -> None:
        """Forget a config."""
        if not self.is_ready:
            raise _cold(f'failed to remove ExtensionConfig "{name}" from registry', "Remove")
        self._configs.pop(name, None)
        self._undiscovered.pop(name, None)

    def list(self, hook: str) -> tuple[Handler, ...]:
        """Return the handlers of a hook, by name."""
        if not self.is_ready:
            raise _cold(f'failed to list extension handlers for GroupHook "{hook}.{GROUP}"', "List")
        waiting = sorted(h.name for handlers in self._undiscovered.values() for h in handlers if (h.group, h.hook) == (GROUP, hook))
        if waiting:
            raise RegistryError(f'failed to list extension handlers for GroupHook "{hook}.{GROUP}": {waiting[0]} is not discovered yet')
        return tuple(sorted((h for h in self._all() if (h.group, h.hook) == (GROUP, hook)), key=lambda h: h.name))

    def get(self, name: str) -> Handler:
        """Return the handler of a name."""
        context = f'failed to get extension handler "{name}" from registry'
        if not self.is_ready:
            raise RegistryError(f"{context}: invalid operation: Get cannot be called on a registry not yet ready")
        found = next((h for h in self._all() if h.name == name), None)
        if found is None:
            raise RegistryError(f'{context}: handler with name "{name}" has not been registered')
        return found

    @property
    def undiscovered(self) -> tuple[str, ...]:
        """The configs from the start that have not been discovered since, sorted."""
        return tuple(sorted(self._undiscovered))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all handlers, sorted."""
        return tuple(sorted(h.name for h in self._all()))

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _all(self) -> Iterable[Handler]:
        return (h for handlers in self._configs.values() for h in handlers)


def _cold(context: str, operation: str) -> RegistryError:
    return RegistryError(f"{context}: invalid operation: {operation} cannot be called on a registry which has not been warmed up")


def _failed_to_add(config: Json, error: Exception) -> str:
    return f'failed to add ExtensionConfig "{config["metadata"]["name"]}" to registry: failed to create namespaceSelector: {error}'
