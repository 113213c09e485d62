"""Key material as an argument: generating keys is slow and random, so it is behind this interface, off the event loop."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from typing import Protocol, TypeVar

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

T = TypeVar("T")
PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey

_RSA = {"RSA-2048": 2048, "RSA-3072": 3072, "RSA-4096": 4096}
_CURVES: dict[str, Callable[[], ec.EllipticCurve]] = {"ECDSA-P256": ec.SECP256R1, "ECDSA-P384": ec.SECP384R1}
_ORDERS = {
    "ECDSA-P256": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "ECDSA-P384": 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
}


class KeySource(Protocol):
    """Generates private keys."""

    async def new_key(self, algorithm: str) -> PrivateKey:
        """Return a new key; `algorithm` is one of RSA-2048, RSA-3072, RSA-4096, ECDSA-P256, ECDSA-P384. Never blocks the event loop."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do work with keys, such as a signature, and return its result. Never blocks the event loop for long."""


def generate(algorithm: str) -> PrivateKey:
    """Return a new key, computed synchronously; raises ValueError for an unknown algorithm."""
    if algorithm in _RSA:
        return rsa.generate_private_key(public_exponent=65537, key_size=_RSA[algorithm])
    if algorithm in _CURVES:
        return ec.generate_private_key(_CURVES[algorithm]())
    raise ValueError(f"unknown key algorithm {algorithm!r}")


class PooledKeySource:
    """Generates keys in threads, with a stock of each RSA size that was ever requested.

    An RSA-2048 key takes about 70 ms; a new cluster needs several at once. The stock provides them immediately and is refilled in the
    background. EC keys take microseconds and have no stock.
    """

    def __init__(self, *, threads: int = 2, stock: int = 8) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="keys")
        self._size = stock
        self._stock: dict[str, deque[PrivateKey]] = {}
        self._making: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def new_key(self, algorithm: str) -> PrivateKey:
        """Return a new key, used for nothing else."""
        if algorithm not in _RSA:
            return generate(algorithm)
        stock = self._stock.setdefault(algorithm, deque())
        key = stock.popleft() if stock else await asyncio.get_running_loop().run_in_executor(self._pool, generate, algorithm)
        self.fill(algorithm)
        return key

    async def run(self, work: Callable[[], T]) -> T:
        """Run the work in a thread of the pool."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def fill(self, algorithm: str) -> None:
        """Start filling the stock of an RSA size in the background."""
        stock = self._stock.setdefault(algorithm, deque())
        for _ in range(self._size - len(stock) - self._making.get(algorithm, 0)):
            self._making[algorithm] = self._making.get(algorithm, 0) + 1
            task = asyncio.get_running_loop().create_task(self._make(algorithm))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _make(self, algorithm: str) -> None:
        try:
            key = await asyncio.get_running_loop().run_in_executor(self._pool, generate, algorithm)
            self._stock[algorithm].append(key)
        finally:
            self._making[algorithm] -= 1

    async def close(self) -> None:
        """Stop filling; unfinished keys are discarded."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pool.shutdown(wait=False, cancel_futures=True)


class FixedKeySource:
    """Returns the same keys in the same order for the same seed. For offline passes, simulations and tests: its keys protect nothing.

    EC keys are all different; RSA keys repeat after a while, because they come from a list of published primes.
    """

    def __init__(self, seed: int | str = 0) -> None:
        self._seed = str(seed)
        self._count = 0

    async def new_key(self, algorithm: str) -> PrivateKey:
        """Return the next key of the sequence."""
        self._count += 1
        digest = int.from_bytes(hashlib.sha512(f"{self._seed}/{self._count}".encode()).digest())
        if algorithm in _CURVES:
            return ec.derive_private_key(digest % (_ORDERS[algorithm] - 1) + 1, _CURVES[algorithm]())
        if algorithm in _RSA:
            primes = _primes()[_RSA[algorithm]]
            # neighbours in the sequence differ, so that no cluster has one key for two purposes by accident
            start = int.from_bytes(hashlib.sha512(self._seed.encode()).digest()[:4])
            return sample_rsa_key(_RSA[algorithm], (start + self._count) % len(primes))
        raise ValueError(f"unknown key algorithm {algorithm!r}")

    async def run(self, work: Callable[[], T]) -> T:
        """Run the work synchronously, so that passes take the same steps every time."""
        return work()


@cache
def _primes() -> Mapping[int, Sequence[tuple[int, int]]]:
    """Return the published primes of sample keys by size of the key."""
    found: dict[int, list[tuple[int, int]]] = {}
    for line in resources.files(__package__).joinpath("sample_primes.txt").read_text("ascii").splitlines()[1:]:
        bits, p, q = line.split()
        found.setdefault(int(bits), []).append((int(p, 16), int(q, 16)))
    return found


_RSA_KEYS: dict[tuple[int, int], RSAPrivateKey] = {}


def sample_rsa_key(bits: int, n: int) -> RSAPrivateKey:
    """Return the n-th published key of this size."""
    if (bits, n) not in _RSA_KEYS:
        p, q = _primes()[bits][n]
        e = 65537
        d = rsa.rsa_recover_private_exponent(e, p, q)
        numbers = rsa.RSAPrivateNumbers(
            p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), rsa.RSAPublicNumbers(e, p * q)
        )
        _RSA_KEYS[bits, n] = numbers.private_key(unsafe_skip_rsa_key_validation=True)
    return _RSA_KEYS[bits, n]


def sample_keys() -> FixedKeySource:
    """Return a fresh sequence of sample keys."""
    return FixedKeySource()
