"""The rules for names, labels and qualified names. Each function returns kube-apiserver's error messages."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"

_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_qualified = re.compile(_QUALIFIED).fullmatch
_value = re.compile(_VALUE).fullmatch

_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    f"an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    f"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    f"with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
)
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    f"an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)


def dns_subdomain(text: str, *, unit: str = "characters") -> tuple[str, ...]:
    """Check a DNS-1123 subdomain, the form of most names. `unit`: the unit of length in the message."""
    problems = () if len(text.encode()) <= 253 else (f"must be no more than 253 {unit}",)
    return problems if _subdomain(text) else (*problems, _SUBDOMAIN_TEXT)


def dns_label(text: str) -> tuple[str, ...]:
    """Check a DNS-1123 label, the form of namespace names."""
    problems = () if len(text.encode()) <= 63 else ("must be no more than 63 characters",)
    return problems if _label(text) else (*problems, "must not contain dots" if _subdomain(text) else _LABEL_TEXT)


def dns_label_1035(text: str) -> tuple[str, ...]:
    """Check a DNS-1035 label, the form of Service names."""
    problems = () if len(text.encode()) <= 63 else ("must be no more than 63 characters",)
    return problems if _label_1035(text) else (*problems, _LABEL_1035_TEXT)


def path_segment(text: str) -> tuple[str, ...]:
    """Check a path segment, the form of RBAC names."""
    if text in {".", ".."}:
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{c}'" for c in "/%" if c in text)


@lru_cache(maxsize=8192)
def qualified_name(text: str) -> tuple[str, ...]:
    """Check `prefix/name` with an optional DNS subdomain prefix: label and annotation keys, finalizers."""
    problems: list[str] = []
    prefix, slash, name = text.rpartition("/")
    if text.count("/") > 1:
        return ("a valid label key " + _QUALIFIED_TEXT + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    if slash:
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems.extend("prefix part " + p for p in dns_subdomain(prefix, unit="bytes"))
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _qualified(name):
        problems.append("name part " + _QUALIFIED_TEXT)
    return tuple(problems)


@lru_cache(maxsize=8192)
def label_value(text: str) -> tuple[str, ...]:
    """Check the value of a label."""
    problems = () if len(text.encode()) <= 63 else ("must be no more than 63 bytes",)
    return problems if _value(text) else (*problems, _VALUE_TEXT)
