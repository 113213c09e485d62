from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from clusterwright.api.meta import OwnerReference
from clusterwright.kubeadm import certificates as pki
from clusterwright.runtime.keys import generate, sample_rsa_key

NOW = datetime.now(UTC).replace(microsecond=0)  # openssl verifies against the machine's clock
KEYS = {"RSA-2048": sample_rsa_key(2048, 0), **{a: generate(a) for a in ("ECDSA-P256", "ECDSA-P384")}}
OWNER = OwnerReference(api_version="bootstrap.cluster.x-k8s.io/v1beta2", kind="KubeadmConfig", name="m1", uid="u", controller=True)


def openssl(*arguments: str | Path) -> str:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: see tests/README.md")
    done = subprocess.run(["openssl", *map(str, arguments)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=KEYS)
def ca(request: pytest.FixtureRequest) -> pki.KeyPair:
    return pki.new_ca(KEYS[request.param], now=NOW, serial=pki.new_serial(Random(1)))


# ---------------------------------------------------------------------------------- the spec's edge cases


def test_external_etcd_has_no_key_file() -> None:
    stacked = {s.purpose: s for s in pki.control_plane_slots()}
    external = {s.purpose: s for s in pki.control_plane_slots("", pki.ExternalEtcd(ca_file="/etcd/ca"))}

    assert stacked[pki.Purpose.ETCD_CA].key_file == "/etc/kubernetes/pki/etcd/ca.key"
    assert external[pki.Purpose.ETCD_CA].key_file == ""
    assert external[pki.Purpose.ETCD_CA].external
    assert pki.Purpose.API_SERVER_ETCD_CLIENT not in stacked


def test_nothing_looked_up_means_no_files() -> None:
    assert pki.files(pki.control_plane_slots(), {}) == ()


@pytest.mark.parametrize(("days", "expected"), [(0, 3650), (10, 10), (36500, 36500)])
def test_the_ca_is_valid_for_ten_years(days: int, expected: int) -> None:
    made = pki.decode_certificate(pki.new_ca(KEYS["ECDSA-P256"], now=NOW, serial=1, days=days).certificate)

    assert made.not_valid_after_utc == NOW + timedelta(days=expected)
    assert made.not_valid_before_utc == NOW - timedelta(minutes=5)


@pytest.mark.parametrize("form", ["TraditionalOpenSSL", "PKCS8"])
@pytest.mark.parametrize("algorithm", KEYS)
def test_private_keys_are_read_in_every_form(form: str, algorithm: str) -> None:
    key = KEYS[algorithm]
    pem = key.private_bytes(serialization.Encoding.PEM, getattr(serialization.PrivateFormat, form), serialization.NoEncryption())

    assert pki.encode_private_key(pki.decode_private_key(pem)) == pki.encode_private_key(key)


@pytest.mark.parametrize("text", [b"", b"plain text", b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"])
def test_a_text_that_is_not_a_key_is_refused_without_being_quoted(text: bytes) -> None:
    with pytest.raises(pki.CertificateError) as caught:
        pki.decode_private_key(text)

    assert str(caught.value) == "unable to decode PEM data"


def test_plain_text_is_not_a_certificate() -> None:
    with pytest.raises(pki.CertificateError):
        pki.decode_certificate(b"plain text")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("test-kubeconfig", ("test", "kubeconfig")), ("test-capa-ca", ("test-capa", "ca")), ("a-b-etcd", ("a-b", "etcd"))],
)
def test_names_of_secrets_are_parsed(name: str, expected: tuple[str, str]) -> None:
    assert pki.parse_secret_name(name) == expected


@pytest.mark.parametrize("name", ["foo", "foo-bar", "x-apiserver-etcd-client", "ca", "-ca", ""])
def test_other_names_of_secrets_are_refused(name: str) -> None:
    with pytest.raises(pki.CertificateError):
        pki.parse_secret_name(name)


@pytest.mark.parametrize("directory", ["/k8s/pki", "/k8s/pki/"])
def test_the_certificates_directory_can_be_changed(directory: str) -> None:
    paths = {p for s in pki.control_plane_slots(directory) for p in (s.certificate_file, s.key_file)}

    assert {"/k8s/pki/etcd/ca.crt", "/k8s/pki/etcd/ca.key", "/k8s/pki/ca.crt", "/k8s/pki/front-proxy-ca.key", "/k8s/pki/sa.pub"} <= paths


# ------------------------------------------------------------------------------------- judged by openssl


def test_openssl_accepts_our_ca(ca: pki.KeyPair, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(ca.certificate)
    (tmp_path / "ca.key").write_bytes(ca.key)

    assert "OK" in openssl("verify", "-x509_strict", "-CAfile", tmp_path / "ca.crt", tmp_path / "ca.crt")
    text = openssl("x509", "-in", tmp_path / "ca.crt", "-noout", "-text")
    assert "CA:TRUE, pathlen:0" in text
    assert "Digital Signature, Key Encipherment, Certificate Sign" in text
    assert "Subject: CN=kubernetes\n" in text.replace(" = ", "=")
    # the key belongs to the certificate
    public = openssl("x509", "-in", tmp_path / "ca.crt", "-noout", "-pubkey")
    assert openssl("pkey", "-in", tmp_path / "ca.key", "-pubout") == public


def test_openssl_accepts_what_the_ca_signed(ca: pki.KeyPair, tmp_path: Path) -> None:
    admin = pki.new_admin_client(ca, KEYS["ECDSA-P256"], now=NOW, serial=7)
    server = pki.sign(
        ca,
        KEYS["ECDSA-P256"],
        common_name="kube-apiserver",
        serial=8,
        not_before=NOW - timedelta(minutes=5),
        not_after=NOW + timedelta(days=1),
        server=True,
        hosts=("localhost", "127.0.0.1", "::1"),
    )
    for name, data in (("ca", ca), ("admin", admin), ("server", server)):
        (tmp_path / name).write_bytes(data.certificate)

    strict = ("verify", "-x509_strict", "-CAfile", tmp_path / "ca")
    assert "OK" in openssl(*strict, "-purpose", "sslclient", tmp_path / "admin")
    assert "OK" in openssl(*strict, "-purpose", "sslserver", "-verify_hostname", "localhost", tmp_path / "server")
    assert "OK" in openssl(*strict, "-purpose", "sslserver", "-verify_ip", "::1", tmp_path / "server")
    subject = openssl("x509", "-in", tmp_path / "admin", "-noout", "-subject")
    assert "O=system:masters, CN=kubernetes-admin" in subject.replace(" = ", "=")  # versions of openssl differ in spaces


def test_discovery_hash_is_that_of_openssl(ca: pki.KeyPair, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(ca.certificate)
    (tmp_path / "pub").write_text(openssl("x509", "-in", tmp_path / "ca.crt", "-noout", "-pubkey"))
    openssl("pkey", "-pubin", "-in", tmp_path / "pub", "-outform", "DER", "-out", tmp_path / "der")
    expected = openssl("dgst", "-sha256", "-r", tmp_path / "der").split()[0]

    assert pki.discovery_hashes(ca.certificate) == (f"sha256:{expected}",)


def test_service_account_pair_is_a_key_pair_for_openssl(tmp_path: Path) -> None:
    pair = pki.new_service_account_pair(KEYS["RSA-2048"])
    (tmp_path / "sa.pub").write_bytes(pair.certificate)
    (tmp_path / "sa.key").write_bytes(pair.key)

    assert pair.certificate.startswith(b"-----BEGIN PUBLIC KEY-----")
    assert pair.key.startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    openssl("dgst", "-sha256", "-sign", tmp_path / "sa.key", "-out", tmp_path / "signature", tmp_path / "sa.pub")
    assert "OK" in openssl("dgst", "-sha256", "-verify", tmp_path / "sa.pub", "-signature", tmp_path / "signature", tmp_path / "sa.pub")


# --------------------------------------------------------------------------------------------- the rest


def test_a_ca_with_serial_number_zero_works(tmp_path: Path) -> None:
    """Other implementations make such CAs, and clusters outlive them."""
    request = (
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=kubernetes",
        "-set_serial",
        "0",
    )
    openssl(*request, "-keyout", tmp_path / "key", "-out", tmp_path / "crt")
    old = pki.KeyPair((tmp_path / "crt").read_bytes(), (tmp_path / "key").read_bytes())

    admin = pki.new_admin_client(old, KEYS["ECDSA-P256"], now=NOW, serial=1)

    assert pki.decode_certificate(admin.certificate).issuer.rfc4514_string() == "CN=kubernetes"
    assert len(pki.discovery_hashes(old.certificate)) == 1


def test_serial_numbers_are_positive_and_differ() -> None:
    random = Random(0)
    serials = [pki.new_serial(random) for _ in range(1000)]

    assert min(serials) > 0
    assert len(set(serials)) == 1000


def test_a_bundle_has_one_hash_for_each_certificate_in_order() -> None:
    pairs = [pki.new_ca(ec.generate_private_key(ec.SECP256R1()), now=NOW, serial=n) for n in (1, 2)]
    noise = b"some text\n-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"

    bundle = pairs[0].certificate + noise + pairs[1].certificate
    assert pki.discovery_hashes(bundle) == pki.discovery_hashes(pairs[0].certificate) + pki.discovery_hashes(pairs[1].certificate)


@pytest.mark.parametrize("pem", [b"", b"x", b"-----BEGIN CERTIFICATE-----\nProc-Type: 4\n\nAAAA\n-----END CERTIFICATE-----\n"])
def test_no_certificate_no_hash(pem: bytes) -> None:
    with pytest.raises(pki.CertificateError):
        pki.discovery_hashes(pem)


@pytest.mark.parametrize("algorithm", ["", "RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"])
def test_known_algorithms_are_accepted(algorithm: str) -> None:
    assert pki.key_algorithm(algorithm) == (algorithm or "RSA-2048")


def test_unknown_algorithm_is_refused() -> None:
    with pytest.raises(pki.CertificateError, match='cannot obtain key size from unknown RSA algorithm: "RSA-1"'):
        pki.key_algorithm("RSA-1")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({}, "missing certificate"),
        ({pki.Purpose.CA: pki.KeyPair(b"", b"k")}, "for certificate: ca: missing crt data"),
        ({pki.Purpose.CA: pki.KeyPair(b"c", b"")}, "for certificate: ca: missing key data"),
    ],
)
def test_all_certificates_must_exist_to_join(found: dict[pki.Purpose, pki.KeyPair], text: str) -> None:
    with pytest.raises(pki.CertificateError) as caught:
        pki.ensure_all_exist(pki.worker_slots(), found)

    assert str(caught.value) == text


def test_external_certificates_may_lack_their_key() -> None:
    slots = [s for s in pki.control_plane_slots("", pki.ExternalEtcd(ca_file="/a", cert_file="/b", key_file="/c")) if s.external]

    pki.ensure_all_exist(slots, {s.purpose: pki.KeyPair(b"c", b"") for s in slots})


def test_files_are_in_order_with_owners_and_permissions() -> None:
    slots = pki.control_plane_slots("", pki.ExternalEtcd(ca_file="/x/etcd.crt", cert_file="/x/c.crt", key_file="/x/c.key"))
    found = {s.purpose: pki.KeyPair(b"crt\n", b"key\n") for s in slots}

    made = pki.files(slots, found)

    base = "/etc/kubernetes/pki/"
    assert [f.path for f in made] == [
        f"{base}ca.crt", f"{base}ca.key", "/x/etcd.crt", f"{base}front-proxy-ca.crt", f"{base}front-proxy-ca.key",
        f"{base}sa.pub", f"{base}sa.key", "/x/c.crt", "/x/c.key",
    ]  # fmt: skip
    assert {f.owner for f in made} == {"root:root"}
    assert all(f.permissions == ("0600" if f.path.endswith(".key") else "0640") for f in made)


def test_nothing_secret_shows_in_a_repr() -> None:
    pair = pki.new_ca(KEYS["ECDSA-P256"], now=NOW, serial=1)
    made = pki.files(pki.control_plane_slots(), {pki.Purpose.CA: pair})

    assert "BEGIN" not in repr((pair, made))


def test_secret_of_a_pair() -> None:
    secret = pki.pair_secret(namespace="ns", cluster="c1", purpose=pki.Purpose.CA, pair=pki.KeyPair(b"c", b"k"), owner=OWNER)

    assert secret["metadata"]["name"] == "c1-ca"
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "c1"}
    assert secret["metadata"]["ownerReferences"][0]["controller"] is True
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["data"] == {"tls.crt": "Yw==", "tls.key": "aw=="}


def test_secret_without_certificate_is_refused() -> None:
    with pytest.raises(pki.CertificateError, match=r"failed to read keypair from certificate ns/c1-ca: missing data for key tls\.crt"):
        pki.pair_from_secret("ns", "c1-ca", {"tls.key": b"k"})


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed: see tests/README.md")
def test_kubeconfig_names_cluster_user_and_context(tmp_path: Path) -> None:
    ca = pki.new_ca(KEYS["ECDSA-P256"], now=NOW, serial=1)
    made = pki.new_kubeconfig("c1", "https://10.0.0.1:6443", ca, pki.new_admin_client(ca, KEYS["ECDSA-P256"], now=NOW, serial=2))
    (tmp_path / "k").write_bytes(made)

    config = yaml.safe_load(made)
    assert config["current-context"] == "c1-admin@c1"
    assert config["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    shown = subprocess.run(
        ["kubectl", "--kubeconfig", tmp_path / "k", "config", "view", "-o", "jsonpath={.users[0].name}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout == "c1-admin"


def test_admin_certificate_lasts_a_year_from_the_beginning_of_the_ca() -> None:
    ca = pki.new_ca(KEYS["ECDSA-P256"], now=NOW - timedelta(days=100), serial=1)
    made = pki.decode_certificate(pki.new_admin_client(ca, KEYS["ECDSA-P256"], now=NOW, serial=2).certificate)

    assert made.not_valid_before_utc == pki.decode_certificate(ca.certificate).not_valid_before_utc
    assert made.not_valid_after_utc == NOW + timedelta(days=365)
    assert made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value == x509.ExtendedKeyUsage(
        [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    )
