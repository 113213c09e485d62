"""Content negotiation: the form of an answer (Accept) and of a body (Content-Type)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
import yaml

from clusterwright.apiserver.status import bad_request, failure, not_acceptable, unsupported_media_type
from clusterwright.golang.numbers import parse_int
from clusterwright.golang.quoting import quote
from clusterwright.golang.times import parse_duration

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

OFFERED: Final = (JSON, YAML, PROTOBUF)
_ROUTED: Final = frozenset({*OFFERED, "*/*"})
"""The media types of built-in kinds; ranges of subtypes are not accepted."""
_TRANSFORMS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer: media type, and the kind of rendering (`Table`, `PartialObjectMetadata`, ...)."""

    media: str = JSON
    render: str = ""
    group: str = ""
    version: str = ""

    @property
    def content_type(self) -> str:
        """The Content-Type header of the answer."""
        if self.render.startswith("APIGroupDiscoveryList"):
            return f"{self.media};g={self.group};v={self.version};as={self.render}"
        return self.media


PLAIN: Final = Form()


def _clauses(header: str) -> list[tuple[str, dict[str, str], float]]:
    found: list[tuple[str, dict[str, str], float]] = []
    for clause in header.split(","):
        media, *parts = (p.strip() for p in clause.split(";"))
        if not media:
            continue
        parameters = dict(p.split("=", 1) for p in parts if "=" in p)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        found.append((media.lower(), parameters, quality))
    found.sort(key=lambda c: -c[2])
    return found


@lru_cache(maxsize=256)
def accepted(header: str, *, custom: bool, discovery: bool = False, collection: bool = False) -> Form:
    """Return the form that an Accept header asks for, also for a `collection`; raises StatusError (406)."""
    if not header:
        return PLAIN
    clauses = _clauses(header)
    if not custom and not any(media in _ROUTED for media, _, _ in clauses):  # refused before the resource is looked at
        offered = (*OFFERED, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch") if collection else OFFERED
        raise failure(406, "NotAcceptable", "406: Not Acceptable\n\nAvailable representations: " + ", ".join(offered), {})
    for media, parameters, _ in clauses:
        chosen = _offer(media)
        if chosen is None:
            continue
        render, group, version = parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", "")
        if render:
            if discovery:
                if render == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io" and version in {"v2", "v2beta1"}:
                    return Form(chosen if chosen != PROTOBUF else JSON, render, group, version)
                continue
            if render not in _TRANSFORMS or group != "meta.k8s.io" or version not in {"v1", "v1beta1"}:
                continue
            if render == "Table" and chosen == PROTOBUF:
                continue  # tables have no such encoding
            return Form(chosen, render, group, version)
        if custom and chosen == PROTOBUF:
            continue  # nor have custom resources, but their metadata has
        return Form(chosen)
    raise not_acceptable("only the following media types are accepted: " + ", ".join(OFFERED))


@lru_cache(maxsize=256)
def for_failures(header: str) -> Form:
    """Return the form of a failure Status for this Accept header: the first clause without a special rendering, else JSON."""
    offers = (_offer(media) for media, parameters, _ in _clauses(header) if "as" not in parameters)
    return Form(next((offer for offer in offers if offer is not None), JSON))


def _offer(media: str) -> str | None:
    if media in OFFERED:
        return media
    if media in {"*/*", "application/*"}:
        return JSON
    return None


def content_type(header: str) -> str:
    """Return the bare media type of a Content-Type header."""
    return header.split(";", 1)[0].strip().lower()


def body_media(header: str) -> str:
    """Return the format of a create or update body: JSON, YAML or PROTOBUF; raises StatusError (415)."""
    media = content_type(header) or JSON
    if media in {JSON, YAML, PROTOBUF}:
        return media
    raise unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def patch_media(header: str, *, custom: bool) -> str:
    """Return the type of patch; raises StatusError (415)."""
    media = content_type(header)
    known = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] if custom else [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]
    if media in known:
        return media
    if not custom:
        raise failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    raise unsupported_media_type("the body of the request was in an unknown format - accepted media types include: " + ", ".join(known))


def encode(value: Any, form: Form) -> bytes:
    """Return data encoded in a form (except protobuf)."""
    if form.media == YAML:
        return yaml.safe_dump(value, default_flow_style=False, allow_unicode=True).encode()
    return msgspec.json.encode(value)


def boolean(text: str | None, name: str) -> bool:
    """Return a boolean query parameter as Go's conversion reads it."""
    if text is None:
        return False
    return text.lower() not in {"false", "0"}


def integer(text: str) -> int:
    """Return an int64 query parameter; raises StatusError (400) with Go's message."""
    try:
        return parse_int(text, 64)
    except ValueError as e:
        raise bad_request(str(e)) from None


def check_timeout(text: str) -> None:
    """Check that `timeout` is a Go duration; raises StatusError (400)."""
    if text and parse_duration(text) is None:
        raise bad_request(f"invalid timeout specified in the request URL - time: invalid duration {quote(text)}")
