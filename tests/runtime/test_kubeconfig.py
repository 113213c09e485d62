import base64
from pathlib import Path

import pytest

from clusterwright.runtime.kubeconfig import InvalidKubeconfig, Kubeconfig, default_paths, in_cluster

ONE = """
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://one:6443/", certificate-authority: ca.crt, tls-server-name: inner, proxy-url: "http://proxy:3128"}}]
users: [{name: u, user: {token: secret-1}}]
contexts: [{name: one, context: {cluster: c, user: u, namespace: ns1}}]
"""
TWO = """
current-context: two
clusters: [{name: c, cluster: {server: "https://ignored:6443"}}, {name: d, cluster: {server: "two:6443", insecure-skip-tls-verify: true}}]
users: [{name: v, user: {tokenFile: tokens/t, as: ada, as-groups: [g1, g2], as-user-extra: {k: [v1]}}}]
contexts: [{name: two, context: {cluster: d, user: v}}, {name: one, context: {cluster: d}}]
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "ca.crt").write_text("PEM")
    (tmp_path / "a" / "config").write_text(ONE)
    (tmp_path / "b.yaml").write_text(TWO)
    return tmp_path


def test_the_first_file_wins_and_paths_are_relative_to_their_own_file(files):
    config = Kubeconfig.load([files / "a" / "config", files / "missing", files / "b.yaml"])

    one = config.resolve()
    assert (one.server, one.certificate_authority, one.token, one.namespace) == ("https://one:6443", b"PEM", "secret-1", "ns1")
    assert (one.tls_server_name, one.proxy_url) == ("inner", "http://proxy:3128")
    two = config.resolve("two")
    assert (two.server, two.insecure_skip_tls_verify, two.token_file, two.namespace) == (
        "https://two:6443",
        True,
        str(files / "tokens/t"),
        "default",
    )
    assert (two.impersonate_user, two.impersonate_groups, dict(two.impersonate_extra)) == ("ada", ("g1", "g2"), {"k": ["v1"]})
    assert config.contexts == ["one", "two"]


def test_the_order_of_files_decides_the_current_context(files):
    assert Kubeconfig.load([files / "b.yaml", files / "a" / "config"]).current_context == "two"


def test_credentials_are_not_in_the_repr(files):
    assert "secret-1" not in repr(Kubeconfig.load([files / "a" / "config"]).resolve())


def test_inline_data_from_a_secret():
    data = base64.b64encode(b"PEM").decode()
    text = f"""
current-context: x
clusters: [{{name: c, cluster: {{server: "https://h", certificate-authority-data: {data}}}}}]
users: [{{name: u, user: {{client-certificate-data: {data}, client-key-data: {data}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
"""
    connection = Kubeconfig.parse(text.encode()).resolve()

    assert (connection.certificate_authority, connection.client_certificate, connection.client_key) == (b"PEM",) * 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "current-context"),
        ("[]", "not an object"),
        ("{", "not YAML"),
        ("current-context: x", "context 'x' does not exist"),
        ("{current-context: x, contexts: [{name: x, context: {cluster: c}}]}", "cluster 'c' does not exist"),
        ("{current-context: x, clusters: [{name: c, cluster: {}}], contexts: [{name: x, context: {cluster: c}}]}", "has no server"),
        (
            "{current-context: x, clusters: [{name: c, cluster: {server: s}}], contexts: [{name: x, context: {cluster: c, user: u}}]}",
            "user 'u' does not exist",
        ),
        (
            "{current-context: x, clusters: [{name: c, cluster: {server: s, certificate-authority: rel}}], contexts: [{name: x, context: {cluster: c}}]}",
            "relative file",
        ),
        (
            "{current-context: x, clusters: [{name: c, cluster: {server: s, certificate-authority-data: '!'}}], contexts: [{name: x, context: {cluster: c}}]}",
            "not base64",
        ),
        ("clusters: [{cluster: {}}]", "without a name"),
    ],
)
def test_what_cannot_be_used_is_said(text, complaint):
    with pytest.raises(InvalidKubeconfig, match=complaint):
        Kubeconfig.parse(text).resolve()


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        ("{auth-provider: {name: gcp}}", "auth-provider"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}", "not supported"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1}}", "names no command"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}}", "terminal"),
        ("{client-certificate-data: YQ==}", "go together"),
    ],
)
def test_users_that_cannot_be_used(user, complaint):
    text = f"""
current-context: x
clusters: [{{name: c, cluster: {{server: s}}}}]
users: [{{name: u, user: {user}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
"""
    with pytest.raises(InvalidKubeconfig, match=complaint):
        Kubeconfig.parse(text).resolve()


def test_no_file_at_all():
    with pytest.raises(InvalidKubeconfig, match="no kubeconfig found"):
        Kubeconfig.load([Path("/nowhere/config")])


def test_which_files_are_read():
    assert default_paths({"KUBECONFIG": "/a:/b"}) == [Path("/a"), Path("/b")]
    assert default_paths({"HOME": "/h"}) == [Path("/h/.kube/config")]


def test_in_a_pod(tmp_path):
    (tmp_path / "ca.crt").write_text("PEM")
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("mine\n")

    connection = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, tmp_path)

    assert (connection.server, connection.token_file, connection.namespace) == ("https://[fd00::1]:443", str(tmp_path / "token"), "mine")
    with pytest.raises(InvalidKubeconfig, match="not in a cluster"):
        in_cluster({}, tmp_path)
