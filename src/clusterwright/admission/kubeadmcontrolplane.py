"""Admission of KubeadmControlPlane, its scale, and KubeadmControlPlaneTemplate: a link for the API server's chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clusterwright.admission.kubeadmconfig import field_error, require_tokens
from clusterwright.admission.mutability import changed_paths, is_mutable
from clusterwright.admission.refusal import denied, hook_name, invalid_object, read
from clusterwright.admission.rules import kubernetes_version, machine_naming, taints, template_metadata
from clusterwright.api.codec import convert, to_json
from clusterwright.api.controlplane import KubeadmControlPlane, KubeadmControlPlaneTemplate
from clusterwright.api.meta import Json
from clusterwright.api.wellknown import SKIP_COREDNS_ANNOTATION
from clusterwright.apiserver.admission import Attributes
from clusterwright.apiserver.status import ErrorType, FieldError, forbidden, invalid, required
from clusterwright.kubeadm.certificates import DEFAULT_CA_DAYS
from clusterwright.kubeadm.corefile import CannotMigrate, require_migration
from clusterwright.kubeadm.validation import GATE, at, problems, with_former_defaults
from clusterwright.kubeadm.versions import Version, parse_version

GROUP: Final = "controlplane.cluster.x-k8s.io"
CLUSTER_TOPOLOGY: Final = "ClusterTopology"
DENIALS_GROUP: Final = "cluster.x-k8s.io"
"""Refusals name this group instead of the kind's own; clients have always seen that."""
_SAMPLE: Final = {"cluster": {"name": "cluster"}, "kubeadmControlPlane": {"name": "kubeadmcontrolplane"}, "random": "bcdfg"}
_TAG: Final = re.compile(r"[-a-zA-Z0-9_.]*")


class KubeadmControlPlaneAdmission:
    """Fills in what a control plane needs, refuses specs that break a rule and changes that no rollout can bring about."""

    def __init__(self, features: Mapping[str, bool]) -> None:
        self._features = features

    async def mutate(self, attributes: Attributes) -> None:
        """KCP-D1 to KCP-D4, for control planes; templates stay as they are."""
        obj = attributes.object
        if obj is None or not _concerns(attributes, "KubeadmControlPlane"):
            return
        _require_readable(attributes, obj, "default")
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        version = spec.get("version") or ""
        spec["version"] = version if version.startswith("v") else f"v{version}"
        strategy = spec.setdefault("rollout", {}).setdefault("strategy", {})
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {}).setdefault("maxSurge", 1)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse with every broken rule at once."""
        obj = attributes.object
        if obj is None:
            return
        if _concerns(attributes, "KubeadmControlPlane", subresource="scale"):
            _require_scale(attributes, obj)
        elif _concerns(attributes, "KubeadmControlPlane"):
            _refuse(attributes, [*self._control_plane(obj, attributes.old_object)])
        elif _concerns(attributes, "KubeadmControlPlaneTemplate"):
            _require_readable(attributes, obj, "validation")
            if attributes.old_object is not None:
                _refuse(attributes, [*_changed_template(attributes.old_object, obj)])
            elif not self._features.get(CLUSTER_TOPOLOGY, False):
                text = f"can be set only if the {CLUSTER_TOPOLOGY} feature flag is enabled"
                raise denied(hook_name("validation", attributes), forbidden("spec", text))
            else:
                _refuse(attributes, [*self._template(at(obj, "spec", "template") or {})])

    def _control_plane(self, new: Json, old: Json | None) -> Iterator[FieldError]:
        spec: Json = new.get("spec") or {}
        yield from _replicas(spec)
        yield from _infrastructure_ref(spec)
        yield from kubernetes_version(str(spec.get("version") or ""), "spec.version")
        yield from self._shared(spec, "spec", spec.get("replicas"))
        if old is not None:
            yield from _forbidden_changes(old, new)
            yield from _version_change(old, new)
            yield from _etcd_change(old, new)
            yield from _coredns_change(old, new)

    def _template(self, template: Json) -> Iterator[FieldError]:
        yield from self._shared(template.get("spec") or {}, "spec.template.spec", None)
        yield from template_metadata(template.get("metadata"), "spec.template.metadata")

    def _shared(self, spec: Json, field: str, replicas: int | None) -> Iterator[FieldError]:
        """The rules that hold for a control plane and for a template of it alike."""
        yield from _rollout(spec, field, replicas)
        yield from machine_naming(spec.get("machineNaming"), f"{field}.machineNaming", _SAMPLE)
        yield from taints(at(spec, "machineTemplate", "spec", "taints") or (), f"{field}.machineTemplate.spec.taints", self._features)
        yield from template_metadata(at(spec, "machineTemplate", "metadata"), f"{field}.machineTemplate.metadata")
        config: Json = spec.get("kubeadmConfigSpec") or {}
        field = f"{field}.kubeadmConfigSpec"
        yield from _cluster_configuration(config.get("clusterConfiguration") or {}, f"{field}.clusterConfiguration")
        yield from map(field_error, problems(config, field, ignition=self._features.get(GATE, False), control_plane=True))


def _concerns(attributes: Attributes, kind: str, subresource: str = "") -> bool:
    resource = attributes.resource
    concerned = (resource.group, resource.kind, attributes.subresource) == (GROUP, kind, subresource)
    return concerned and attributes.operation in ("CREATE", "UPDATE")


def _require_readable(attributes: Attributes, obj: Json, purpose: str) -> None:
    """Refuse what the model cannot hold."""
    template = attributes.resource.kind == "KubeadmControlPlaneTemplate"
    read(attributes, obj, KubeadmControlPlaneTemplate if template else KubeadmControlPlane, purpose)
    spec = at(obj, "spec", "template", "spec") if template else obj.get("spec")
    require_tokens(attributes, at(spec, "kubeadmConfigSpec") or {}, purpose)


def _refuse(attributes: Attributes, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_object(hook_name("validation", attributes), DENIALS_GROUP, attributes, errors)


def _configuration(obj: Json) -> Json:
    return at(obj, "spec", "kubeadmConfigSpec", "clusterConfiguration") or {}


def _has_external_etcd(configuration: Json) -> bool:
    return bool(at(configuration, "etcd", "external"))


# ----------------------------------------------------------------------------------------- control planes only


def _replicas(spec: Json) -> Iterator[FieldError]:
    """KCP-1 to KCP-3."""
    replicas = spec.get("replicas")
    if replicas is None:
        yield required("spec.replicas", "is required")
        return
    if replicas <= 0:
        yield forbidden("spec.replicas", "cannot be less than or equal to 0")
    if replicas % 2 == 0 and not _has_external_etcd(at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}):
        yield forbidden("spec.replicas", "cannot be an even number when etcd is stacked")


def _infrastructure_ref(spec: Json) -> Iterator[FieldError]:
    """KCP-4 to KCP-6. The path is spelled like this by everyone who has reported it so far."""
    ref = at(spec, "machineTemplate", "spec", "infrastructureRef") or {}
    for key in ("apiGroup", "kind", "name"):
        if not ref.get(key):
            yield invalid(f"spec.machineTemplate.infrastructure.{key}", "", "cannot be empty")


def _require_scale(attributes: Attributes, obj: Json) -> None:
    """SC-1, SC-2."""
    replicas = at(obj, "spec", "replicas") or 0
    hook = hook_name("validation-scale", attributes)
    if replicas < 0:
        return  # refused by the server itself
    if replicas == 0:
        raise denied(hook, "replicas cannot be 0")
    if replicas % 2 == 0 and not _has_external_etcd(_configuration(obj)):
        raise denied(hook, "replicas cannot be an even number when etcd is stacked")


# ----------------------------------------------------------------------------------------- changes


def _forbidden_changes(old: Json, new: Json) -> Iterator[FieldError]:
    """KCP-22: compared as the type writes them, so that an empty field and an absent one are the same."""
    before, after = (to_json(convert(o, KubeadmControlPlane)) for o in (old, new))
    for path in changed_paths(before, after):
        if path[0] in ("metadata", "spec") and not is_mutable(path):
            yield forbidden(".".join(path), "cannot be modified")


def _version_change(old: Json, new: Json) -> Iterator[FieldError]:
    """KCP-23, KCP-24: one minor version up at most; down is not forbidden here."""
    before, after = (str(at(o, "spec", "version") or "") for o in (old, new))
    versions = list[Version]()
    for text, which in ((before, "current"), (after, "updated")):
        try:
            versions.append(parse_version(text))
        except ValueError as error:
            detail = f"failed to parse {which} kubeadmcontrolplane version: {text}: {error}"
            yield FieldError(ErrorType.INTERNAL, "spec.version", detail=detail)
            return
    if versions[1].release >= (versions[0].major, versions[0].minor + 2, 0):
        yield forbidden("spec.version", f"cannot update Kubernetes version from {before} to {after}")


def _etcd_change(old: Json, new: Json) -> Iterator[FieldError]:
    """KCP-20."""
    if _has_external_etcd(_configuration(old)) != _has_external_etcd(_configuration(new)):
        yield forbidden("spec.kubeadmConfigSpec.clusterConfiguration.etcd.external", "cannot change between external and local etcd")


def _coredns_change(old: Json, new: Json) -> Iterator[FieldError]:
    """KCP-25, KCP-26: to a release that the Corefile can be migrated to; the same release is always possible."""
    field = "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag"
    tags = [str(at(_configuration(o), "dns", "imageTag") or "") for o in (old, new)]
    if not all(tags):
        return
    versions = list[Version]()
    for tag, which in zip(tags, ("current", "target"), strict=True):
        try:
            versions.append(_tag_version(tag))
        except ValueError as error:
            yield invalid(field, tag, f"failed to parse {which} CoreDNS version: {error}")
            return
    before, after = versions
    if before.release == after.release or SKIP_COREDNS_ANNOTATION in (at(new, "metadata", "annotations") or {}):
        return
    try:
        require_migration(before, after)
    except CannotMigrate as error:
        yield forbidden(field, f"cannot migrate CoreDNS up to '{after}' from '{before}': {error}")


def _tag_version(tag: str) -> Version:
    """The version of an image tag, where an underscore stands for a plus."""
    return parse_version(tag.replace("_", "+"))


def _changed_template(old: Json, new: Json) -> Iterator[FieldError]:
    """KCT-9: a template does not change; what former releases filled in is no change."""
    before, after = (_comparable(o) for o in (old, new))
    former: Json = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    if at(before, "rollout", "strategy") == former and not at(after, "rollout", "strategy"):
        after["rollout"] = (after.get("rollout") or {}) | {"strategy": former}
    if before != after:
        paths = sorted(".".join(p) for p in changed_paths(before, after))
        text = "KubeadmControlPlaneTemplate spec.template.spec field is immutable. Please create new resource instead. Diff: "
        yield invalid("spec.template.spec", new, text + ", ".join(paths))


def _comparable(template: Json) -> Json:
    obj = dict(template)
    spec: Json = dict(at(obj, "spec", "template", "spec") or {})
    spec["kubeadmConfigSpec"] = with_former_defaults(spec.get("kubeadmConfigSpec") or {})
    typed = convert(obj | {"spec": {"template": {"spec": spec}}}, KubeadmControlPlaneTemplate)
    found: Json = at(to_json(typed), "spec", "template", "spec") or {}
    return found


# ----------------------------------------------------------------------------------------- shared with the template


def _rollout(spec: Json, field: str, replicas: int | None) -> Iterator[FieldError]:
    """KCP-10 to KCP-14; without a strategy none of them is asked."""
    strategy: Json = at(spec, "rollout", "strategy") or {}
    if not strategy:
        return
    if strategy.get("type") != "RollingUpdate":
        yield required(f"{field}.rollout.strategy.type", "only RollingUpdate is supported")
    surge = at(strategy, "rollingUpdate", "maxSurge")
    if surge is not None:
        value = _integer(surge)
        if value == 0 and replicas is not None and replicas < 3:
            text = "when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3"
            yield required(f"{field}.rollout.strategy.rollingUpdate", text)
        if value not in (0, 1):
            yield required(f"{field}.rollout.strategy.rollingUpdate.maxSurge", "value must be 1 or 0")
    yield from _certificate_validity(spec, field)


def _integer(value: int | str) -> int:
    """An int-or-string as a number; a string that is none counts as 0."""
    if isinstance(value, int):
        return value
    return int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else 0


def _certificate_validity(spec: Json, field: str) -> Iterator[FieldError]:
    """KCP-13, KCP-14."""
    configuration: Json = at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}
    days, authority = configuration.get("certificateValidityPeriodDays"), configuration.get("caCertificateValidityPeriodDays")
    if not days:
        return
    if days > (authority or DEFAULT_CA_DAYS):
        most = f"caCertificateValidityPeriodDays ({authority})"
        most = most if authority else f"the default value of caCertificateValidityPeriodDays ({DEFAULT_CA_DAYS})"
        where = f"{field}.kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays"
        yield invalid(where, days, f"must be less than or equal to {most}")
    before = at(spec, "rollout", "before", "certificatesExpiryDays")
    if before and before >= days:
        yield invalid(f"{field}.rollout.before.certificatesExpiryDays", before, f"must be less than certificateValidityPeriodDays ({days})")


def _cluster_configuration(configuration: Json, field: str) -> Iterator[FieldError]:
    """KCP-16 to KCP-19."""
    tag = str(at(configuration, "dns", "imageTag") or "")
    if _TAG.fullmatch(tag) is None:
        yield forbidden(f"{field}.dns.imageTag", f"tag {tag} is invalid")
    if tag:
        try:
            _tag_version(tag)
        except ValueError as error:
            # the path is reported like this, without what is above it
            yield invalid("dns.imageTag", tag, f"failed to parse CoreDNS version: {error}")
    local: Any = at(configuration, "etcd", "local")
    etcd_tag = str((local or {}).get("imageTag") or "")
    if _TAG.fullmatch(etcd_tag) is None:
        yield forbidden(f"{field}.etcd.local.imageTag", f"tag {etcd_tag} is invalid")
    if local and _has_external_etcd(configuration):
        yield forbidden(f"{field}.etcd.local", "cannot have both external and local etcd")
