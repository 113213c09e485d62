"""Prints the Secrets of a cluster with an external etcd: `python certificates.py [CLUSTER] | kubectl apply -f -`.

Made up here, because nobody answers at the addresses of the example. Of a real etcd they are its CA's certificate, and a client
certificate with its key that the API servers may use.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def name(text: str) -> x509.Name:
    """A subject of one common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey) -> str:
    """A certificate for a year, as PEM."""
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(
        name(issuer), name(subject), key.public_key(), x509.random_serial_number(), now, now + timedelta(days=365)
    )
    made = made.add_extension(x509.BasicConstraints(ca=subject == issuer, path_length=None), critical=True)
    return made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def secret(cluster: str, purpose: str, data: dict[str, str]) -> str:
    """A Secret as YAML."""
    lines = [f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {cluster}-{purpose}"]
    lines += [f"  labels: {{cluster.x-k8s.io/cluster-name: {cluster}}}\ntype: cluster.x-k8s.io/secret\nstringData:"]
    for entry, text in data.items():
        lines += [f"  {entry}: |", *(f"    {line}" for line in text.splitlines())]
    return "\n".join(lines)


def main(cluster: str = "external-etcd") -> None:
    """Print both."""
    ca, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pair = {"tls.crt": certificate("apiserver-etcd-client", client, "etcd-ca", ca), "tls.key": client.private_bytes(*form).decode()}
    secrets = {"etcd": {"tls.crt": certificate("etcd-ca", ca, "etcd-ca", ca)}, "apiserver-etcd-client": pair}
    sys.stdout.write("\n---\n".join(secret(cluster, purpose, data) for purpose, data in secrets.items()) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
