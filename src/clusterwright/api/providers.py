"""Provider: clusterctl's record of an installed provider. The embedded plane adds a status about the provider's process."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from clusterwright.api.constraints import Doc, Int64, Range
from clusterwright.api.meta import ALWAYS, Conditions, Object, Struct

GROUP = "clusterctl.cluster.x-k8s.io"


class ProviderProcessStatus(Struct):
    """The process that the plane runs for a provider."""

    conditions: Conditions = ()
    restarts: Annotated[Int64, ALWAYS, Range(0), Doc("The number of times that the process was started again after it had ended.")] = 0
    last_exit: Annotated[str, Doc("How the process last ended.")] = ""
    next_start: Annotated[datetime | None, Doc("The time at which the process is started again.")] = None
    record: Annotated[str, Doc("The digest of the record that the plane acts on.")] = ""


class Provider(Object):
    """An installed provider. Its fields are those of clusterctl; `status` is ours."""

    api_version: str = f"{GROUP}/v1alpha3"
    kind: str = "Provider"
    provider_name: Annotated[str, Doc("The name of the provider, without its type.")] = ""
    type: Annotated[str, Doc("The type of the provider, for example InfrastructureProvider.")] = ""
    version: Annotated[str, Doc("The version of the provider.")] = ""
    watched_namespace: Annotated[str, Doc("The namespace that the provider watches. If empty, it watches all.")] = ""
    status: Annotated[ProviderProcessStatus, Doc("The process of the provider, if the plane runs it.")] = ProviderProcessStatus()
