"""ExtensionConfig: runtime extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from clusterwright.api.constraints import REQUIRED, Doc, Int32, Items, Len, ListMap, OneOf, Props, Range
from clusterwright.api.meta import KEEP_EMPTY, Conditions, LabelSelector, Object, Struct, V1Beta1Conditions


class ServiceReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 63), Doc("The name of the Service.")] = ""
    namespace: Annotated[str, REQUIRED, Len(1, 63), Doc("The namespace of the Service.")] = ""
    path: Annotated[str, Len(1, 512), Doc("The path of the address, which begins with `/`.")] = ""
    port: Annotated[Int32 | None, Doc("The port of the Service, from 1 to 65535. The default is 443.")] = None


class ClientConfig(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    ca_bundle: Annotated[
        bytes,
        Len(1, 51200),
        Doc(
            "The certificates of the authority that the extension's certificate is checked with, in PEM. "
            "An annotation can have them copied from a Secret."
        ),
    ] = b""
    service: Annotated[ServiceReference | None, Doc("The Service of the extension in this cluster.")] = None
    url: Annotated[str, Len(1, 512), Doc("The address of the extension, which begins with https.")] = ""


class ExtensionConfigSpec(Struct):
    client_config: Annotated[ClientConfig, REQUIRED, Doc("How the extension is reached. Exactly one of url and service is set.")] = (
        ClientConfig()
    )
    namespace_selector: Annotated[
        LabelSelector | None, KEEP_EMPTY, Doc("The namespaces whose Clusters the extension is called for. The default, `{}`, selects all.")
    ] = None
    settings: Annotated[Mapping[str, str], Doc("Settings that are sent with each call.")] = {}


class ExtensionConfigV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class ExtensionConfigDeprecatedStatus(Struct):
    v1beta1: Annotated[ExtensionConfigV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class GroupVersionHook(Struct):
    api_version: Annotated[
        str, REQUIRED, Len(1, 512), Doc("The API group and version of the hook, for example hooks.runtime.cluster.x-k8s.io/v1alpha1.")
    ] = ""
    hook: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the hook.")] = ""


class ExtensionHandler(Struct):
    failure_policy: Annotated[
        str, OneOf("Ignore", "Fail"), Doc("The effect of a failed call: Fail or Ignore. It is Fail if the extension does not say.")
    ] = ""
    name: Annotated[str, REQUIRED, Len(1, 512), Doc("The name of the handler, as `<handler>.<ExtensionConfig>`.")] = ""
    request_hook: Annotated[GroupVersionHook, REQUIRED, Doc("The hook that the handler answers.")] = GroupVersionHook()
    timeout_seconds: Annotated[Int32, Range(1), Doc("The seconds after which a call fails. It is 10 if the extension does not say.")] = 0


class ExtensionConfigStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    conditions: Conditions = ()
    deprecated: Annotated[
        ExtensionConfigDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None
    handlers: Annotated[
        tuple[ExtensionHandler, ...], Items(None, 512), ListMap("name"), Doc("The handlers that the extension reported.")
    ] = ()


class ExtensionConfig(Object):
    """A runtime extension and its handlers."""

    api_version: str = "runtime.cluster.x-k8s.io/v1beta2"
    kind: str = "ExtensionConfig"
    spec: Annotated[ExtensionConfigSpec, REQUIRED, Doc("The desired state, which users set.")] = ExtensionConfigSpec()
    status: Annotated[ExtensionConfigStatus, Doc("The observed state, which controllers write.")] = ExtensionConfigStatus()
