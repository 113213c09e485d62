"""IPAddress and IPAddressClaim."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import DNS_SUBDOMAIN, KIND, REQUIRED, Doc, Int32, Len, Props, Range
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, Struct, V1Beta1Conditions


class IPPoolReference(Struct):
    """A reference to a pool of addresses."""

    api_group: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The API group of the pool.")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("The kind of the pool.")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The name of the pool.")] = ""


class IPAddressClaimReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The name of the claim.")] = ""


class IPAddressSpec(Struct):
    address: Annotated[str, REQUIRED, Len(1, 39), Doc("The IPv4 or IPv6 address.")] = ""
    claim_ref: Annotated[IPAddressClaimReference, REQUIRED, Doc("The claim that got the address.")] = IPAddressClaimReference()
    gateway: Annotated[str, Len(1, 39), Doc("The IP address of the gateway.")] = ""
    pool_ref: Annotated[IPPoolReference, REQUIRED, Doc("The pool of the address, which is that of the claim.")] = IPPoolReference()
    prefix: Annotated[Int32 | None, REQUIRED, Range(0, 128), Doc("The length of the network prefix.")] = None


class IPAddress(Object):
    """An address that a pool gave to a claim."""

    api_version: str = "ipam.cluster.x-k8s.io/v1beta2"
    kind: str = "IPAddress"
    spec: Annotated[IPAddressSpec, REQUIRED, Doc("The desired state, which users set.")] = IPAddressSpec()


class IPAddressClaimSpec(Struct):
    cluster_name: Annotated[
        str, Len(1, 63), Doc("The name of the Cluster. It replaces the label for the name of the Cluster, which is deprecated.")
    ] = ""
    pool_ref: Annotated[IPPoolReference, REQUIRED, Doc("The pool from which an address is taken.")] = IPPoolReference()


class IPAddressReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("The name of the IPAddress.")] = ""


class IPAddressClaimV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class IPAddressClaimDeprecatedStatus(Struct):
    v1beta1: Annotated[IPAddressClaimV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("The status of v1beta1.")] = None


class IPAddressClaimStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    address_ref: Annotated[IPAddressReference | None, Doc("The IPAddress that the claim got.")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        IPAddressClaimDeprecatedStatus | None, KEEP_EMPTY, Doc("Status of older API versions, which is kept for conversion.")
    ] = None


class IPAddressClaim(Object):
    """A request for an address from a pool."""

    api_version: str = "ipam.cluster.x-k8s.io/v1beta2"
    kind: str = "IPAddressClaim"
    spec: Annotated[IPAddressClaimSpec, REQUIRED, Doc("The desired state, which users set.")] = IPAddressClaimSpec()
    status: Annotated[IPAddressClaimStatus, Doc("The observed state, which controllers write.")] = IPAddressClaimStatus()
