"""Derive src/clusterwright/apiserver/schema/types.json from the Go sources of Kubernetes' API types.

    go mod download -json k8s.io/api@v0.36.1 k8s.io/apimachinery@v0.36.1 k8s.io/apiextensions-apiserver@v0.36.1 \
        k8s.io/kube-aggregator@v0.36.1     (each answer names the folder of a module as Dir)
    python tools/types_from_go.py API APIMACHINERY APIEXTENSIONS AGGREGATOR > src/clusterwright/apiserver/schema/types.json

Taken over are facts only: names of fields, their types, protobuf numbers, and what the tags and markers (`+listType`, `+listMapKey`,
`+default`, `+optional`, ...) say. What the letters mean is told in `schema/gotypes.py`. Every type that a kind of ROOTS reaches is
written, one field a line, in order of names.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOTS = {
    "admissionregistration.v1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "apiextensions.v1": "CustomResourceDefinition JSONSchemaProps",
    "apiregistration.v1": "APIService",
    "apps.v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.v1": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.v1": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "autoscaling.v1": "HorizontalPodAutoscaler Scale",
    "autoscaling.v2": "HorizontalPodAutoscaler",
    "batch.v1": "CronJob Job",
    "certificates.v1": "CertificateSigningRequest",
    "coordination.v1": "Lease",
    "core.v1": "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod "
    "PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
    "discovery.v1": "EndpointSlice",
    "events.v1": "Event",
    "flowcontrol.v1": "FlowSchema PriorityLevelConfiguration",
    "meta.v1": "APIGroup APIGroupList APIResourceList APIVersions CreateOptions DeleteOptions ListOptions PartialObjectMetadata "
    "PartialObjectMetadataList PatchOptions Status UpdateOptions",
    "networking.v1": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "node.v1": "RuntimeClass",
    "policy.v1": "Eviction PodDisruptionBudget",
    "rbac.v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.v1": "PriorityClass",
    "storage.v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
}
WELL_KNOWN = {
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "intstr",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "raw",
    "k8s.io/apimachinery/pkg/types.UID": "string",
    "k8s.io/apimachinery/pkg/types.NodeName": "string",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "any",
    "apiextensions.v1.JSON": "any",
    "apiextensions.v1.JSONSchemaProps": "schema",
    "apiextensions.v1.JSONSchemaPropsOrArray": "schemas",
    "apiextensions.v1.JSONSchemaPropsOrBool": "schemaorbool",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}
SCALARS = {"string", "bool", "int32", "int64", "float64", "byte"}
_TYPE = re.compile(r"^type (\w+) (.*)$")
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\S+)\s+`(.*)`")
_IMPORT = re.compile(r'^\t(?:(\w+) )?"([^"]+)"')


class Package:
    """The types of one Go package: structs with their fields, and names for other types."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.structs: dict[str, dict[str, Any]] = {}
        self.aliases: dict[str, str] = {}
        self.messages: set[str] = set()  # lists that protobuf wraps, so that an empty one differs from none
        self.imports: dict[str, str] = {}
        for path in sorted(folder.glob("*.go")):
            if not path.name.endswith("_test.go") and "generated" not in path.name:
                self._read(path.read_text().split("\n"))

    def _read(self, lines: list[str]) -> None:
        comments: list[str] = []
        current: dict[str, Any] | None = None
        for line in lines:
            if line.strip().startswith("//"):
                comments.append(line.strip()[2:].strip())
                continue
            found = _TYPE.match(line)
            if found and current is None:
                name, rest = found.groups()
                if rest.startswith("struct"):
                    current = {"fields": [], "atomic": "+structType=atomic" in comments}
                    self.structs[name] = current
                    if rest.endswith("}"):
                        current = None
                else:
                    self.aliases[name] = rest.split("//")[0].strip().removeprefix("= ")
                    if "+protobuf.nullable=true" in comments:
                        self.messages.add(name)
            elif line.startswith("}"):
                current = None
            elif current is not None and (field := _FIELD.match(line)):
                current["fields"].append((*field.groups(), [c for c in comments if c.startswith("+")]))
            elif imported := _IMPORT.match(line):
                alias, path = imported.groups()
                self.imports[alias or path.rsplit("/", 1)[-1]] = path
            if line.strip() or current is None:
                comments = []


class Sources:
    """All packages that are asked for, read once."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        self._packages: dict[str, Package] = {}

    def package(self, name: str) -> Package:
        """Return a package such as `core.v1`."""
        if name not in self._packages:
            group, version = name.split(".")
            root = {"meta": "apimachinery", "apiextensions": "apiextensions", "apiregistration": "aggregator"}.get(group, "api")
            inner = {"apimachinery": "pkg/apis/meta", "apiextensions": "pkg/apis/apiextensions", "aggregator": "pkg/apis/apiregistration"}
            self._packages[name] = Package(name, self._folders[root] / inner.get(root, group) / version)
        return self._packages[name]

    def type(self, package: Package, text: str) -> str:
        """Return a Go type in the words of the data file."""
        for prefix, written in (("*", "*"), ("[]", "[]")):
            if text.startswith(prefix):
                inner = self.type(package, text[len(prefix) :])
                return "bytes" if (prefix, inner) == ("[]", "byte") else written + inner
        if text.startswith("map["):
            return "{}" + self.type(package, text.partition("]")[2])
        if text in SCALARS:
            return text
        if text in ("int", "uint8"):
            return "int64" if text == "int" else "byte"
        alias, _, name = text.rpartition(".")
        if alias:
            path = package.imports[alias]
            known = WELL_KNOWN.get(f"{path}.{name}")
            if known:
                return known
            package = self.package(_short(path))
        qualified = f"{package.name}.{name}"
        if qualified in WELL_KNOWN:
            return WELL_KNOWN[qualified]
        return self.type(package, package.aliases[name]) if name in package.aliases else qualified

    def struct(self, qualified: str) -> dict[str, Any]:
        """One type, as it is written."""
        package_name, _, name = qualified.rpartition(".")
        package = self.package(package_name)
        source = package.structs[name]
        fields: dict[str, Any] = {}
        for position, (go_name, go_type, tags, markers) in enumerate(source["fields"]):
            field = self._field(package, go_type, _tags(tags), markers)
            json_name, *flags = _tags(tags)["json"].split(",")
            if json_name == "-" or (go_name is None and go_type.endswith("TypeMeta")):
                continue
            if go_name is None and not json_name:
                fields[f"~{position}"] = {"inline": 1, **{k: v for k, v in field.items() if k in "nt"}}
                continue
            value_type = field["t"]
            is_struct = value_type[0] not in "*[{" and ("." in value_type or value_type in ("time", "microtime", "duration", "raw"))
            if "omitempty" not in flags or (is_struct and "omitzero" not in flags):  # Go leaves no struct out for being empty
                field["a"] = 1
            if "+required" in markers or ("omitempty" not in flags and "+optional" not in markers):
                field["r"] = 1
            fields[json_name] = field
        made: dict[str, Any] = {"f": fields}
        if source["atomic"]:
            made["atomic"] = 1
        return made

    def _field(self, package: Package, go_type: str, tags: dict[str, str], markers: list[str]) -> dict[str, Any]:
        field: dict[str, Any] = {"t": self.type(package, go_type)}
        if tags.get("protobuf", "-") != "-":
            field["n"] = int(tags["protobuf"].split(",")[1])
            if go_type in package.messages:
                field["message"] = 1
        if "patchStrategy" in tags:
            field["ps"] = tags["patchStrategy"]
        if "patchMergeKey" in tags:
            field["pk"] = tags["patchMergeKey"]
        for marker in markers:
            key, _, value = marker.partition("=")
            if key == "+listType":
                field["l"] = value
            elif key == "+listMapKey":
                field.setdefault("k", []).append(value)
            elif marker == "+mapType=atomic" or (marker == "+structType=atomic" and "." in field["t"]):
                field["atomic"] = 1
            elif key == "+default" and not value.startswith("ref("):
                field["d"] = json.loads(value)
        return field


def _tags(text: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+):"([^"]*)"', text))


def _short(path: str) -> str:
    return ".".join(path.split("/")[-2:])


def reachable(sources: Sources) -> dict[str, Any]:
    """Return all types that the kinds need."""
    waiting = [f"{package}.{kind}" for package, kinds in ROOTS.items() for kind in kinds.split()]
    made: dict[str, Any] = {}
    while waiting:
        name = waiting.pop()
        if name in made:
            continue
        made[name] = sources.struct(name)
        waiting += [t for f in made[name]["f"].values() if "." in (t := f["t"].lstrip("*[]{}"))]
    return made


def written(types: dict[str, Any]) -> str:
    """Return one field a line."""
    blocks = []
    for name, made in sorted(types.items()):
        head = '"atomic": 1, "f": {' if made.get("atomic") else '"f": {'
        fields = [f"  {json.dumps(key)}: {json.dumps(field, sort_keys=True)}" for key, field in sorted(made["f"].items())]
        blocks.append(f"{json.dumps(name)}: {{{head}\n" + ",\n".join(fields) + "\n}}" if fields else f"{json.dumps(name)}: {{{head}}}}}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    modules = dict(zip(("api", "apimachinery", "apiextensions", "aggregator"), map(Path, sys.argv[1:5]), strict=True))
    sys.stdout.write(written(reachable(Sources(modules))))
