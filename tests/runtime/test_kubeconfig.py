import base64
from pathlib import Path

import pytest

from clusterwright.api.kubeconfig import MAX_FOREIGN, InvalidKubeconfig, RefusedKubeconfig
from clusterwright.runtime.kubeconfig import Connection, Kubeconfig, default_paths, from_secret, in_cluster

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


def own(text: str, folder: Path) -> Connection:
    """A kubeconfig as its user has it: a file."""
    (folder / "config").write_text(text)
    return Kubeconfig.load([folder / "config"]).resolve()


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
    assert (two.impersonate_user, two.impersonate_groups, dict(two.impersonate_extra)) == ("ada", ("g1", "g2"), {"k": ("v1",)})
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
    connection = from_secret(text.encode())

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
            "{current-context: x, clusters: [{name: c, cluster: {server: s, certificate-authority-data: '!'}}], contexts: [{name: x, context: {cluster: c}}]}",
            "not base64",
        ),
        ("clusters: [{cluster: {}}]", "without a name"),
    ],
)
def test_unusable_kubeconfigs_are_explained(text, complaint, tmp_path):
    with pytest.raises(InvalidKubeconfig, match=complaint):
        from_secret(text.encode())
    with pytest.raises(InvalidKubeconfig, match=complaint):
        own(text, tmp_path)


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        ("{auth-provider: {name: gcp}}", "auth-provider"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}", "not supported"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1}}", "has no command"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}}", "terminal"),
        ("{client-certificate-data: YQ==}", "go together"),
    ],
)
def test_unusable_users_are_refused(user, complaint, tmp_path):
    text = f"""
current-context: x
clusters: [{{name: c, cluster: {{server: s}}}}]
users: [{{name: u, user: {user}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
"""
    with pytest.raises(InvalidKubeconfig, match=complaint):
        own(text, tmp_path)


FOREIGN = """
current-context: x
clusters: [{{name: c, cluster: {{server: "{server}"{cluster}}}}}]
users: [{{name: u, user: {{token: t{user}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
"""


@pytest.mark.parametrize(
    ("where", "text", "field"),
    [
        ("user", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}", "users[u].user.exec"),
        ("user", "auth-provider: {name: gcp}", "users[u].user.auth-provider"),
        ("user", "tokenFile: /etc/passwd", "users[u].user.tokenFile"),
        ("user", "client-certificate: /etc/passwd", "users[u].user.client-certificate"),
        ("user", "client-key: ../key", "users[u].user.client-key"),
        ("cluster", "certificate-authority: /etc/passwd", "clusters[c].cluster.certificate-authority"),
        ("cluster", "proxy-url: 'http://10.0.0.1:3128'", "clusters[c].cluster.proxy-url"),
        ("server", "http://h:6443", "clusters[c].cluster.server"),
        ("server", "file:///etc/passwd", "clusters[c].cluster.server"),
        ("server", "https://user:pw@h:6443", "clusters[c].cluster.server"),
        ("server", "https://h:notaport", "clusters[c].cluster.server"),
    ],
)
def test_a_kubeconfig_in_a_secret_may_not_refer_to_anything_outside(where, text, field, tmp_path):
    parts = {"server": "https://h:6443", "cluster": "", "user": "", where: text if where == "server" else f", {text}"}
    config = FOREIGN.format(**parts)

    with pytest.raises(RefusedKubeconfig) as refused:
        from_secret(config.encode())

    assert refused.value.field == field
    assert field in str(refused.value)


def test_the_users_own_kubeconfig_keeps_everything(tmp_path):
    user = ", tokenFile: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: ./helper}"
    (tmp_path / "ca").write_text("PEM")
    text = FOREIGN.format(server="http://h:6443", cluster=", certificate-authority: ca, proxy-url: 'http://p:1'", user=user)

    connection = own(text, tmp_path)

    assert (connection.server, connection.proxy_url, connection.certificate_authority) == ("http://h:6443", "http://p:1", b"PEM")
    assert connection.exec is not None
    assert connection.exec.directory == str(tmp_path)


def test_aliases_are_for_the_users_own_files(tmp_path):
    text = FOREIGN.format(server="https://h:6443", cluster="", user="").replace("token: t", "token: &t t, as: *t")

    assert own(text, tmp_path).impersonate_user == "t"
    with pytest.raises(InvalidKubeconfig, match="aliases are not allowed"):
        from_secret(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
        "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
        "- " * 20_000,
        "[" * 60_000,
        "? " * 20_000,
        "x: 2020-13-45",
        "x: " + "9" * 5000,
        "x: " + "y" * MAX_FOREIGN,
    ],
    ids=["aliases", "merges", "sequences", "flow", "keys", "date", "number", "long"],
)
def test_a_kubeconfig_that_is_a_bomb_is_refused(text):
    with pytest.raises(InvalidKubeconfig):
        from_secret(text.encode())


def test_no_file_at_all():
    with pytest.raises(InvalidKubeconfig, match="no kubeconfig found"):
        Kubeconfig.load([Path("/nowhere/config")])


def test_the_kubeconfig_files_are_those_of_kubectl():
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
