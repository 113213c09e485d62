"""Core group: Namespace, Secret, ConfigMap, Event, ServiceAccount, Service, Endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, ATOMIC_MAP, REQUIRED, Default, Doc, Format, Int32, IntOrString, ListMap, Merge
from clusterwright.api.kubernetes.base import Builtin, SensitiveObject
from clusterwright.api.kubernetes.references import LocalObjectReference, ObjectReference
from clusterwright.api.meta import ALWAYS, Condition, Object


class NamespaceSpec(Builtin):
    finalizers: Annotated[tuple[str, ...], ATOMIC] = ()


class NamespaceCondition(Builtin):
    type: Annotated[str, ALWAYS, REQUIRED] = ""
    status: Annotated[str, ALWAYS, REQUIRED] = ""
    last_transition_time: Annotated[datetime | None, ALWAYS] = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(Builtin):
    phase: str = ""
    conditions: Annotated[tuple[NamespaceCondition, ...], ListMap("type"), Merge("type")] = ()


class Namespace(Object):
    """v1 Namespace."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Namespace"
    spec: Annotated[NamespaceSpec, ALWAYS, Doc("desired state")] = NamespaceSpec()
    status: Annotated[NamespaceStatus, ALWAYS, Doc("observed state")] = NamespaceStatus()


class Secret(SensitiveObject):
    """v1 Secret."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Secret"
    immutable: bool | None = None
    data: Mapping[str, bytes] = {}
    string_data: Mapping[str, str] = {}
    type: str = ""


class ConfigMap(Object):
    """v1 ConfigMap."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "ConfigMap"
    immutable: bool | None = None
    data: Mapping[str, str] = {}
    binary_data: Mapping[str, bytes] = {}


class EventSource(Builtin):
    component: str = ""
    host: str = ""


class EventSeries(Builtin):
    count: Int32 = 0
    last_observed_time: Annotated[str | None, ALWAYS, Format("date-time")] = None


class Event(Object):
    """v1 Event."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Event"
    involved_object: Annotated[ObjectReference, ALWAYS, REQUIRED] = ObjectReference()
    reason: str = ""
    message: str = ""
    source: Annotated[EventSource, ALWAYS] = EventSource()
    first_timestamp: Annotated[datetime | None, ALWAYS] = None
    last_timestamp: Annotated[datetime | None, ALWAYS] = None
    count: Int32 = 0
    type: str = ""
    event_time: Annotated[str | None, ALWAYS, Format("date-time")] = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: Annotated[str, ALWAYS] = ""
    reporting_instance: Annotated[str, ALWAYS] = ""


class ServiceAccount(Object):
    """v1 ServiceAccount."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "ServiceAccount"
    secrets: Annotated[tuple[ObjectReference, ...], ListMap("name"), Merge("name")] = ()
    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], ATOMIC] = ()
    automount_service_account_token: bool | None = None


class ServicePort(Builtin):
    name: str = ""
    protocol: Annotated[str, Default("TCP")] = ""
    app_protocol: str | None = None
    port: Annotated[Int32, ALWAYS, REQUIRED] = 0
    target_port: Annotated[IntOrString, ALWAYS] = 0
    node_port: Int32 = 0


class ClientIPConfig(Builtin):
    timeout_seconds: Int32 | None = None


class SessionAffinityConfig(Builtin):
    client_ip: ClientIPConfig | None = msgspec.field(name="clientIP", default=None)


class ServiceSpec(Builtin):
    ports: Annotated[tuple[ServicePort, ...], ListMap("port", "protocol"), Merge("port")] = ()
    selector: Annotated[Mapping[str, str], ATOMIC_MAP] = {}
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    cluster_ips: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(name="clusterIPs", default=())
    type: str = ""
    external_ips: Annotated[tuple[str, ...], ATOMIC] = msgspec.field(name="externalIPs", default=())
    session_affinity: str = ""
    load_balancer_ip: str = msgspec.field(name="loadBalancerIP", default="")
    load_balancer_source_ranges: Annotated[tuple[str, ...], ATOMIC] = ()
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: Int32 = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: Annotated[tuple[str, ...], ATOMIC] = ()
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None


class PortStatus(Builtin):
    port: Annotated[Int32, ALWAYS, REQUIRED] = 0
    protocol: Annotated[str, ALWAYS, REQUIRED] = ""
    error: str | None = None


class LoadBalancerIngress(Builtin):
    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: Annotated[tuple[PortStatus, ...], ATOMIC] = ()


class LoadBalancerStatus(Builtin):
    ingress: Annotated[tuple[LoadBalancerIngress, ...], ATOMIC] = ()


class ServiceStatus(Builtin):
    load_balancer: Annotated[LoadBalancerStatus, ALWAYS] = LoadBalancerStatus()
    conditions: Annotated[tuple[Condition, ...], ListMap("type"), Merge("type")] = ()


class Service(Object):
    """v1 Service."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Service"
    spec: Annotated[ServiceSpec, ALWAYS, Doc("desired state")] = ServiceSpec()
    status: Annotated[ServiceStatus, ALWAYS, Doc("observed state")] = ServiceStatus()


class EndpointAddress(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    ip: Annotated[str, ALWAYS, REQUIRED] = ""
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Builtin):
    constraints: ClassVar[tuple[object, ...]] = (ATOMIC_MAP,)

    name: str = ""
    port: Annotated[Int32, ALWAYS, REQUIRED] = 0
    protocol: str = ""
    app_protocol: str | None = None


class EndpointSubset(Builtin):
    addresses: Annotated[tuple[EndpointAddress, ...], ATOMIC] = ()
    not_ready_addresses: Annotated[tuple[EndpointAddress, ...], ATOMIC] = ()
    ports: Annotated[tuple[EndpointPort, ...], ATOMIC] = ()


class Endpoints(Object):
    """v1 Endpoints."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "v1"
    kind: str = "Endpoints"
    subsets: Annotated[tuple[EndpointSubset, ...], ATOMIC] = ()
