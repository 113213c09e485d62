"""A definition cannot make discovery and OpenAPI expensive for everybody."""

from __future__ import annotations

from random import Random

from apiserver.apiserver_testing import CRDS, Api, Clock, widget_crds
from clusterwright.apiserver.builtins.customresourcedefinitions import VERSIONS
from clusterwright.apiserver.server import ApiServer


async def test_a_definition_has_a_largest_number_of_versions() -> None:
    api, crd = Api.of(ApiServer(now=Clock(), random=Random(1))), widget_crds()[0]
    first = next(v for v in crd["spec"]["versions"] if v["storage"])
    crd["spec"]["versions"] = [{**first, "name": f"v{n + 1}", "storage": n == 0} for n in range(VERSIONS + 1)]

    refused = await api.post(CRDS, crd)
    crd["spec"]["versions"].pop()
    accepted = await api.post(CRDS, crd)

    assert (refused.status, accepted.status) == (422, 201)
    assert "spec.versions: Too many: 101: must have at most 100 items" in refused["message"]
