"""Certificates of a cluster: their list, their content, and their Secrets.

Pure: the key, the serial number and `now` are arguments, because generating keys is slow and random. Key material never
shows in `repr`.
"""

from __future__ import annotations

import hashlib
import ipaddress
import posixpath
import re
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm as UnsupportedKey
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterwright.api import kubeconfig
from clusterwright.api.codec import to_json
from clusterwright.api.machine_setup import File
from clusterwright.api.meta import Json, OwnerReference
from clusterwright.api.wellknown import CLUSTER_NAME_LABEL, CLUSTER_SECRET_TYPE
from clusterwright.kubeadm import yamltext
from clusterwright.kubeadm.keysizes import LARGEST_RSA, LONGEST_KEY, broken_rule

PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey
PublicKey = RSAPublicKey | EllipticCurvePublicKey

SECRET_TYPE = CLUSTER_SECRET_TYPE
CERTIFICATE_KEY = "tls.crt"
PRIVATE_KEY_KEY = "tls.key"
KUBECONFIG_KEY = "value"

DEFAULT_DIRECTORY = "/etc/kubernetes/pki"
DEFAULT_ALGORITHM = "RSA-2048"
ALGORITHMS = ("RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384")
DEFAULT_CA_DAYS = 3650
CLOCK_SKEW = timedelta(minutes=5)
CLIENT_VALIDITY = timedelta(days=365)


class CertificateError(ValueError):
    """Certificate data are unusable. The text names the problem and never quotes the data."""


class Purpose(StrEnum):
    """The purpose of a Secret `<cluster>-<purpose>`."""

    CA = "ca"
    SERVICE_ACCOUNT = "sa"
    FRONT_PROXY_CA = "proxy"
    API_SERVER_ETCD_CLIENT = "apiserver-etcd-client"
    ETCD_CA = "etcd"
    KUBECONFIG = "kubeconfig"


def secret_name(cluster: str, purpose: Purpose) -> str:
    """Return the name of the Secret that holds this certificate of the cluster."""
    return f"{cluster}-{purpose}"


def parse_secret_name(name: str) -> tuple[str, Purpose]:
    """Return (cluster, purpose) of a Secret's name; the split is at the last dash. Raises CertificateError."""
    cluster, _, suffix = name.rpartition("-")
    try:
        purpose = Purpose(suffix)
    except ValueError:
        purpose = None
    if not cluster or purpose is None:
        raise CertificateError(f"{name!r} is not a valid cluster secret name. The purpose suffix is missing")
    return cluster, purpose


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (for service accounts: a public key) and its private key, both PEM; `key` is empty if it is kept elsewhere."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


# ------------------------------------------------------------------------------------------ which ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One certificate that a node needs, with its paths on the node (an empty path: nowhere).

    The user provides an external one; it is never generated and may lack its key.
    """

    purpose: Purpose
    certificate_file: str = ""
    key_file: str = ""
    external: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalEtcd:
    """The paths of the files of an external etcd."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


def control_plane_slots(certificates_dir: str = "", external_etcd: ExternalEtcd | None = None) -> tuple[Slot, ...]:
    """Return the certificates of a control-plane node, in look-up order, for init and join alike."""

    def at(name: str) -> str:
        return posixpath.normpath(posixpath.join(certificates_dir or DEFAULT_DIRECTORY, name))

    slots = [
        Slot(purpose=Purpose.CA, certificate_file=at("ca.crt"), key_file=at("ca.key")),
        Slot(purpose=Purpose.SERVICE_ACCOUNT, certificate_file=at("sa.pub"), key_file=at("sa.key")),
        Slot(purpose=Purpose.FRONT_PROXY_CA, certificate_file=at("front-proxy-ca.crt"), key_file=at("front-proxy-ca.key")),
    ]
    if external_etcd is None:
        slots.append(Slot(purpose=Purpose.ETCD_CA, certificate_file=at("etcd/ca.crt"), key_file=at("etcd/ca.key")))
    else:
        client = Slot(
            purpose=Purpose.API_SERVER_ETCD_CLIENT,
            certificate_file=external_etcd.cert_file,
            key_file=external_etcd.key_file,
            external=True,
        )
        slots += [client, Slot(purpose=Purpose.ETCD_CA, certificate_file=external_etcd.ca_file, external=True)]
    return tuple(slots)


def worker_slots(ca_cert_path: str = "") -> tuple[Slot, ...]:
    """Return the certificates of a worker: the cluster CA, for the discovery hashes; no file is written."""
    return (Slot(purpose=Purpose.CA, certificate_file=ca_cert_path or f"{DEFAULT_DIRECTORY}/ca.crt"),)


Certificates = Mapping[Purpose, KeyPair]
"""The found or generated certificates; a purpose without one is unset."""


def ensure_all_exist(slots: Sequence[Slot], found: Certificates) -> None:
    """Raise CertificateError unless every certificate exists and is complete (an external one may lack its key)."""
    for slot in slots:
        pair = found.get(slot.purpose)
        if pair is None:
            raise CertificateError("missing certificate")
        if not pair.certificate:
            raise CertificateError(f"for certificate: {slot.purpose}: missing crt data")
        if not slot.external and not pair.key:
            raise CertificateError(f"for certificate: {slot.purpose}: missing key data")


def is_generated(slot: Slot) -> bool:
    """Return whether we generate this certificate if it is missing."""
    return not slot.external


_FILE_ORDER = (Purpose.CA, Purpose.ETCD_CA, Purpose.FRONT_PROXY_CA, Purpose.SERVICE_ACCOUNT, Purpose.API_SERVER_ETCD_CLIENT)


def files(slots: Sequence[Slot], found: Certificates) -> tuple[File, ...]:
    """Return the files of a control-plane node: for each certificate its public part, then its key. Empty parts and paths are skipped."""
    by_purpose = {slot.purpose: slot for slot in slots}
    out: list[File] = []
    for purpose in _FILE_ORDER:
        slot, pair = by_purpose.get(purpose), found.get(purpose)
        if slot is None or pair is None:
            continue
        for path, content, permissions in ((slot.certificate_file, pair.certificate, "0640"), (slot.key_file, pair.key, "0600")):
            if path and content:
                text = content.decode("utf-8", "surrogateescape")
                out.append(File(path=path, owner="root:root", permissions=permissions, content=text))
    return tuple(out)


# ------------------------------------------------------------------------------------------ in Secrets


def pair_from_secret(namespace: str, name: str, data: Mapping[str, bytes]) -> KeyPair:
    """Return the pair in a Secret, without parsing it. Raises CertificateError if it has no certificate or a huge key."""
    if CERTIFICATE_KEY not in data:
        raise CertificateError(f"failed to read keypair from certificate {namespace}/{name}: missing data for key {CERTIFICATE_KEY}")
    try:
        check_length(data.get(PRIVATE_KEY_KEY, b""))
    except CertificateError as error:
        raise CertificateError(f"{PRIVATE_KEY_KEY} of Secret {namespace}/{name} cannot be used: {error}") from None
    return KeyPair(data[CERTIFICATE_KEY], data.get(PRIVATE_KEY_KEY, b""))


def pair_secret(*, namespace: str, cluster: str, purpose: Purpose, pair: KeyPair, owner: OwnerReference | None = None) -> Json:
    """Return the Secret for a generated pair."""
    return _secret(namespace, cluster, purpose, {CERTIFICATE_KEY: pair.certificate, PRIVATE_KEY_KEY: pair.key}, owner)


def kubeconfig_secret(*, namespace: str, cluster: str, kubeconfig: bytes, owner: OwnerReference | None = None) -> Json:
    """Return the Secret for a cluster's admin kubeconfig."""
    return _secret(namespace, cluster, Purpose.KUBECONFIG, {KUBECONFIG_KEY: kubeconfig}, owner)


def _secret(namespace: str, cluster: str, purpose: Purpose, data: Mapping[str, bytes], owner: OwnerReference | None) -> Json:
    metadata: Json = {"namespace": namespace, "name": secret_name(cluster, purpose), "labels": {CLUSTER_NAME_LABEL: cluster}}
    if owner is not None:
        metadata["ownerReferences"] = [to_json(owner)]
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": SECRET_TYPE, "data": encoded}


# -------------------------------------------------------------------------------------------- making them


def new_serial(random: Random) -> int:
    """Return a random positive serial number of at most 63 bits."""
    return random.randrange(1, 1 << 63)


def key_algorithm(algorithm: str) -> str:
    """Return the algorithm to request from a KeySource; empty means the default. Raises CertificateError for an unknown one."""
    chosen = algorithm or DEFAULT_ALGORITHM
    if chosen not in ALGORITHMS:
        raise CertificateError(f'cannot obtain key size from unknown RSA algorithm: "{chosen}"')
    return chosen


def algorithm_of(authority: KeyPair) -> str:
    """Return the algorithm for keys that an authority signs: of its own family, so that verifiers of one support the other."""
    key = decode_private_key(authority.key)
    if isinstance(key, EllipticCurvePrivateKey):
        return "ECDSA-P384" if key.curve.key_size == 384 else "ECDSA-P256"
    return DEFAULT_ALGORITHM


def new_ca(key: PrivateKey, *, now: datetime, serial: int, days: float = 0, common_name: str = "kubernetes") -> KeyPair:
    """Return a self-signed certificate authority, valid from five minutes ago for `days` (zero: 3650)."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    public = key.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(serial)
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days or DEFAULT_CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(encipherment=True, cert_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    return KeyPair(encode_certificate(builder.sign(key, _digest(key))), encode_private_key(key))


def new_service_account_pair(key: PrivateKey) -> KeyPair:
    """Return the pair that signs service-account tokens: a public key, not a certificate."""
    return KeyPair(encode_public_key(key.public_key()), encode_private_key(key))


def new_pair(purpose: Purpose, key: PrivateKey, *, now: datetime, serial: int, days: int = 0) -> KeyPair:
    """Return the content of a generated Secret of this purpose."""
    return new_service_account_pair(key) if purpose is Purpose.SERVICE_ACCOUNT else new_ca(key, now=now, serial=serial, days=days)


def sign(
    ca: KeyPair,
    key: PrivateKey,
    *,
    common_name: str,
    serial: int,
    not_before: datetime,
    not_after: datetime,
    organizations: Sequence[str] = (),
    client: bool = False,
    server: bool = False,
    hosts: Sequence[str] = (),
    encipherment: bool = True,
) -> KeyPair:
    """Return a certificate for `key`, signed by the CA. `hosts` are DNS names and IP addresses. Raises CertificateError for a broken CA."""
    authority, authority_key = decode_certificate(ca.certificate), decode_private_key(ca.key)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH] * client + [ExtendedKeyUsageOID.SERVER_AUTH] * server
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(_key_usage(encipherment=encipherment, cert_sign=False), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_authority_key_identifier(authority, authority_key), critical=False)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(h) for h in hosts]), critical=False)
    return KeyPair(encode_certificate(builder.sign(authority_key, _digest(authority_key))), encode_private_key(key))


def new_admin_client(ca: KeyPair, key: PrivateKey, *, now: datetime, serial: int) -> KeyPair:
    """Return the client certificate of a cluster's admin kubeconfig: for a year, from the CA's start."""
    begin = decode_certificate(ca.certificate).not_valid_before_utc
    return sign(
        ca,
        key,
        common_name="kubernetes-admin",
        organizations=("system:masters",),
        serial=serial,
        not_before=begin,
        not_after=now + CLIENT_VALIDITY,
        client=True,
    )


def new_kubeconfig(cluster: str, server: str, ca: KeyPair, client: KeyPair) -> bytes:
    """Return the admin kubeconfig of a cluster; `server` is its URL."""
    user = f"{cluster}-admin"
    context = f"{user}@{cluster}"
    authority = encode_certificate(decode_certificate(ca.certificate))
    document = kubeconfig.document(
        server=server,
        certificate_authority=authority,
        client_certificate=client.certificate,
        client_key=client.key,
        cluster=cluster,
        user=user,
        context=context,
    )
    return yamltext.dump(document).encode()


def _key_usage(*, encipherment: bool, cert_sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=encipherment,
        key_cert_sign=cert_sign,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_key_identifier(authority: x509.Certificate, key: PrivateKey) -> x509.AuthorityKeyIdentifier:
    try:
        known = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):  # it has none, or none that can be read
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known.value)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _digest(key: PrivateKey) -> hashes.SHA256 | hashes.SHA384:
    return hashes.SHA384() if isinstance(key, EllipticCurvePrivateKey) and key.curve.key_size == 384 else hashes.SHA256()


# ------------------------------------------------------------------------------------------------- PEM


def encode_certificate(certificate: x509.Certificate) -> bytes:
    """Return PEM `CERTIFICATE`."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def encode_private_key(key: PrivateKey) -> bytes:
    """Return PEM `RSA PRIVATE KEY` (PKCS#1) or `EC PRIVATE KEY` (SEC1)."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def encode_public_key(key: PublicKey) -> bytes:
    """Return PEM `PUBLIC KEY`."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def decode_private_key(pem: bytes) -> PrivateKey:
    """Return a PKCS#1, PKCS#8 or SEC1 key of an allowed size. Raises CertificateError.

    RSA keys are not validated, which would take 50 ms, and much longer for a huge one.
    """
    check_length(pem)
    try:
        key = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedKey):
        raise CertificateError("unable to decode PEM data") from None  # its cause may quote the key
    if not isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey):
        raise CertificateError("the private key is neither RSA nor ECDSA")
    if rule := broken_rule(key):
        raise CertificateError(rule)
    return key


def check_length(pem: bytes) -> None:
    """Raise CertificateError if a PEM text with a private key is too long to be parsed."""
    if len(pem) > LONGEST_KEY:
        raise CertificateError(f"the private key has {len(pem)} bytes, more than {LONGEST_KEY}: use RSA with at most {LARGEST_RSA} bits")


def decode_certificate(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM text. Raises CertificateError."""
    return decode_certificates(pem)[0]


_PEM_BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----[ \t]*\r?\n")
_UNENDED = 16
"""Kinds of PEM blocks that begin and never end; the search stops after them, so that no sender can make it long."""


def _blocks(pem: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kinds and contents of the complete blocks of a PEM text."""
    end, unended = 0, set[bytes]()
    for begin in _PEM_BEGIN.finditer(pem):
        if begin.start() < end or begin[1] in unended:
            continue
        found = pem.find(b"-----END %b-----" % begin[1], begin.end())
        if found >= 0:
            yield begin[1], pem[begin.end() : found]
            end = found
            continue
        unended.add(begin[1])
        if len(unended) == _UNENDED:
            return


def decode_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return every certificate of a PEM bundle, in order; other blocks, and blocks with headers, are skipped. Raises CertificateError."""
    found: list[x509.Certificate] = []
    for kind, content in _blocks(pem):
        if kind != b"CERTIFICATE" or b":" in content:
            continue
        try:
            found.append(load_certificate(b64decode(content)))
        except CertificateError:
            raise
        except ValueError as error:
            raise CertificateError("unable to parse a certificate of the PEM data") from error
    if not found:
        raise CertificateError("data does not contain any valid RSA or ECDSA certificates")
    return tuple(found)


def load_certificate(der: bytes) -> x509.Certificate:
    """Return a certificate with a supported key. Raises ValueError."""
    with warnings.catch_warnings():
        # other implementations make CAs with serial number 0; theirs must work with us
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        try:
            loaded = x509.load_der_x509_certificate(der)
            rule = broken_rule(loaded.public_key())
        except (x509.InvalidVersion, UnsupportedKey) as error:
            raise ValueError(str(error)) from error
    if rule:
        raise CertificateError(rule)
    return loaded


def discovery_hashes(ca_bundle: bytes) -> tuple[str, ...]:
    """Return `sha256:<hex>` over the public key info of each certificate of the bundle, for joining nodes. Raises CertificateError."""
    return tuple(
        "sha256:"
        + hashlib.sha256(
            c.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        ).hexdigest()
        for c in decode_certificates(ca_bundle)
    )
