from clusterwright.simulation import samples


def test_a_dev_cluster_without_annotations_works(in_plane):
    async def body(p):
        objects = samples.cluster("c")
        assert "annotations" not in objects[1]["metadata"]
        await p.apply(objects)

        async def provisioned():
            found = await p.dev_cluster("c")
            return found.status.initialization is not None and found.status.initialization.provisioned is True

        await p.until(provisioned, "it is provisioned")
        cluster = await p.cluster("c")
        endpoint = (await p.dev_cluster("c")).spec.control_plane_endpoint
        assert cluster.spec.control_plane_endpoint == endpoint

    in_plane(body)
