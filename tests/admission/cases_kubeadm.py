"""Cases of the kubeadm kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.admission_cases import Case, Json, case, merge, without
from admission.cases_kinds import _metadata, _naming, _taints

SOURCE = {"secret": {"name": "n", "key": "k"}}
DISK = {"device": "/dev/a"}
GATE = "KubeadmBootstrapFormatIgnition"
IGNITION = {"format": "ignition"}


def _spec(own: str, kind: str, where: str, *, control_plane: bool = False) -> Iterator[Case]:
    """KS-1 to KS-19, at a place."""

    def put(**spec: Any) -> Json:
        out: Json = spec
        for step in reversed(where.split(".")):
            out = {step: out}
        return out

    def rule(ids: str, spec: Json, field: str, keeps: Json, **more: Any) -> Iterator[Case]:
        yield from case(ids, kind, put(**spec), f"{where}.{field}", put(**keeps), **more)

    def with_ignition(**spec: Any) -> Json:
        return IGNITION | spec

    file, named = {"path": "/a", "content": "x"}, {"name": "u"}
    yield from rule(f"{own} KS-1", {"files": [file | {"contentFrom": SOURCE}]}, "files[0]", {"files": [file]})
    for n, key in ((2, "name"), (3, "key")):
        source = {"secret": {k: v for k, v in SOURCE["secret"].items() if k != key}}
        yield from rule(
            f"KS-{n}",
            {"files": [{"path": "/a", "contentFrom": source}]},
            f"files[0].contentFrom.secret.{key}",
            {"files": [{"path": "/a", "contentFrom": SOURCE}]},
        )
        yield from rule(
            f"KS-{n + 4}",
            {"users": [named | {"passwdFrom": source}]},
            f"users[0].passwdFrom.secret.{key}",
            {"users": [named | {"passwdFrom": SOURCE}]},
        )
    yield from rule("KS-4", {"files": [file, file]}, "files[1].path", {"files": [file, file | {"path": "/b"}]})
    yield from rule("KS-5", {"users": [named | {"passwd": "x", "passwdFrom": SOURCE}]}, "users[0]", {"users": [named | {"passwd": "x"}]})
    yield from rule("KS-8", IGNITION, "format", IGNITION, gates=without(GATE))
    ignition = {"ignition": {"containerLinuxConfig": {"strict": True}}}
    yield from rule("KS-9", ignition, "ignition", IGNITION | ignition, gates=without(GATE))
    yield from rule("KS-10", ignition, "format", IGNITION | ignition)
    yield from rule(
        "KS-11", with_ignition(users=[named | {"inactive": True}]), "users[0].inactive", {"users": [named | {"inactive": True}]}
    )
    yield from rule(
        "KS-12",
        with_ignition(files=[file | {"encoding": "gzip"}]),
        "files[0].encoding",
        with_ignition(files=[file | {"encoding": "base64"}]),
    )
    yield from rule("KS-13", with_ignition(bootCommands=["x"]), "bootCommands", {"bootCommands": ["x"]})
    yield from rule(
        "KS-14",
        with_ignition(diskSetup={"partitions": [DISK | {"layout": True, "tableType": "mbr"}]}),
        "diskSetup.partitions[0].tableType",
        with_ignition(diskSetup={"partitions": [DISK | {"layout": True, "tableType": "gpt"}]}),
    )
    for n, key in ((15, "replaceFS"), (16, "partition")):
        setup = {"diskSetup": {"filesystems": [DISK | {"filesystem": "ext4", key: "x"}]}}
        yield from rule(f"KS-{n}", IGNITION | setup, f"diskSetup.filesystems[0].{key}", setup)
    yield from rule(
        "KS-17",
        {"diskSetup": {"partitions": [DISK | {"diskLayout": [{"percentage": 60}, {"percentage": 41}]}]}},
        "diskSetup.partitions[0].diskLayout",
        {"diskSetup": {"partitions": [DISK | {"diskLayout": [{"percentage": 60}, {"percentage": 40}]}]}},
    )
    user = {"authProvider": {"name": "a"}, "exec": {"command": "c"}}
    discovery = "joinConfiguration.discovery.file.kubeconfig.user"
    yield from rule(
        "KS-18",
        {"joinConfiguration": {"discovery": {"file": {"kubeConfig": {"user": user}}}}},
        discovery,
        {"joinConfiguration": {"discovery": {"file": {"kubeConfig": {"user": {"exec": {"command": "c"}}}}}}},
    )
    if control_plane:
        seconds = {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 9}}
        for section in ("initConfiguration", "joinConfiguration"):
            yield from rule("KS-19", {"initConfiguration": seconds}, f"{section}.timeouts.controlPlaneComponentHealthCheckSeconds",
                            {"initConfiguration": seconds, "joinConfiguration": seconds})  # fmt: skip


EXTERNAL = {"external": {"endpoints": ["https://e:2379"], "caFile": "/a", "certFile": "/b", "keyFile": "/c"}}


def _shared(kind: str, where: str, ids: dict[str, str]) -> Iterator[Case]:
    """What holds for a control plane and for a template of it alike."""

    def put(**spec: Any) -> Json:
        out: Json = spec
        for step in reversed(where.split(".")):
            out = {step: out}
        return out

    def configured(**configuration: Any) -> Json:
        return put(kubeadmConfigSpec={"clusterConfiguration": configuration})

    def surge(value: Any, kind: str = "RollingUpdate") -> Json:
        return put(rollout={"strategy": {"type": kind, "rollingUpdate": {"maxSurge": value}}})

    strategy, configuration = f"{where}.rollout.strategy", f"{where}.kubeadmConfigSpec.clusterConfiguration"
    rollout, images = ids["rollout"], ids["images"]
    yield from case(f"{rollout} KCP-10", kind, surge(1, "Other"), f"{strategy}.type", surge(1))
    yield from case("KCP-12", kind, surge(2), f"{strategy}.rollingUpdate.maxSurge", surge("1"))
    yield from case(
        "KCP-13",
        kind,
        configured(certificateValidityPeriodDays=100, caCertificateValidityPeriodDays=99),
        f"{configuration}.certificateValidityPeriodDays",
        configured(certificateValidityPeriodDays=100, caCertificateValidityPeriodDays=100),
    )
    yield from case(
        "KCP-13",
        kind,
        configured(certificateValidityPeriodDays=3651),
        f"{configuration}.certificateValidityPeriodDays",
        configured(certificateValidityPeriodDays=3650),
    )
    early = configured(certificateValidityPeriodDays=30)

    def before(days: int) -> Json:
        return merge(early, put(rollout={"before": {"certificatesExpiryDays": days}}))

    yield from case("KCP-14", kind, before(30), f"{where}.rollout.before.certificatesExpiryDays", before(29))
    yield from _naming(ids["naming"], kind, lambda t: put(machineNaming=t), f"{where}.machineNaming.template", ".kubeadmControlPlane.name")
    yield from _taints(ids["taints"], kind, lambda t: put(machineTemplate={"spec": {"taints": t}}), f"{where}.machineTemplate.spec.taints")
    yield from _metadata(ids["metadata"], kind, lambda m: put(machineTemplate={"metadata": m}), f"{where}.machineTemplate.metadata")
    yield from case(
        f"{images} KCP-16",
        kind,
        configured(dns={"imageTag": "v1.2.3+x"}),
        f"{configuration}.dns.imageTag",
        configured(dns={"imageTag": "v1.2.3_x"}),
    )
    yield from case("KCP-17", kind, configured(dns={"imageTag": "latest"}), "dns.imageTag", configured(dns={"imageTag": "v1.2"}))
    yield from case(
        "KCP-18",
        kind,
        configured(etcd={"local": {"imageTag": "a b"}}),
        f"{configuration}.etcd.local.imageTag",
        configured(etcd={"local": {"imageTag": "3.5.0-0"}}),
    )
    yield from case("KCP-19", kind, configured(etcd=EXTERNAL | {"local": {"dataDir": "/d"}}), f"{configuration}.etcd.local", configured(etcd=EXTERNAL))  # fmt: skip


def _control_plane() -> Iterator[Case]:
    kind, configuration = "KubeadmControlPlane", "spec.kubeadmConfigSpec.clusterConfiguration"

    def spec(**parts: Any) -> Json:
        return {"spec": parts}

    def configured(**parts: Any) -> Json:
        return spec(kubeadmConfigSpec={"clusterConfiguration": parts})

    ids = {"rollout": "KCP-10", "images": "KCP-16", "naming": "KCP-15", "taints": "KCP-7", "metadata": "KCP-8"}
    yield from case("KCP-1", kind, spec(replicas=None), "spec.replicas")
    yield from case("KCP-2", kind, spec(replicas=0), "spec.replicas")
    yield from case(
        "KCP-3", kind, spec(replicas=2), "spec.replicas", spec(replicas=2, kubeadmConfigSpec={"clusterConfiguration": {"etcd": EXTERNAL}})
    )
    for n, key in ((4, "apiGroup"), (5, "kind"), (6, "name")):
        yield from case(
            f"KCP-{n}",
            kind,
            spec(machineTemplate={"spec": {"infrastructureRef": {key: None}}}),
            f"spec.machineTemplate.infrastructure.{key}",
        )
    yield from case("KCP-9", kind, spec(version="v1.34"), "spec.version")
    none = spec(rollout={"strategy": {"rollingUpdate": {"maxSurge": 0}}})
    yield from case("KCP-11", kind, none, "spec.rollout.strategy.rollingUpdate", spec(replicas=3, **none["spec"]))
    yield from _shared(kind, "spec", ids)
    yield from _spec("KCP-21", kind, "spec.kubeadmConfigSpec", control_plane=True)
    yield from case(
        "KCP-20", kind, configured(etcd=EXTERNAL), f"{configuration}.etcd.external", configured(etcd={"local": {"dataDir": "/d"}}), old={}
    )
    yield from case(
        "KCP-22", kind, configured(certificatesDir="/x"), f"{configuration}.certificatesDir", configured(imageRepository="x"), old={}
    )
    yield from case(
        "KCP-22", kind, {}, "spec.kubeadmConfigSpec", configured(dns={"imageTag": "v1.9.3"}), old=configured(dns={"imageTag": "v1.8.6"})
    )
    yield from case("KCP-23", kind, spec(version="x"), "spec.version", spec(version="1.35"), old={})
    yield from case("KCP-24", kind, spec(version="v1.36.0-rc.0"), "spec.version", spec(version="v1.20.0"), old={})
    tags = {"old": configured(dns={"imageTag": "v1.9.3"})}
    yield from case(
        "KCP-25",
        kind,
        configured(dns={"imageTag": "latest"}),
        f"{configuration}.dns.imageTag",
        configured(dns={"imageTag": "v1.9.3_x"}),
        **tags,
    )
    skipped = configured(dns={"imageTag": "v1.8.6"}) | {"metadata": {"annotations": {"controlplane.cluster.x-k8s.io/skip-coredns": ""}}}
    yield from case("KCP-26", kind, configured(dns={"imageTag": "v1.8.6"}), f"{configuration}.dns.imageTag", skipped, **tags)
    yield from case(
        "KCP-26",
        kind,
        configured(dns={"imageTag": "v1.99.0"}),
        f"{configuration}.dns.imageTag",
        configured(dns={"imageTag": "v1.12.0"}),
        **tags,
    )


def _scale() -> Iterator[Case]:
    external = {"spec": {"kubeadmConfigSpec": {"clusterConfiguration": {"etcd": EXTERNAL}}}}
    stacked: Json = {"spec": {}}
    yield from case("SC-1", "Scale", {"spec": {"replicas": 0}}, "spec.replicas", facts=stacked, old={})
    yield from case("SC-2", "Scale", {"spec": {"replicas": 2}}, "spec.replicas", facts=stacked, old={})
    yield from case(
        "SC-2", "Scale", {"spec": {"replicas": 2}}, "spec.replicas", {"spec": {"replicas": 2}}, facts=stacked, keeps_facts=external, old={}
    )


def _template() -> Iterator[Case]:
    kind, where = "KubeadmControlPlaneTemplate", "spec.template.spec"
    ids = {"rollout": "KCT-2", "images": "KCT-6", "naming": "KCT-3", "taints": "KCT-4", "metadata": "KCT-5"}
    former = {"spec": {"template": {"spec": {"kubeadmConfigSpec": {"format": "cloud-config"}}}}}
    yield from case("KCT-1", kind, {}, "spec", gates=without("ClusterTopology"))
    yield from _shared(kind, where, ids)
    yield from _spec("KCT-7", kind, f"{where}.kubeadmConfigSpec", control_plane=True)
    yield from _metadata("KCT-8", kind, lambda m: {"spec": {"template": {"metadata": m}}}, "spec.template.metadata")
    change = {"spec": {"template": {"spec": {"kubeadmConfigSpec": {"verbosity": 2}}}}}
    yield from case("KCT-9", kind, change, where, former, old={})
    yield from case("KCT-9", kind, change, where, {"spec": {"template": {"spec": {"rollout": None}}}}, old={})


def _configs() -> Iterator[Case]:
    yield from _spec("KC-1", "KubeadmConfig", "spec")
    yield from _spec("KT-1", "KubeadmConfigTemplate", "spec.template.spec")
    yield from _metadata("KT-2", "KubeadmConfigTemplate", lambda m: {"spec": {"template": {"metadata": m}}}, "spec.template.metadata")


KUBEADM_CASES = [*_configs(), *_control_plane(), *_scale(), *_template()]
