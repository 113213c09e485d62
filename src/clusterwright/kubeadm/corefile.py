"""Corefiles: the CoreDNS releases, and the changes of a Corefile between them. Pure.

Releases and changes are those of the corefile-migration project that are needed to keep a file working: merely deprecated options are left
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from clusterwright.kubeadm.versions import Version

RELEASES: tuple[str, ...] = (
    "1.1.3", "1.1.4", "1.2.0", "1.2.1", "1.2.2", "1.2.3", "1.2.4", "1.2.5", "1.2.6", "1.3.0", "1.3.1", "1.4.0", "1.5.0", "1.5.1",
    "1.5.2", "1.6.0", "1.6.1", "1.6.2", "1.6.3", "1.6.4", "1.6.5", "1.6.6", "1.6.7", "1.6.9", "1.7.0", "1.7.1", "1.8.0", "1.8.3",
    "1.8.4", "1.8.5", "1.8.6", "1.8.7", "1.9.0", "1.9.1", "1.9.2", "1.9.3", "1.9.4", "1.10.0", "1.10.1", "1.11.0", "1.11.1", "1.11.3",
    "1.11.4", "1.12.0", "1.12.1", "1.12.2", "1.12.3", "1.12.4", "1.13.0", "1.13.1", "1.13.2", "1.14.0", "1.14.1", "1.14.2",
)  # fmt: skip
"""Every release that a Corefile can be migrated from or to, oldest first."""


class CannotMigrate(ValueError):
    """CoreDNS, or its Corefile, cannot be upgraded to that version."""


def _name(version: Version) -> str:
    return ".".join(str(n) for n in version.release)


def check_upgrade(from_version: Version, to_version: Version) -> None:
    """Raise CannotMigrate unless CoreDNS may be upgraded from one version to the other; equal versions are allowed."""
    before, after = _name(from_version), _name(to_version)
    if to_version.release < from_version.release:
        raise CannotMigrate(f'failed to validate CoreDNS: toVersion "{after}" must be greater than or equal to fromVersion "{before}"')
    if before not in RELEASES:
        raise CannotMigrate(f'failed to validate CoreDNS: fromVersion "{before}" is not a compatible coredns version')


def require_migration(from_version: Version, to_version: Version) -> None:
    """Raise CannotMigrate unless successive upgrades lead from the start to the target."""
    before, after = _name(from_version), _name(to_version)
    if before not in RELEASES:
        raise CannotMigrate(f"start version '{before}' not supported")
    if before != after and after not in RELEASES[RELEASES.index(before) + 1 :]:
        raise CannotMigrate(f"cannot migrate up to '{after}' from '{before}'")


def migrate(text: str, from_version: Version, to_version: Version) -> str:
    """Return the Corefile for the new version; unchanged if possible. Raises CannotMigrate."""
    before, after = _name(from_version), _name(to_version)
    if before == after:
        return text
    require_migration(from_version, to_version)
    servers = parse(text)
    for release in RELEASES[RELEASES.index(before) + 1 : RELEASES.index(after) + 1]:
        for change in _CHANGES.get(release, ()):
            servers = change(servers)
        servers = [_drop_what_is_ignored(release, s) for s in servers]
    return dump(servers)


# ------------------------------------------------------------------------------------------- the file


@dataclass(slots=True)
class Directive:
    """A plugin with its options, or an option: a name and arguments."""

    name: str
    arguments: list[str] = field(default_factory=list)
    options: list[Directive] = field(default_factory=list)


@dataclass(slots=True)
class Server:
    """A server block: its domains and ports, and its plugins."""

    domains: list[str]
    plugins: list[Directive] = field(default_factory=list)

    def plugin(self, name: str) -> Directive | None:
        """Return the first plugin of that name."""
        return next((p for p in self.plugins if p.name == name), None)


def _lines(text: str) -> Iterator[list[str]]:
    """Yield the tokens of each line; quotes group a token, `#` at the beginning of a token starts a comment."""
    line: list[str] = []
    token, quoted, open_token, position = "", False, False, 0
    while position < len(text):
        char = text[position]
        if quoted:
            if char == "\\" and text[position + 1 : position + 2] == '"':
                token, position = token + '"', position + 1
            elif char == '"':
                quoted = False
            else:
                token += char
        elif char == '"' and not open_token:
            quoted = open_token = True
        elif char == "#" and not open_token:
            end = text.find("\n", position)
            position = (len(text) if end < 0 else end) - 1
        elif char.isspace():
            if open_token:
                line.append(token)
                token, open_token = "", False
            if char == "\n" and line:
                yield line
                line = []
        else:
            token, open_token = token + char, True
        position += 1
    if quoted:
        raise CannotMigrate("the Corefile has an open quote")
    if open_token:
        line.append(token)
    if line:
        yield line


def parse(text: str) -> list[Server]:
    """Return the server blocks of a Corefile; comments are lost. Raises CannotMigrate."""
    servers: list[Server] = []
    depth = 0
    for tokens in _lines(text):
        if tokens == ["}"]:
            depth -= 1
            if depth < 0:
                raise CannotMigrate("the Corefile closes a block that is not open")
            continue
        opens = tokens[-1] == "{"
        words = tokens[:-1] if opens else tokens
        if not words:
            depth += 1
            continue
        if depth == 0:
            servers.append(Server(words))
        elif depth == 1:
            servers[-1].plugins.append(Directive(words[0], words[1:]))
        elif depth == 2 and servers[-1].plugins:
            servers[-1].plugins[-1].options.append(Directive(words[0], words[1:]))
        depth += 1 if opens else 0
    if depth:
        raise CannotMigrate("the Corefile leaves a block open")
    return servers


def dump(servers: list[Server]) -> str:
    """Return a Corefile."""
    return "\n".join(_dump_server(s) for s in servers)


def _words(words: list[str]) -> str:
    return " ".join(f'"{_escaped(w)}"' if len(w.split()) > 1 else w for w in words)


def _escaped(word: str) -> str:
    return word.replace('"', '\\"')


def _dump_server(server: Server) -> str:
    lines = []
    for plugin in server.plugins:
        head = "    " + _words([plugin.name, *plugin.arguments])
        if plugin.options:
            lines += [head + " {", *("        " + _words([o.name, *o.arguments]) for o in plugin.options), "    }"]
        else:
            lines.append(head)
    return _words(server.domains) + (" {\n" + "\n".join(lines) + "\n}\n" if lines else "")


# ------------------------------------------------------------------------------------------ the changes

Change = Callable[[list[Server]], list[Server]]


def _add_plugin(name: str, beside: tuple[str, ...]) -> Change:
    """Add a plugin that became a default to the blocks that have one of the others."""

    def change(servers: list[Server]) -> list[Server]:
        for server in servers:
            if server.plugin(name) is None and any(server.plugin(other) for other in beside):
                server.plugins.append(Directive(name))
        return servers

    return change


def _add_option(plugin: str, name: str, *arguments: str) -> Change:
    """Add an option that became a default."""

    def change(servers: list[Server]) -> list[Server]:
        for server in servers:
            for found in server.plugins:
                if found.name == plugin and all(o.name != name for o in found.options):
                    found.options.append(Directive(name, list(arguments)))
        return servers

    return change


def _proxy_to_forward(servers: list[Server]) -> list[Server]:
    for server in servers:
        for plugin in server.plugins:
            if plugin.name == "proxy":
                plugin.name = "forward"
                plugin.options = [o for old in plugin.options if (o := _forward_option(old)) is not None]
    return servers


def _forward_option(option: Directive) -> Directive | None:
    if option.name == "policy" and option.arguments == ["least_conn"]:
        return Directive("force_tcp")
    if option.name == "protocol":
        return Directive("force_tcp") if len(option.arguments) >= 2 and option.arguments[0] == "force_tcp" else None
    return None if option.name in {"fail_timeout", "max_fails", "health_check", "spray"} else option


def _stub_domains_to_blocks(servers: list[Server]) -> list[Server]:
    """Move zones with their own forward to separate blocks: a block may have only one forward plugin."""
    for server in list(servers):
        for plugin in [p for p in server.plugins if p.name == "forward"]:
            if not plugin.arguments:
                raise CannotMigrate("found invalid forward plugin declaration")
            zone = plugin.arguments[0]
            if zone == ".":
                continue
            if server.domains not in (["."], [".:53"]):
                raise CannotMigrate("cannot move a stub domain out of a server block of its own")
            server.plugins.remove(plugin)
            plugin.arguments[0] = "."
            servers.append(Server([zone], [plugin, Directive("loop"), Directive("errors"), Directive("cache", ["30"])]))
    return servers


def _transfer_to_plugin(servers: list[Server]) -> list[Server]:
    """Replace the zone transfer option of the kubernetes plugin by the new plugin."""
    for server in servers:
        kubernetes = server.plugin("kubernetes")
        if kubernetes is None:
            continue
        for option in kubernetes.options:
            if option.name == "transfer" and len(option.arguments) >= 2 and kubernetes.arguments:
                transfer = Directive("transfer", [kubernetes.arguments[0]], [Directive("to", option.arguments[1:])])
                server.plugins.append(transfer)
    return servers


_CHANGES: dict[str, tuple[Change, ...]] = {
    "1.2.1": (_add_plugin("loop", ("forward", "proxy")),),
    "1.4.0": (_stub_domains_to_blocks,),
    "1.5.0": (_add_plugin("ready", ("kubernetes",)), _proxy_to_forward, _stub_domains_to_blocks),
    "1.6.5": (_add_option("health", "lameduck", "5s"),),
    "1.7.0": (_add_option("forward", "max_concurrent", "1000"),),
    "1.8.0": (_transfer_to_plugin,),
}

_IGNORED_FROM: tuple[tuple[str, str, str], ...] = (
    ("1.5.0", "kubernetes", "upstream"),
    ("1.6.0", "kubernetes", "resyncperiod"),
    ("1.8.0", "kubernetes", "transfer"),
)
"""Options that have no effect any more (and become errors later): (release, plugin, option)."""


def _drop_what_is_ignored(release: str, server: Server) -> Server:
    at = RELEASES.index(release)
    for plugin in server.plugins:
        gone = {option for since, name, option in _IGNORED_FROM if name == plugin.name and RELEASES.index(since) <= at}
        plugin.options = [o for o in plugin.options if o.name not in gone]
        if plugin.name == "kubernetes" and at >= RELEASES.index("1.4.0"):
            for option in plugin.options:
                if option.name == "endpoint":
                    option.arguments = option.arguments[:1]
        if plugin.name == "proxy":
            plugin.options = [o for o in plugin.options if (o.name, o.arguments[:1]) != ("protocol", ["https_google"])]
    return server
