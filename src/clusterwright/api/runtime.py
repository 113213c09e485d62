"""ExtensionConfig: runtime extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from clusterwright.api.constraints import REQUIRED, Doc, Int32, Items, Len, ListMap, OneOf, Props, Range
from clusterwright.api.meta import KEEP_EMPTY, Conditions, LabelSelector, Object, Struct, V1Beta1Conditions


class ServiceReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 63), Doc("DNS-1035 label")] = ""
    namespace: Annotated[str, REQUIRED, Len(1, 63), Doc("DNS-1123 label")] = ""
    path: Annotated[str, Len(1, 512), Doc("must begin with `/`")] = ""
    port: Annotated[Int32 | None, Doc("1..65535; defaults to 443")] = None


class ClientConfig(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    ca_bundle: Annotated[bytes, Len(1, 51200), Doc("base64 PEM; may be injected from a Secret via annotation")] = b""
    service: Annotated[ServiceReference | None, Doc("in-cluster Service")] = None
    url: Annotated[str, Len(1, 512), Doc("https only")] = ""


class ExtensionConfigSpec(Struct):
    client_config: Annotated[ClientConfig, REQUIRED, Doc("exactly one of url / service")] = ClientConfig()
    namespace_selector: Annotated[LabelSelector | None, KEEP_EMPTY, Doc("defaulted to `{}` (matches all)")] = None
    settings: Annotated[Mapping[str, str], Doc("passed to every handler call")] = {}


class ExtensionConfigV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class ExtensionConfigDeprecatedStatus(Struct):
    v1beta1: Annotated[ExtensionConfigV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class GroupVersionHook(Struct):
    api_version: Annotated[str, REQUIRED, Len(1, 512), Doc("e.g. hooks.runtime.cluster.x-k8s.io/v1alpha1")] = ""
    hook: Annotated[str, REQUIRED, Len(1, 256), Doc("hook name")] = ""


class ExtensionHandler(Struct):
    failure_policy: Annotated[str, OneOf("Ignore", "Fail"), Doc("controller fills Fail when handler omits it")] = ""
    name: Annotated[str, REQUIRED, Len(1, 512), Doc("`<handler>.<ExtensionConfig name>`")] = ""
    request_hook: Annotated[GroupVersionHook, REQUIRED, Doc("the hook that it handles")] = GroupVersionHook()
    timeout_seconds: Annotated[Int32, Range(1), Doc("10 when handler omits it")] = 0


class ExtensionConfigStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    deprecated: Annotated[
        ExtensionConfigDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None
    handlers: Annotated[tuple[ExtensionHandler, ...], Items(None, 512), ListMap("name"), Doc("discovered handlers")] = ()


class ExtensionConfig(Object):
    """A runtime extension and its handlers."""

    api_version: str = "runtime.cluster.x-k8s.io/v1beta2"
    kind: str = "ExtensionConfig"
    spec: Annotated[ExtensionConfigSpec, REQUIRED, Doc("desired state")] = ExtensionConfigSpec()
    status: Annotated[ExtensionConfigStatus, Doc("observed state")] = ExtensionConfigStatus()
