"""Admission of KubeadmControlPlane and of its scale: requirements of a control plane, and changes that no rollout can make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.admission.hook import Access, Hook, Unobserved
from clusterwright.admission.kubeadmconfigspec import kubeadm_config_spec, require_tokens
from clusterwright.admission.mutability import changed_paths, is_mutable
from clusterwright.admission.rule import UPDATE, Default, Fault, Guard, Review, Rule, at
from clusterwright.admission.sets import (
    FORBIDDEN,
    INVALID,
    REQUIRED,
    SAMPLE_SUFFIX,
    below,
    fill_in,
    kubernetes_version,
    machine_naming,
    taints,
    template_metadata,
    version_default,
)
from clusterwright.api.codec import convert, to_json
from clusterwright.api.constraints import Int32
from clusterwright.api.controlplane import KubeadmControlPlane
from clusterwright.api.meta import Json, Object, ObjectKey, Struct
from clusterwright.api.scheme import SCHEME
from clusterwright.api.wellknown import SKIP_COREDNS_ANNOTATION
from clusterwright.apiserver.status import ErrorType
from clusterwright.kubeadm.certificates import DEFAULT_CA_DAYS
from clusterwright.kubeadm.corefile import CannotMigrate, require_migration
from clusterwright.kubeadm.versions import Version, parse_version
from clusterwright.runtime.errors import ApiError

DENIALS_GROUP: Final = "cluster.x-k8s.io"
"""The group in refusals, instead of the kind's own; clients have always seen that."""
NAMING_SAMPLE: Final = {"cluster": {"name": "cluster"}, "kubeadmControlPlane": {"name": "kubeadmcontrolplane"}, "random": SAMPLE_SUFFIX}
_CONFIGURATION: Final = ("kubeadmConfigSpec", "clusterConfiguration")
_DNS_TAG: Final = "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag"
_TAG: Final = re.compile(r"[-a-zA-Z0-9_.]*")


def shared(number: dict[str, str], where: tuple[str, ...], *, replicas: bool, **options: Any) -> tuple[Rule, ...]:
    """Return the rows for control planes and their templates, with their ids by subject."""
    spec = ".".join(where)
    configuration = f"{spec}.kubeadmConfigSpec.clusterConfiguration"
    rolling = f"{spec}.rollout.strategy.rollingUpdate"

    def rollout(id: str, *parts: Any, **more: Any) -> Rule:
        return Rule(number["rollout"].format(id), *parts, **(options | more))

    def etcd(id: str, *parts: Any, **more: Any) -> Rule:
        return Rule(number["images"].format(id), *parts, **(options | more))

    few = rollout(
        "KCP-11", REQUIRED, rolling, _too_few, "when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3"
    )
    return (
        rollout("KCP-10", REQUIRED, f"{spec}.rollout.strategy", lambda _, v: bool(v) and v.get("type") != "RollingUpdate",
                "only RollingUpdate is supported", path=f"{spec}.rollout.strategy.type"),
        *((few,) if replicas else ()),
        rollout("KCP-12", REQUIRED, f"{rolling}.maxSurge", lambda _, v: v is not None and _integer(v) not in (0, 1), "value must be 1 or 0"),
        rollout("KCP-13", INVALID, f"{configuration}.certificateValidityPeriodDays", _outlives_authority(where), "must be less than or equal to {most}"),
        rollout("KCP-14", INVALID, f"{spec}.rollout.before.certificatesExpiryDays", _before_it_is_made(where),
                "must be less than certificateValidityPeriodDays ({days})"),
        *machine_naming(number["naming"], f"{spec}.machineNaming", NAMING_SAMPLE, **options),
        *taints(number["taints"], f"{spec}.machineTemplate.spec.taints", **options),
        *template_metadata(number["metadata"], f"{spec}.machineTemplate.metadata", **options),
        etcd("KCP-16", FORBIDDEN, f"{configuration}.dns.imageTag", _no_tag, "tag {tag} is invalid"),
        # the path is reported like this, without what is above it
        etcd("KCP-17", INVALID, f"{configuration}.dns.imageTag", _no_version, "failed to parse CoreDNS version: {error}", path="dns.imageTag"),
        etcd("KCP-18", FORBIDDEN, f"{configuration}.etcd.local.imageTag", _no_tag, "tag {tag} is invalid"),
        etcd("KCP-19", FORBIDDEN, f"{configuration}.etcd", lambda _, v: bool(at(v, "local") and at(v, "external")),
             "cannot have both external and local etcd", path=f"{configuration}.etcd.local"),
        *kubeadm_config_spec(number["kubeadm"], (*where, "kubeadmConfigSpec"), control_plane=True, **options),
    )  # fmt: skip


def _integer(value: int | str) -> int:
    """Return an int-or-string as a number; an invalid string counts as 0."""
    if isinstance(value, int):
        return value
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value) else 0


def _too_few(review: Review, value: Any) -> bool:
    surge, replicas = at(value, "maxSurge"), at(review.new, "spec", "replicas")
    return surge is not None and _integer(surge) == 0 and replicas is not None and replicas < 3


def _outlives_authority(where: tuple[str, ...]) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        authority = at(review.new, *where, *_CONFIGURATION, "caCertificateValidityPeriodDays")
        if not at(review.new, *where, "rollout", "strategy") or not value or value <= (authority or DEFAULT_CA_DAYS):
            return
        if authority:
            yield Fault(most=f"caCertificateValidityPeriodDays ({authority})")
        else:
            yield Fault(most=f"the default value of caCertificateValidityPeriodDays ({DEFAULT_CA_DAYS})")

    return guard


def _before_it_is_made(where: tuple[str, ...]) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        days = at(review.new, *where, *_CONFIGURATION, "certificateValidityPeriodDays")
        if at(review.new, *where, "rollout", "strategy") and days and value and value >= days:
            yield Fault(days=days)

    return guard


def _no_tag(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if _TAG.fullmatch(value or "") is None:
        yield Fault(tag=value)


def _no_version(review: Review, value: Any) -> Iterator[Fault]:
    del review
    if value:
        try:
            _tag_version(value)
        except ValueError as error:
            yield Fault(error=error)


def _tag_version(tag: str) -> Version:
    """Return the version in an image tag, where an underscore stands for a plus."""
    return parse_version(tag.replace("_", "+"))


# ----------------------------------------------------------------------------------------- control planes only


def _strategy(obj: Json, review: Review) -> None:
    del review
    below(obj, "spec", "rollout", "strategy")["type"] = "RollingUpdate"


def _has_external_etcd(obj: Json | None) -> bool:
    return bool(at(obj, "spec", *_CONFIGURATION, "etcd", "external"))


def _even(review: Review, value: Any) -> bool:
    return value is not None and value % 2 == 0 and not _has_external_etcd(review.new)


def _lacks(key: str) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        if not at(value, key):
            yield Fault("")

    return guard


def _forbidden_changes(review: Review, value: Any) -> Iterator[Fault]:
    """Return forbidden changes, compared as the type writes values, so that an empty field equals an absent one."""
    del value
    before, after = (to_json(convert(o, KubeadmControlPlane)) for o in (review.old or {}, review.new))
    for path in changed_paths(before, after):
        if path[0] in ("metadata", "spec") and not is_mutable(path):
            yield Fault(at=(".".join(path),))


def _versions(review: Review, value: Any) -> tuple[str, str]:
    return at(review.old, "spec", "version") or "", value or ""


def _unread_version(review: Review, value: Any) -> Iterator[Fault]:
    for text, which in zip(_versions(review, value), ("current", "updated"), strict=True):
        try:
            parse_version(text)
        except ValueError as error:
            yield Fault(which=which, version=text, error=error)
            return


def _skipped_minor(review: Review, value: Any) -> Iterator[Fault]:
    before, after = _versions(review, value)
    try:
        old, new = parse_version(before), parse_version(after)
    except ValueError:
        return  # said already
    if new.release >= (old.major, old.minor + 2, 0):
        yield Fault(before=before, after=after)


def _tags(review: Review, value: Any) -> tuple[str, str] | None:
    before = at(review.old, "spec", *_CONFIGURATION, "dns", "imageTag")
    return (before, value) if before and value else None


def _unread_tag(review: Review, value: Any) -> Iterator[Fault]:
    for tag, which in zip(_tags(review, value) or (), ("current", "target"), strict=False):
        try:
            _tag_version(tag)
        except ValueError as error:
            yield Fault(tag, which=which, error=error)
            return


def _no_migration(review: Review, value: Any) -> Iterator[Fault]:
    """Return the error if the Corefile cannot be migrated to a release; the same release is always allowed."""
    tags = _tags(review, value)
    if tags is None or SKIP_COREDNS_ANNOTATION in review.annotations:
        return
    try:
        before, after = map(_tag_version, tags)
    except ValueError:
        return  # said already
    if before.release == after.release:
        return
    try:
        require_migration(before, after)
    except CannotMigrate as error:
        yield Fault(before=before, after=after, error=error)


_REF: Final = "spec.machineTemplate.spec.infrastructureRef"
_IDS: Final = {
    "rollout": "{}", "images": "{}", "naming": "KCP-15", "taints": "KCP-7", "metadata": "KCP-8", "kubeadm": "KCP-21",
}  # fmt: skip

KUBEADM_CONTROL_PLANE: Final = Hook(
    model=KubeadmControlPlane,
    denials_group=DENIALS_GROUP,
    readable=require_tokens("spec", "kubeadmConfigSpec"),
    defaults=(
        fill_in("KCP-D1", 1, "spec", "replicas"),
        version_default("KCP-D2", "spec", also_empty=True),
        Default("KCP-D3", "spec.rollout.strategy.type", _strategy),
        fill_in("KCP-D4", 1, "spec", "rollout", "strategy", "rollingUpdate", "maxSurge"),
    ),
    rules=(
        Rule("KCP-1", REQUIRED, "spec.replicas", lambda _, v: v is None, "is required"),
        Rule("KCP-2", FORBIDDEN, "spec.replicas", lambda _, v: v is not None and v <= 0, "cannot be less than or equal to 0"),
        Rule("KCP-3", FORBIDDEN, "spec.replicas", _even, "cannot be an even number when etcd is stacked"),
        # the path is spelled like this by everyone who has reported it so far
        *(
            Rule(f"KCP-{n}", INVALID, _REF, _lacks(key), "cannot be empty", path=f"spec.machineTemplate.infrastructure.{key}")
            for n, key in enumerate(("apiGroup", "kind", "name"), 4)
        ),
        *kubernetes_version("KCP-9", "spec.version"),
        *shared(_IDS, ("spec",), replicas=True),
        Rule("KCP-22", FORBIDDEN, "spec", _forbidden_changes, "cannot be modified", on=UPDATE, path="{}"),
        Rule("KCP-23", ErrorType.INTERNAL, "spec.version", _unread_version,
             "failed to parse {which} kubeadmcontrolplane version: {version}: {error}", on=UPDATE),
        Rule("KCP-24", FORBIDDEN, "spec.version", _skipped_minor, "cannot update Kubernetes version from {before} to {after}", on=UPDATE),
        Rule("KCP-20", FORBIDDEN, "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external",
             lambda r, _: _has_external_etcd(r.old) != _has_external_etcd(r.new), "cannot change between external and local etcd", on=UPDATE),
        Rule("KCP-25", INVALID, _DNS_TAG, _unread_tag, "failed to parse {which} CoreDNS version: {error}", on=UPDATE),
        Rule("KCP-26", FORBIDDEN, _DNS_TAG, _no_migration, "cannot migrate CoreDNS up to '{after}' from '{before}': {error}", on=UPDATE),
    ),
)  # fmt: skip


class ScaleSpec(Struct):
    """The wanted number of replicas."""

    replicas: Int32 = 0


class Scale(Object):
    """The body of a write to a scale subresource."""

    api_version: str = "autoscaling/v1"
    kind: str = "Scale"
    spec: ScaleSpec = ScaleSpec()


async def _control_plane(review: Review, access: Access) -> Json:
    """Return the control plane to scale."""
    try:
        found = await access.reader.get(SCHEME.gvk(KubeadmControlPlane), ObjectKey(review.namespace, review.name))
    except ApiError as error:
        raise Unobserved(f"failed to get KubeadmControlPlane {review.namespace}/{review.name}: {error}") from None
    return dict(found.json)


def _even_of_stacked(review: Review, value: Any) -> bool:
    """Return whether the number is even with stacked etcd; the server itself refuses negative numbers."""
    return bool(value) and value > 0 and value % 2 == 0 and not _has_external_etcd(review.facts)


KUBEADM_CONTROL_PLANE_SCALE: Final = Hook(
    model=Scale,  # SC-3: what is none is refused
    of=KubeadmControlPlane,
    subresource="scale",
    purpose="validation-scale",
    form="plain",
    on=UPDATE,
    observe=_control_plane,  # SC-4: what cannot be read is an error
    rules=(
        Rule("SC-1", FORBIDDEN, "spec.replicas", lambda _, v: (v or 0) <= 0, "replicas should be greater than zero"),
        Rule("SC-2", FORBIDDEN, "spec.replicas", _even_of_stacked, "replicas cannot be an even number when etcd is stacked"),
    ),
)
