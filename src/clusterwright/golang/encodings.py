"""Base64 and base32 with Go's decoding rules: line breaks are skipped, and errors name their position."""

from __future__ import annotations

import base64
import binascii
import string
from typing import Final

_LINE_BREAKS: Final = b"\r\n"
_BASE64: Final = (string.ascii_letters + string.digits + "+/").encode()
_BASE32: Final = (string.ascii_uppercase + "234567").encode()


def decode_base64(data: bytes) -> bytes:
    """Return the decoded bytes; raises ValueError with Go's message."""
    plain = data.translate(None, _LINE_BREAKS)
    try:
        if len(plain) % 4 == 0:  # Python reads padding after what needs none
            return binascii.a2b_base64(plain, strict_mode=True)
    except binascii.Error:
        pass
    raise ValueError(f"illegal base64 data at input byte {_base64_fault(data)}")


def decode_base32(data: bytes) -> bytes:
    """Return the decoded bytes; raises ValueError with Go's message, in which line breaks do not count."""
    data = data.translate(None, _LINE_BREAKS)
    try:
        return base64.b32decode(data)
    except binascii.Error:
        raise ValueError(f"illegal base32 data at input byte {_base32_fault(data)}") from None


def _base64_fault(data: bytes) -> int:
    """Return the position of an invalid byte, or of an incomplete group of four."""
    held = 0
    for at, byte in enumerate(data):
        if byte in _LINE_BREAKS:
            continue
        if byte in _BASE64:
            held = (held + 1) % 4
            continue
        if byte != ord("=") or held < 2:
            return at
        end = _after_line_breaks(data, at + 1)
        if held == 2:
            if data[end : end + 1] != b"=":
                return end - 1 if end < len(data) else end
            end = _after_line_breaks(data, end + 1)
        return end
    return len(data) - held


def _after_line_breaks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _LINE_BREAKS:
        at += 1
    return at


def _base32_fault(data: bytes) -> int:
    """Return the same for base32, in groups of eight."""
    held = 0
    for at, byte in enumerate(data):
        if byte in _BASE32:
            held = (held + 1) % 8
            continue
        follow = data[at + 1 :]
        if byte != ord("=") or held < 2 or len(follow) >= 8:
            return at
        if len(follow) + held < 7:
            return len(data)
        wrong = next((k for k, other in enumerate(follow[: 7 - held]) if other != ord("=")), 0)
        return at + wrong
    return len(data) - held
