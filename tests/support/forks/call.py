"""`call.py ADDRESS ARGUMENTS...`: has the command done by a fork of the server, and is to its caller what that fork is."""

from __future__ import annotations

import os
import signal
import socket
import sys

_PASSED_ON: dict[int, int] = {
    signal.SIGTERM: signal.SIGTERM,
    signal.SIGINT: signal.SIGINT,
    signal.SIGHUP: signal.SIGHUP,
    signal.SIGUSR1: signal.SIGKILL,  # SIGKILL itself cannot be passed on before it ends this process
}


def main() -> None:
    """Hand over files, folder, environment and signals; end as the fork ends."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        parts = [os.getcwd(), str(len(sys.argv) - 2), *sys.argv[2:], *(f"{name}={value}" for name, value in os.environ.items())]
        request = "\0".join(parts).encode("utf-8", "surrogateescape")
        socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(request)

        def pass_on(number: int, _frame: object) -> None:
            server.sendall(bytes([_PASSED_ON[number]]))

        for number in tuple(_PASSED_ON):
            signal.signal(number, pass_on)
        answer = server.recv(4)
    status = int.from_bytes(answer, "big", signed=True) if answer else 1
    if status < 0:
        if -status in _PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main()
