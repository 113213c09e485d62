"""IPAddress and IPAddressClaim."""

from __future__ import annotations

from typing import Annotated, ClassVar

from clusterwright.api.constraints import DNS_SUBDOMAIN, KIND, REQUIRED, Doc, Int32, Len, Props, Range
from clusterwright.api.meta import KEEP_EMPTY, Conditions, Object, Struct, V1Beta1Conditions


class IPPoolReference(Struct):
    """A reference to a pool of addresses."""

    api_group: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("group of the pool")] = ""
    kind: Annotated[str, REQUIRED, Len(1, 63), KIND, Doc("kind of the pool")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("name of the pool")] = ""


class IPAddressClaimReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("name of the claim")] = ""


class IPAddressSpec(Struct):
    address: Annotated[str, REQUIRED, Len(1, 39), Doc("IPv4 or IPv6 literal")] = ""
    claim_ref: Annotated[IPAddressClaimReference, REQUIRED, Doc("claim being fulfilled")] = IPAddressClaimReference()
    gateway: Annotated[str, Len(1, 39), Doc("IP literal")] = ""
    pool_ref: Annotated[IPPoolReference, REQUIRED, Doc("must equal the claim poolRef")] = IPPoolReference()
    prefix: Annotated[Int32 | None, REQUIRED, Range(0, 128), Doc("network prefix length")] = None


class IPAddress(Object):
    """An address that a pool gave to a claim."""

    api_version: str = "ipam.cluster.x-k8s.io/v1beta2"
    kind: str = "IPAddress"
    spec: Annotated[IPAddressSpec, REQUIRED, Doc("desired state")] = IPAddressSpec()


class IPAddressClaimSpec(Struct):
    cluster_name: Annotated[str, Len(1, 63), Doc("replaces the deprecated cluster-name label")] = ""
    pool_ref: Annotated[IPPoolReference, REQUIRED, Doc("pool to allocate from")] = IPPoolReference()


class IPAddressReference(Struct):
    name: Annotated[str, REQUIRED, Len(1, 253), DNS_SUBDOMAIN, Doc("name of the IPAddress")] = ""


class IPAddressClaimV1Beta1DeprecatedStatus(Struct):
    conditions: V1Beta1Conditions = ()


class IPAddressClaimDeprecatedStatus(Struct):
    v1beta1: Annotated[IPAddressClaimV1Beta1DeprecatedStatus | None, KEEP_EMPTY, Doc("legacy v1beta1 status block")] = None


class IPAddressClaimStatus(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    address_ref: Annotated[IPAddressReference | None, Doc("allocated IPAddress")] = None
    conditions: Conditions = ()
    deprecated: Annotated[
        IPAddressClaimDeprecatedStatus | None, KEEP_EMPTY, Doc("container for legacy-only status; kept for v1beta1 round trips")
    ] = None


class IPAddressClaim(Object):
    """A request for an address from a pool."""

    api_version: str = "ipam.cluster.x-k8s.io/v1beta2"
    kind: str = "IPAddressClaim"
    spec: Annotated[IPAddressClaimSpec, REQUIRED, Doc("desired state")] = IPAddressClaimSpec()
    status: Annotated[IPAddressClaimStatus, Doc("observed state")] = IPAddressClaimStatus()
