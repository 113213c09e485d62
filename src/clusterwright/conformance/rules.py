"""Every rule of the contract as a row: its id, what is checked, and what to do when it is broken.

The numbers are the places of the rules in the tables of the upstream contract; `PB` is behaviour that holds for every provider.
"""

from __future__ import annotations

from typing import Final

from clusterwright.conformance import behaviour, clusters, configs, definitions, machines, objects, planes, pools
from clusterwright.conformance.evidence import Check, Role, Rule

_MULTI_TENANCY: Final = definitions.invisible("credentials per cluster are a matter of each provider's own fields")


def _rules(prefix: str, role: Role, rows: tuple[tuple[str, bool, str, str, Check], ...]) -> tuple[Rule, ...]:
    return tuple(
        Rule(f"{prefix}-{number}", title, (role,), mandatory, checked, fix, check)
        for number, (title, mandatory, checked, fix, check) in enumerate(rows, 1)
    )


_Row = tuple[str, bool, str, str, Check]


def _resources(kind: str) -> tuple[_Row, ...]:
    # fmt: off
    return (
        ("scope", True, f"{kind} and its template are namespaced",
         "set spec.scope of the definition to Namespaced", definitions.scope),
        ("TypeMeta and ObjectMeta", True, "objects have the standard metadata; names of 63 characters are accepted",
         "remove the restriction of metadata from the schema", definitions.metadata),
        ("APIVersion", True, "contract labels name served versions; a ClusterRole gives core controllers rights in a group of your own",
         "label both definitions, for example cluster.x-k8s.io/v1beta2: v1; label a ClusterRole cluster.x-k8s.io/aggregate-to-manager=true",
         definitions.versions),
        ("resource definition", True, "the definition has the computed name, a regular list kind and a status subresource",
         "name it PLURAL.GROUP with the regular English plural of the kind; add subresources: {status: {}}", definitions.resource),
    )
    # fmt: on


def _conditions(kind: str) -> _Row:
    return (
        "conditions",
        False,
        f"status.conditions is a list of unique types with status True, False or Unknown; Ready is not True before {kind} is provisioned",
        "write conditions as Kubernetes defines them, and set Ready with or after the field that says provisioned",
        objects.conditions,
    )


_FAILURES: Final[_Row] = (
    "terminal failures",
    False,
    "status.failureReason and status.failureMessage are texts, and absent while the object works",
    "surface failures as conditions; remove failureReason from objects that work",
    objects.terminal_failures,
)
_CLUSTERCTL: Final[_Row] = (
    "clusterctl support",
    False,
    "definitions have the label cluster.x-k8s.io/provider",
    "label all definitions, for example cluster.x-k8s.io/provider: infrastructure-NAME",
    definitions.clusterctl,
)
_PAUSING: Final[_Row] = (
    "pausing",
    False,
    "nothing is made or removed while the object has cluster.x-k8s.io/paused or its Cluster has spec.paused; afterwards it continues",
    "return early from every pass, also from deletion, while either holds; watch the Cluster to continue",
    objects.pausing,
)
_TENANCY: Final[_Row] = ("multi tenancy", False, "nothing: the API does not show it", "see the upstream page", _MULTI_TENANCY)

# fmt: off
INFRA_MACHINE: Final = _rules("IM", "InfraMachine", (
    *_resources("the InfraMachine"),
    ("provider ID", True, "spec.providerID is set no later than the flag of IM-8, has 1 to 512 characters, is unique and never changes",
     "write spec.providerID, equal to that of the Node, before or together with status; derive it from the machine, not from the pass",
     machines.provider_id),
    ("failure domain", False, "the machine is where its Machine's spec.failureDomain says",
     "place the machine in machine.spec.failureDomain, and report it in status.failureDomain", machines.failure_domain),
    ("addresses", False, "status.addresses have a known type and a value",
     "use Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS; leave out what is not known", machines.addresses),
    ("initialization completed", True, "status.initialization.provisioned (v1beta1: status.ready) becomes true and stays true",
     "set it once when the machine exists; report later trouble in conditions", objects.initialization),
    _conditions("the InfraMachine"),
    _FAILURES,
    ("in-place changes", False, "labels and annotations that are added to a provisioned object are accepted and stay",
     "accept changes of metadata, and patch only fields of your own", objects.in_place),
    ("template definition", True, "there is a kind <InfraMachine>Template with spec.template.metadata and spec.template.spec",
     "add the definition of the template", definitions.template),
    ("autoscaling from zero", False, "status.capacity and status.nodeInfo of the template are objects, if they exist",
     "declare status.capacity as a map of quantities and status.nodeInfo as an object", definitions.autoscaling),
    ("dry run of the template", False, "a server-side dry run of a changed template with topology.cluster.x-k8s.io/dry-run is accepted",
     "let the immutability check pass when the request is a dry run and the object has the annotation", objects.dry_run),
    _TENANCY,
    _CLUSTERCTL,
    _PAUSING,
))
INFRA_MACHINE_POOL: Final = _rules("MP", "InfraMachinePool", (
    *_resources("the InfraMachinePool"),
    ("instances", False, "status.instances is a list of objects, and shows no provider ID that the list of MP-8 does not have",
     "write one entry for each machine in status.instances, from the same answer as spec.providerIDList", pools.instances),
    ("MachinePoolMachines", False, "a pool with status.infrastructureMachineKind has an object of that kind for each machine",
     "create an InfraMachine for each machine, with the labels cluster.x-k8s.io/cluster-name and cluster.x-k8s.io/pool-name",
     pools.machines),
    ("provider ID", False, "spec.providerID has 1 to 512 characters and never changes",
     "write the ID of the group of machines itself, once", pools.provider_id),
    ("provider ID list", True, "spec.providerIDList has a unique entry for each machine, and follows the MachinePool's size",
     "write spec.providerIDList, equal to those of the Nodes, whenever machines come or go", pools.provider_id_list),
    ("initialization completed", True, "status.initialization.provisioned (v1beta1: status.ready) becomes true and stays true",
     "set it once when the group of machines exists; report later trouble in conditions", objects.initialization),
    _PAUSING,
    _conditions("the InfraMachinePool"),
    ("replicas", True, "status.replicas is the number of machines, and follows the size of the MachinePool",
     "write status.replicas whenever machines come or go", pools.replicas),
    _FAILURES,
    ("template definition", False, "if there is a kind <InfraMachinePool>Template, it has spec.template.metadata and spec.template.spec",
     "correct the definition of the template; without one, ClusterClasses cannot use the pools", definitions.template),
    ("dry run of the template", False, "a server-side dry run of a changed template with topology.cluster.x-k8s.io/dry-run is accepted",
     "let the immutability check pass when the request is a dry run and the object has the annotation", objects.dry_run),
    _TENANCY,
    _CLUSTERCTL,
))
INFRA_CLUSTER: Final = _rules("IC", "InfraCluster", (
    *_resources("the InfraCluster"),
    ("control plane endpoint", False, "spec.controlPlaneEndpoint has host and port, comes no later than the flag of IC-7 and never changes",
     "write spec.controlPlaneEndpoint before or together with status, and never again", clusters.endpoint),
    ("failure domains", False, "status.failureDomains is a list (v1beta1: a map) with unique names",
     "write a list of {name, controlPlane, attributes} under v1beta2, a map by name under v1beta1", clusters.failure_domains),
    ("initialization completed", True, "status.initialization.provisioned (v1beta1: status.ready) becomes true and stays true",
     "set it once when Machines may be made; report later trouble in conditions", objects.initialization),
    _conditions("the InfraCluster"),
    _FAILURES,
    ("template definition", False, "if there is a kind <InfraCluster>Template, it has spec.template.metadata and spec.template.spec",
     "correct the definition of the template; without one, ClusterClasses cannot use the provider", definitions.template),
    ("externally managed infrastructure", False, "an object with the annotation cluster.x-k8s.io/managed-by is not touched",
     "return from every pass over such objects before anything is written", clusters.externally_managed),
    _TENANCY,
    _CLUSTERCTL,
    _PAUSING,
))
BOOTSTRAP_CONFIG: Final = _rules("BC", "BootstrapConfig", (
    *_resources("the BootstrapConfig"),
    ("data secret", True, "status.dataSecretName names a Secret with the key value, the cluster's label and a controller owner reference",
     "make the Secret under a name that follows from the object's, then set status.dataSecretName together with the flag of BC-6",
     configs.data_secret),
    ("initialization completed", True, "status.initialization.dataSecretCreated (v1beta1: status.ready) becomes true and stays true",
     "set it once when the Secret exists; report later trouble in conditions", objects.initialization),
    _conditions("the BootstrapConfig"),
    _FAILURES,
    ("in-place changes", False, "labels and annotations that are added later are accepted and stay",
     "accept changes of metadata, and patch only fields of your own", objects.in_place),
    ("template definition", True, "there is a kind <BootstrapConfig>Template with spec.template.metadata and spec.template.spec",
     "add the definition of the template", definitions.template),
    ("dry run of the template", False, "a server-side dry run of a changed template with topology.cluster.x-k8s.io/dry-run is accepted",
     "let the immutability check pass when the request is a dry run and the object has the annotation", objects.dry_run),
    ("sentinel file", False, "the data mention bootstrap-success.complete",
     "create /run/cluster-api/bootstrap-success.complete as the last step of the boot", configs.sentinel),
    ("taint at creation", False, "nothing: only a worker that boots shows it",
     "register workers with the taint node.cluster.x-k8s.io/uninitialized",
     definitions.invisible("only a worker that boots shows its taints")),
    ("multiple instances", False, "nothing: the API does not show it", "support --namespace and --watch-filter",
     definitions.invisible("the flags of the provider's process are not part of the API")),
    _CLUSTERCTL,
    _PAUSING,
))

CONTROL_PLANE: Final = _rules("CP", "ControlPlane", (
    *_resources("the ControlPlane"),
    ("endpoint", False, "spec.controlPlaneEndpoint has host and port, comes no later than the flag of CP-9 and never changes",
     "write spec.controlPlaneEndpoint before or together with status, and never again", clusters.endpoint),
    ("replicas", False, "an object with spec.replicas has status.selector and all counters of the contract version",
     "report replicas, readyReplicas, availableReplicas, upToDateReplicas (v1beta1: updatedReplicas, unavailableReplicas) and selector",
     planes.replicas),
    ("version", False, "an object with spec.version has status.versions, the oldest first, or status.version",
     "report the versions of the API servers that run", planes.version),
    ("machines", False, "nothing: the run does not look at Machines of the control plane",
     "label Machines cluster.x-k8s.io/control-plane", definitions.invisible("the run does not look at Machines of the control plane")),
    ("initialization completed", True, "status.initialization.controlPlaneInitialized (v1beta1: status.initialized) becomes and stays true",
     "set it once when the API server has answered; report later trouble in conditions", objects.initialization),
    ("in-place updates", False, "nothing: they need a runtime extension", "see the upstream proposal",
     definitions.invisible("in-place updates need a runtime extension")),
    ("conditions", False, "status.conditions is a list of unique types with status True, False or Unknown",
     "write conditions as Kubernetes defines them", objects.conditions),
    _FAILURES,
    ("template definition", False, "if there is a kind <ControlPlane>Template, it has spec.template.metadata and spec.template.spec",
     "correct the definition of the template; without one, ClusterClasses cannot use the provider", definitions.template),
    ("kubeconfig", True, "there is a Secret <cluster>-kubeconfig with the cluster's label and a kubeconfig under the key value",
     "make the Secret before the object is initialized, and renew its client certificate in time", planes.kubeconfig),
    ("certificates", False, "nothing: they belong to the provider", "make Secrets <cluster>-ca, -etcd, -proxy and -sa, or none",
     definitions.invisible("certificates belong to the provider")),
    ("machine placement", False, "nothing: a run makes one machine", "spread Machines over failure domains with controlPlane: true",
     definitions.invisible("a run makes one machine")),
    ("metadata propagation", False, "nothing: the run does not look at Machines of the control plane",
     "propagate spec.machineTemplate.metadata",
     definitions.invisible("the run does not look at Machines of the control plane")),
    ("minReadySeconds and UpToDate", False, "nothing: the run does not look at Machines of the control plane",
     "keep the condition UpToDate of Machines current", definitions.invisible("the run does not look at Machines of the control plane")),
    ("multiple instances", False, "nothing: the API does not show it", "support --namespace and --watch-filter",
     definitions.invisible("the flags of the provider's process are not part of the API")),
    _CLUSTERCTL,
    _PAUSING,
))

_INFRA: Final[tuple[Role, ...]] = ("InfraCluster", "InfraMachine", "InfraMachinePool")
_ALL: Final[tuple[Role, ...]] = (*_INFRA, "BootstrapConfig", "ControlPlane")
BEHAVIOUR: Final = (
    Rule("PB-1", "waits for the owner", _ALL, True, "an object without owner reference is not provisioned",
         "return until core controllers have set the owner reference", behaviour.waits_for_owner),
    Rule("PB-2", "waits for bootstrap data", ("InfraMachine",), True, "nothing is made before spec.bootstrap.dataSecretName of the Machine",
         "return until the Machine has it; watch Machines to continue", behaviour.waits_for_data),
    Rule("PB-3", "finalizer first", _INFRA, True, "a finalizer of the provider is there before anything is reported as made",
         "add the finalizer in a write of its own before the first call that makes something", behaviour.finalizer_first),
    Rule("PB-4", "goes away", _ALL, True, "deleted objects go in time",
         "remove your finalizer when everything is gone, also when owner or Cluster are gone already", behaviour.goes_away),
    Rule("PB-5", "leaves others' metadata", _ALL, True, "labels, annotations, finalizers and owner references of others stay",
         "write patches of your own fields instead of whole objects", behaviour.leaves_metadata),
    Rule("PB-6", "stays quiet", _ALL, True, "nothing is written while nothing changes",
         "compare before writing; keep clocks and counters out of status", behaviour.stays_quiet),
    Rule("PB-7", "survives restarts", _ALL, True, "a restart neither changes what was made nor stops what is being made",
         "find what was made by a name that follows from the object's; keep no state in the process", behaviour.restarts),
    Rule("PB-8", "recovers from refused writes", _ALL, True, "writes of status that are refused are tried again with increasing pauses",
         "return the error, so that the object is queued again with back-off", behaviour.recovers),
    Rule("PB-9", "keeps secrets", ("InfraMachine", "InfraMachinePool"), True,
         "bootstrap data appears in no object of the provider and in no Event",
         "leave data out of messages, also of wrapped errors", behaviour.keeps_secrets),
    Rule("PB-10", "honest observedGeneration", _ALL, False, "observedGeneration is never ahead of metadata.generation, and reaches it",
         "set it to the generation of the object that the pass has read", behaviour.observes_generations),
    Rule("PB-11", "frees unowned objects", _ALL, True, "an object that never had an owner can be deleted",
         "add no finalizer before the owner is there, or remove it also without owner", behaviour.frees_unowned),
)
# fmt: on

RULES: Final[tuple[Rule, ...]] = (*INFRA_CLUSTER, *INFRA_MACHINE, *INFRA_MACHINE_POOL, *BOOTSTRAP_CONFIG, *CONTROL_PLANE, *BEHAVIOUR)
