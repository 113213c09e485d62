"""Values of objects that a tenant may store, and that controllers work on: each is bounded, or refused before the work."""

from __future__ import annotations

import contextlib
import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from clusterwright.gotemplate import TemplateError, parse
from clusterwright.gotemplate.sprig import FUNCTIONS
from clusterwright.kubeadm.certificates import CertificateError, decode_private_key

TEMPLATES = {"template-uniq": "{{len (uniq (until 5000))}}", "template-case": '{{len (snakecase (repeat 60000 "aB"))}}'}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_takes_half_a_second_at_most(name: str) -> None:
    template, began = parse(TEMPLATES[name], FUNCTIONS), time.process_time()
    with contextlib.suppress(TemplateError):
        template.render({})
    took = time.process_time() - began

    assert took < 0.5


def test_an_authority_of_any_size_is_not_signed_with() -> None:
    one, other, exponent = 2**9689 - 1, 2**9941 - 1, 65537
    private = pow(exponent, -1, (one - 1) * (other - 1))
    public = rsa.RSAPublicNumbers(exponent, one * other)
    numbers = rsa.RSAPrivateNumbers(one, other, private, private % (one - 1), private % (other - 1), rsa.rsa_crt_iqmp(one, other), public)
    key = numbers.private_key(unsafe_skip_rsa_key_validation=True)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    with pytest.raises(CertificateError, match="RSA"):
        decode_private_key(pem)
