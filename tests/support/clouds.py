"""Simulated clusters as tests bring them up: machines by hand, certificates of fixed keys."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

from clusterwright.api.meta import ObjectKey
from clusterwright.inmemory import etcd, objects
from clusterwright.inmemory.cloud import Cloud
from clusterwright.inmemory.loopback import LoopbackTransport
from clusterwright.kubeadm import certificates
from clusterwright.runtime.clock import SystemClock
from clusterwright.runtime.http import HttpTransport
from clusterwright.runtime.keys import FixedKeySource, sample_rsa_key
from clusterwright.runtime.kubeconfig import from_secret
from clusterwright.workload.etcd import EtcdCredentials, client_context

A, B = ObjectKey("default", "a"), ObjectKey("default", "b")


def now():
    return datetime.now(UTC)


def new_ca(number):
    return certificates.new_ca(sample_rsa_key(2048, number), now=now(), serial=number + 1)


CA, ETCD_CA, OTHER_CA = new_ca(0), new_ca(1), new_ca(2)


@asynccontextmanager
async def clouds(**options):
    cloud = Cloud(now=now, random=Random(1), keys=FixedKeySource(1), **options)
    try:
        yield cloud
    finally:
        await cloud.close()


def admin(ca=CA, *, organizations=("system:masters",)):
    key = sample_rsa_key(2048, 3)
    end = now().replace(year=now().year + 1)
    return certificates.sign(
        ca,
        key,
        common_name="admin",
        organizations=organizations,
        serial=9,
        not_before=certificates.decode_certificate(ca.certificate).not_valid_before_utc,
        not_after=end,
        client=True,
    )


def loopback(cluster, ca=CA, certificate=None):
    return LoopbackTransport(cluster, ca.certificate, (certificate or admin()).certificate)


def kubeconfig(cluster, ca=CA, client=None):
    return certificates.new_kubeconfig("c", f"https://{cluster.endpoint}", ca, client or admin())


async def over_tls(cluster, ca=CA, client=None):
    return HttpTransport(from_secret(kubeconfig(cluster, ca, client)), SystemClock(), {})


async def start(cluster, *machines):
    for machine in machines:
        cluster.ensure(objects.node(machine, is_control_plane=True, version="v1.34.1", address="10.0.0.9", now=now(), taints=None))
        await cluster.add_etcd_certificate(machine, ETCD_CA)
        annotations = etcd.new_member(cluster.members(), Random(machine), now())
        cluster.ensure(objects.static_pod("etcd", machine, version="v1.34.1", now=now(), annotations=annotations))
        cluster.ensure(objects.static_pod("kube-apiserver", machine, version="v1.34.1", now=now(), annotations={}))
        await cluster.start_api_server(machine, CA)


def etcd_client_context(authority=ETCD_CA, trusted=ETCD_CA):
    pair = admin(authority)
    return client_context(EtcdCredentials(trusted.certificate, pair.certificate, pair.key))
