"""The skeleton of a new infrastructure provider in Python: a program, its release, a cluster to try it on, and its test. Pure."""

from __future__ import annotations

from collections.abc import Callable
from string import Template
from typing import Final

from clusterwright.api.contract import pluralize
from clusterwright.api.meta import Json
from clusterwright.api.yamlwriter import dump_all
from clusterwright.providers.deployment import BadRelease
from clusterwright.providers.release import DNS_LABEL

GROUP: Final = "infrastructure.cluster.x-k8s.io"
_PROGRAM: Final = Template('''#!$python
"""The infrastructure provider $name: a $kind gives its Machine a server, which is ordered from the in-memory cloud for now."""

from __future__ import annotations

from clusterwright.api.core import Machine
from clusterwright.api.infrastructure import DevMachine
from clusterwright.provider import InfraMachine, InfraMachines, InfraMachineSpec, Server, order, run


class ${kind}Spec(InfraMachineSpec):
    """Your own fields. Add them to the definition in release.yaml, too."""

    size: str = ""


class $kind(InfraMachine):
    """It has the fields of the contract: spec.providerID, status.initialization.provisioned, status.addresses."""

    api_version: str = "$group/v1alpha1"
    kind: str = "$kind"
    spec: ${kind}Spec = ${kind}Spec()


class Servers(InfraMachines[$kind]):
    """How a $kind gets its server. Both steps are run whenever something has changed, and do what is still to be done."""

    kind = $kind
    finalizer = "$lower.$group"
    makes = (DevMachine,)  # remove this line when servers come from elsewhere: then there is nothing to watch

    async def provision(self, obj: $kind, machine: Machine) -> Server | None:
        """Make the server, once, under a name that follows from the object's. None: it is being made."""
        server = await self.client.find(DevMachine, obj.key)
        if server is None:
            await self.client.create(order(obj, machine))
            return None
        if server.status.initialization is None:
            return None
        return Server(provider_id=server.spec.provider_id, addresses=server.status.addresses)

    async def remove(self, obj: $kind, machine: Machine | None) -> bool:
        """Remove the server. True: it is gone."""
        server = await self.client.find(DevMachine, obj.key)
        if server is not None and server.metadata.deletion_timestamp is None:
            await self.client.delete(DevMachine, obj.key)
        return server is None


if __name__ == "__main__":
    run(Servers)
''')
_TEST: Final = Template('''"""The provider keeps every rule of the contract. Run it with pytest: it needs nothing else, and is fast."""

from __future__ import annotations

from pathlib import Path

import yaml

from clusterwright import provider
from clusterwright.conformance import Options, Pace, as_text
from clusterwright.testing import judge, run_virtual, virtual_plane
from provider import Servers

FOLDER = Path(__file__).parent
PACE = Pace(settle=8.0, steady=60.0)


def test_the_contract_is_kept() -> None:
    release = list(yaml.safe_load_all((FOLDER / "release.yaml").read_text()))
    definitions = [obj for obj in release if obj["kind"] == "CustomResourceDefinition"]
    template = yaml.safe_load((FOLDER / "template.yaml").read_text())

    async def main() -> None:
        async with virtual_plane(crds=definitions, setup=lambda manager: provider.add(manager, Servers)) as plane:
            judgement = await judge(plane, "InfraMachine", template, Options(pace=PACE))
            assert judgement.conforms, as_text([judgement])

    run_virtual(main())
''')
_README: Final = Template("""# $name

An infrastructure provider for Cluster API, in Python.

    pytest                                                                    # the contract, in virtual time
    clusterwright up                                                          # a plane, in another terminal
    clusterwright provider add release.yaml --binary ./provider.py
    kubectl apply -f cluster.yaml                                             # with KUBECONFIG=.clusterwright/kubeconfig
    clusterwright describe $short
    clusterwright conformance --infrastructure-machine-template template.yaml

Next: replace the calls in `provision` and `remove` of `provider.py` with those of your servers.
""")


def files(name: str, python: str, cluster: Callable[[str], list[Json]]) -> dict[str, tuple[str, bool]]:
    """Return the files of a skeleton, each with whether it is executable; raises BadRelease for a bad name.

    `python`: the interpreter of the program; `cluster`: the objects of a sample cluster of a name, with workers `NAME-md-0`.
    """
    short = name.removeprefix("infrastructure-")
    if not DNS_LABEL.fullmatch(short) or not short[0].isalpha() or len(short) > 30:
        raise BadRelease(
            f"the name {name!r} cannot be used: at most 30 lower-case letters, digits and dashes, a letter first, are expected"
        )
    kind = _kind(short)
    words = {"name": f"infrastructure-{short}", "short": short, "kind": kind, "lower": kind.lower(), "group": GROUP, "python": python}
    return {
        "provider.py": (_PROGRAM.substitute(words), True),
        "release.yaml": (dump_all(_release(short, kind)), False),
        "template.yaml": (dump_all([_template(short)]), False),
        "cluster.yaml": (dump_all(workers(short, cluster(short))), False),
        "test_provider.py": (_TEST.substitute(words), False),
        "README.md": (_README.substitute(words), False),
    }


def _release(short: str, kind: str) -> list[Json]:
    name = f"infrastructure-{short}"
    namespace, labels = f"{short}-system", {"cluster.x-k8s.io/provider": name}
    rbac = "rbac.authorization.k8s.io"
    own = [pluralize(kind.lower()), pluralize(f"{kind.lower()}template")]
    rules = [
        {"apiGroups": [GROUP], "resources": own, "verbs": ["get", "list", "watch", "update", "patch"]},
        {
            "apiGroups": [GROUP],
            "resources": [f"{one}/{part}" for one in own for part in ("status", "finalizers")],
            "verbs": ["get", "update", "patch"],
        },
        {"apiGroups": [GROUP], "resources": ["devmachines"], "verbs": ["get", "list", "watch", "create", "delete"]},
        {
            "apiGroups": ["cluster.x-k8s.io"],
            "resources": ["clusters", "machines", "machinepools", "machines/finalizers"],
            "verbs": ["get", "list", "watch", "update"],
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["get", "list", "watch", "create", "patch", "update"]},
    ]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        _definition(kind, labels, _object({"spec": _SPEC, "status": _STATUS})),
        _definition(f"{kind}Template", labels, _object({"spec": _object({"template": _object({"metadata": _METADATA, "spec": _SPEC})})})),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "manager", "namespace": namespace, "labels": labels}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": f"{namespace}-manager", "labels": labels}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{namespace}-manager", "labels": labels},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": f"{namespace}-manager"},
            "subjects": [{"kind": "ServiceAccount", "name": "manager", "namespace": namespace}],
        },
    ]


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties}


_TEXT: Final[Json] = {"type": "string"}
_TEXTS: Final[Json] = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Final[Json] = _object({"labels": _TEXTS, "annotations": _TEXTS})
_SPEC: Final[Json] = _object({"providerID": {**_TEXT, "maxLength": 512}, "failureDomain": {**_TEXT, "maxLength": 256}, "size": _TEXT})
_CONDITION: Final[Json] = {
    **_object(
        {
            **dict.fromkeys(("type", "status", "reason", "message"), _TEXT),
            "observedGeneration": {"type": "integer", "format": "int64"},
            "lastTransitionTime": {**_TEXT, "format": "date-time"},
        }
    ),
    "required": ["type", "status", "reason", "lastTransitionTime"],
}
_ADDRESS: Final[Json] = {**_object({"type": _TEXT, "address": _TEXT}), "required": ["type", "address"]}
_STATUS: Final[Json] = _object(
    {
        "initialization": _object({"provisioned": {"type": "boolean"}}),
        "addresses": {"type": "array", "items": _ADDRESS},
        "failureDomain": _TEXT,
        "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": {"type": "array", "items": _CONDITION, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    }
)


def _definition(kind: str, labels: Json, schema: Json) -> Json:
    plural = pluralize(kind.lower())
    contract = {"cluster.x-k8s.io/v1beta2": "v1alpha1", "clusterctl.cluster.x-k8s.io": ""}
    version: Json = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if "status" in schema["properties"]:
        version["subresources"] = {"status": {}}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower(), "categories": ["cluster-api"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": {**labels, **contract}},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def workers(short: str, objects: list[Json]) -> list[Json]:
    """Return the objects of a sample cluster with workers of the provider instead of simulated ones."""
    kind, made = _kind(short), []
    reference = {"apiGroup": GROUP, "kind": f"{kind}Template", "name": f"{short}-md-0"}
    for obj in objects:
        is_of_workers = obj["metadata"]["name"].startswith(f"{short}-md-0")
        if obj["kind"] == "DevMachineTemplate" and is_of_workers:
            made.append({**_template(short), "metadata": {"name": f"{short}-md-0", "namespace": "default"}})
            continue
        if obj["kind"] == "MachineDeployment":
            obj["spec"]["template"]["spec"]["infrastructureRef"] = reference
        made.append(obj)
    return made


def _kind(short: str) -> str:
    return "".join(part.capitalize() for part in short.split("-") if part) + "Machine"


def _template(short: str) -> Json:
    spec = {"template": {"spec": {"size": "small"}}}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": f"{_kind(short)}Template", "metadata": {"name": short}, "spec": spec}
