"""Services get cluster IPs and node ports from the server, as from kube-apiserver. The answers were compared with a real one."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apiserver_testing import Api
from clusterwright.api.meta import Json

SERVICES = "/api/v1/namespaces/default/services"
CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
PORTS = [{"port": 80}]


def service(name: str, **spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": PORTS, **spec}}


async def made(api: Api, name: str, **spec: Any) -> Json:
    answer = await api.post(SERVICES, service(name, **spec))
    assert answer.status == 201, answer.json
    found: Json = answer["spec"]
    return found


async def refused(api: Api, name: str, **spec: Any) -> str:
    answer = await api.post(SERVICES, service(name, **spec))
    assert answer.status == 422
    return str(answer["message"]).partition(" is invalid: ")[2]


async def test_a_service_gets_an_address_of_the_default_family(api: Api) -> None:
    spec = await made(api, "a")

    assert spec["clusterIP"].startswith("10.0.0.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


async def test_no_two_services_have_one_address(api: Api) -> None:
    found = [(await made(api, f"s{i}"))["clusterIP"] for i in range(200)]

    assert len(set(found)) == 200


async def test_addresses_for_users_to_choose_are_given_last(api: Api) -> None:
    found = [int((await made(api, f"s{i}"))["clusterIP"].rpartition(".")[2]) for i in range(254)]

    assert min(found[:238]) > 16
    assert sorted(found[238:]) == list(range(1, 17))


async def test_a_full_range_is_an_internal_error(api: Api) -> None:
    for i in range(254):
        await made(api, f"s{i}")
    answer = await api.post(SERVICES, service("one-more"))

    assert (answer.status, answer["message"]) == (500, "Internal error occurred: failed to allocate a serviceIP: range is full")


async def test_a_deleted_service_frees_its_address_and_port(api: Api) -> None:
    await made(api, "a", type="NodePort", clusterIP="10.0.0.5", ports=[{"port": 80, "nodePort": 30001}])
    await api.delete(f"{SERVICES}/a")

    assert (await made(api, "b", type="NodePort", clusterIP="10.0.0.5", ports=[{"port": 80, "nodePort": 30001}]))["clusterIP"] == "10.0.0.5"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"clusterIP": "10.0.0.7"}, 'spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: provided IP is already allocated'),
        ({"clusterIP": "10.1.0.7"}, 'spec.clusterIPs: Invalid value: ["10.1.0.7"]: failed to allocate IP 10.1.0.7: the provided network does not match the current range'),
        ({"clusterIP": "10.0.0.0"}, 'spec.clusterIPs: Invalid value: ["10.0.0.0"]: failed to allocate IP 10.0.0.0: the provided network does not match the current range'),
        ({"clusterIP": "10.0.0.255"}, 'spec.clusterIPs: Invalid value: ["10.0.0.255"]: failed to allocate IP 10.0.0.255: the provided network does not match the current range'),
        ({"clusterIP": "fd00::1"}, 'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster'),
        ({"clusterIPs": ["10.0.0.8"]}, 'spec.clusterIPs: Invalid value: ["10.0.0.8"]: must be empty when `clusterIP` is not specified'),
        ({"clusterIP": "10.0.0.8", "clusterIPs": ["10.0.0.9"]}, 'spec.clusterIPs: Invalid value: ["10.0.0.9"]: first value must match `clusterIP`'),
        ({"ipFamilies": ["IPv6"]}, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'),
        ({"ipFamilies": ["IPv5"]}, 'spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"'),
        ({"ipFamilies": ["IPv4", "IPv4"]}, 'spec.ipFamilies[1]: Duplicate value: "IPv4"'),
        ({"ipFamilies": ["IPv4", "IPv6"]}, "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"),
        ({"ipFamilyPolicy": "RequireDualStack"}, 'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services'),
        ({"ipFamilyPolicy": "x"}, 'spec.ipFamilyPolicy: Unsupported value: "x": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"'),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}, "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"),
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]}, "spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated"),
        ({"type": "NodePort", "ports": [{"port": 53, "name": "a", "nodePort": 30009}, {"port": 54, "name": "b", "nodePort": 30009}]}, "spec.ports[1].nodePort: Invalid value: 30009: provided port is already allocated"),
    ],
)  # fmt: skip
async def test_addresses_and_ports_that_a_service_cannot_have_are_refused(api: Api, spec: Json, message: str) -> None:
    await made(api, "other", type="NodePort", clusterIP="10.0.0.7", ports=[{"port": 80, "nodePort": 30007}])

    assert await refused(api, "a", **spec) == message


async def test_a_headless_service_gets_no_address(api: Api) -> None:
    selecting = await made(api, "a", clusterIP="None", selector={"a": "b"})
    free = await made(api, "b", clusterIP="None")
    single = await made(api, "c", clusterIP="None", ipFamilyPolicy="SingleStack")

    assert (selecting["clusterIPs"], selecting["ipFamilies"], selecting["ipFamilyPolicy"]) == (["None"], ["IPv4"], "SingleStack")
    assert (free["ipFamilies"], free["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    assert (single["ipFamilies"], single["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


async def test_ports_of_several_protocols_with_one_number_share_a_node_port(api: Api) -> None:
    spec = await made(api, "dns", type="NodePort", ports=[{"port": 53, "name": "a"}, {"port": 53, "protocol": "UDP", "name": "b"}])

    assert spec["ports"][0]["nodePort"] == spec["ports"][1]["nodePort"]


async def test_a_load_balancer_gets_node_ports_unless_it_wants_none(api: Api) -> None:
    usual = await made(api, "a", type="LoadBalancer")
    without = await made(api, "b", type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    local = await made(api, "c", type="LoadBalancer", externalTrafficPolicy="Local")

    assert usual["ports"][0]["nodePort"] in range(30000, 32768)
    assert "nodePort" not in without["ports"][0]
    assert local["healthCheckNodePort"] in range(30000, 32768)


async def test_a_change_of_type_gives_and_takes_what_the_type_has(api: Api) -> None:
    before = await made(api, "a")

    async def changed(**spec: Any) -> Json:
        found: Json = (await api.merge(f"{SERVICES}/a", {"spec": spec}))["spec"]
        return found

    balanced = await changed(type="LoadBalancer", externalTrafficPolicy="Local")
    plain = await changed(type="ClusterIP")
    name = await changed(type="ExternalName", externalName="a.example.com")
    again = await changed(type="ClusterIP", externalName=None)

    assert balanced["clusterIP"] == before["clusterIP"]
    assert balanced["healthCheckNodePort"] != balanced["ports"][0]["nodePort"]
    assert not {"healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"} & set(plain)
    assert "nodePort" not in plain["ports"][0]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & set(name)
    assert again["clusterIP"].startswith("10.0.0.")


async def test_an_update_that_leaves_out_node_ports_keeps_them(api: Api) -> None:
    before = await made(api, "a", type="NodePort")
    after = (await api.merge(f"{SERVICES}/a", {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 81, "name": "more"}]}}))["spec"]

    assert after["ports"][0]["nodePort"] == before["ports"][0]["nodePort"]
    assert after["ports"][1]["nodePort"] not in (None, before["ports"][0]["nodePort"])


async def test_a_dry_run_takes_no_address(api: Api) -> None:
    answers = [await api.post(SERVICES, service("a"), dryRun="All") for _ in range(300)]

    assert {answer["spec"]["clusterIP"] for answer in answers} == {"10.0.0.0"}


async def test_addresses_come_from_the_service_cidrs_of_the_cluster(api: Api) -> None:
    for name, cidrs in (("kubernetes", ["10.96.0.0/12", "fd00:10::/112"]), ("more", ["10.3.0.0/24"])):
        answer = await api.post(
            CIDRS, {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}, "spec": {"cidrs": cidrs}}
        )
        assert answer.status == 201
    dual = await made(api, "a", ipFamilyPolicy="PreferDualStack")
    chosen = await made(api, "b", clusterIP="10.3.0.7")

    assert dual["clusterIP"].startswith("10.")
    assert dual["clusterIPs"][1].startswith("fd00:10::")
    assert (dual["ipFamilies"], dual["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "PreferDualStack")
    assert chosen["clusterIP"] == "10.3.0.7"
