"""The configuration of the load balancer in front of a cluster's API servers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

PORT = 6443
PATH = "/usr/local/etc/haproxy/haproxy.cfg"
IMAGE, TAG = "kindest/haproxy", "v20230606-42a2262b"
COMMAND = ("haproxy", "-W", "-db", "-f", PATH)
"""The command: a master that rereads the configuration on a signal and keeps old workers until their connections end."""
RELOAD = "USR2"
FULL_WEIGHT, NO_WEIGHT = 100, 0

_HEAD = """\
# written by clusterwright: changes are lost
global
  log stdout format raw local0 notice
  maxconn 4000
defaults
  log global
  mode tcp
  option dontlognull
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout tunnel 24h
  default-server init-addr none
frontend control-plane
  bind *:{port}
{bind6}  default_backend kube-apiservers
backend kube-apiservers
  option httpchk GET /healthz
  balance roundrobin
"""


def configuration(servers: Mapping[str, str], *, leaving: Collection[str] = (), has_ipv6: bool = False, port: int = PORT) -> str:
    """Return the configuration for API servers by name and address. A server counts while its /healthz answers.

    Those that are leaving keep their open connections and get no new ones.
    """
    head = _HEAD.format(port=port, bind6=f"  bind :::{port} v6only\n" if has_ipv6 else "")
    return head + "".join(
        f"  server {name} {_host(address)}:6443 weight {weight(name, leaving)} check check-ssl verify none\n"
        for name, address in sorted(servers.items())
    )


def weight(server: str, leaving: Collection[str]) -> int:
    """Return the weight of a server."""
    return NO_WEIGHT if server in leaving else FULL_WEIGHT


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
