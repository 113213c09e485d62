"""events.k8s.io/v1."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from clusterwright.api.constraints import REQUIRED, Format, Int32
from clusterwright.api.kubernetes.base import Builtin
from clusterwright.api.kubernetes.core import EventSource
from clusterwright.api.kubernetes.references import ObjectReference
from clusterwright.api.meta import ALWAYS, Object


class EventsEventSeries(Builtin):
    count: Annotated[Int32, ALWAYS, REQUIRED] = 0
    last_observed_time: Annotated[str | None, ALWAYS, REQUIRED, Format("date-time")] = None


class EventsEvent(Object):
    """events.k8s.io/v1 Event."""

    omit_zero: ClassVar[bool] = False

    api_version: str = "events.k8s.io/v1"
    kind: str = "Event"
    event_time: Annotated[str | None, ALWAYS, REQUIRED, Format("date-time")] = None
    series: EventsEventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: Annotated[ObjectReference, ALWAYS] = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: Annotated[EventSource, ALWAYS] = EventSource()
    deprecated_first_timestamp: Annotated[datetime | None, ALWAYS] = None
    deprecated_last_timestamp: Annotated[datetime | None, ALWAYS] = None
    deprecated_count: Int32 = 0
