"""`server.py ADDRESS`: forks for every caller (`call.py`) until its own input ends."""

from __future__ import annotations

import gc
import io
import logging
import os
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from clusterwright.api.crds import crds
from clusterwright.cli.grammar import COMMANDS
from clusterwright.cli.main import main as clusterwright
from clusterwright.controllers.kit.registry import controllers


class Fork(NamedTuple):
    pid: int
    caller: socket.socket


def main() -> None:
    """Import what commands import, then fork and tell how forks ended."""
    for command in COMMANDS.values():
        import_module(f"clusterwright.cli.{command.module}")
    tuple(controllers())
    crds()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(sys.argv[1])
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        os.write(1, b"!")
        while True:
            for key, _ in selector.select():
                if key.fileobj == 0:
                    for fork in {key.data for key in selector.get_map().values() if key.data is not None}:
                        os.kill(fork.pid, signal.SIGKILL)
                    return
                if key.fileobj is listener:
                    caller, _address = listener.accept()
                    begin(caller, selector)
                elif isinstance(key.fileobj, socket.socket):
                    if key.fileobj.fileno() >= 0:  # its fork may have ended just now
                        signalled(key.fileobj, key.data, selector)
                else:
                    ended(key.fd, key.data, selector)


def begin(caller: socket.socket, selector: selectors.BaseSelector) -> None:
    """Fork for a caller; the fork holds one end of a pipe for as long as it lives."""
    size, files, _flags, _address = socket.recv_fds(caller, 4, 3)
    if len(size) < 4:
        caller.close()
        return
    request = b""
    while len(request) < int.from_bytes(size, "big"):
        request += caller.recv(1 << 20)
    mine, its = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(mine)
        for key in list(selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            elif key.fd != 0:
                os.close(key.fd)
        selector.close()
        caller.close()
        os._exit(run(request.decode("utf-8", "surrogateescape").split("\0"), files))
    os.close(its)
    for file in files:
        os.close(file)
    fork = Fork(pid, caller)
    selector.register(mine, selectors.EVENT_READ, fork)
    selector.register(caller, selectors.EVENT_READ, fork)


def run(request: list[str], files: list[int]) -> int:
    """What the fork does: become what the caller is, and run the command."""
    folder, count, *rest = request
    arguments, environment = rest[: int(count)], rest[int(count) :]
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({name: value for name, _, value in (entry.partition("=") for entry in environment)})
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _writer(1), _writer(2)
    package = sys.modules["clusterwright"].__path__[0]
    sys.argv, sys.orig_argv = [f"{package}/__main__.py", *arguments], [sys.executable, "-m", "clusterwright", *arguments]
    try:
        return clusterwright()
    except BaseException:
        traceback.print_exc()
        return 1
    finally:  # all that the end of an interpreter would do that anybody sees
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()


def _writer(file: int) -> io.TextIOWrapper:
    binary: Any = open(file, "wb", closefd=False)  # noqa: SIM115
    errors = "strict" if file == 1 else "backslashreplace"
    return io.TextIOWrapper(binary, errors=errors, line_buffering=file == 2 or os.isatty(file))


def signalled(caller: socket.socket, fork: Fork, selector: selectors.BaseSelector) -> None:
    """Pass signals on; a caller that is gone was killed, and so is its fork."""
    numbers = caller.recv(64)
    for number in numbers or bytes([signal.SIGKILL]):
        os.kill(fork.pid, number)
    if not numbers:
        selector.unregister(caller)


def ended(pipe: int, fork: Fork, selector: selectors.BaseSelector) -> None:
    """Tell the caller how its fork ended."""
    selector.unregister(pipe)
    os.close(pipe)
    status = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
    if fork.caller in {key.fileobj for key in selector.get_map().values()}:
        selector.unregister(fork.caller)
    with suppress(OSError):  # it may be gone
        fork.caller.sendall(status.to_bytes(4, "big", signed=True))
    fork.caller.close()


if __name__ == "__main__":
    main()
