"""Validate a KubeadmConfigSpec in any kind that contains one: the rows KS-1 to KS-19."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from clusterwright.admission.rule import Fault, Guard, Review, Rule, at
from clusterwright.admission.sets import FORBIDDEN, INVALID, REQUIRED, is_filled
from clusterwright.admission.showing import as_written
from clusterwright.api.meta import Json
from clusterwright.apiserver.status import Verbatim
from clusterwright.kubeadm.tokens import parse_token

GATE: Final = "KubeadmBootstrapFormatIgnition"
_GATE_OFF: Final = f"can be set only if the {GATE} feature gate is enabled"
_NOT_WITH_IGNITION: Final = 'not supported when spec.format is set to: "ignition"'
_HEALTH_CHECK: Final = ("timeouts", "controlPlaneComponentHealthCheckSeconds")


def kubeadm_config_spec(ids: str, where: tuple[str, ...], *, control_plane: bool = False, **options: Any) -> tuple[Rule, ...]:
    """Return the rows for a spec at a path; `control_plane` for kinds that create control planes."""
    spec = ".".join(where)

    def ignition(guard: Callable[[Any], bool]) -> Guard:
        """Return the rows for specs that are rendered as Ignition; they apply only to those."""
        return lambda r, v: r.enabled(GATE) and at(r.new, *where, "format") == "ignition" and guard(v)

    def row(id: str, *parts: Any, **more: Any) -> Rule:
        return Rule(f"{ids} {id}", *parts, **(options | more))

    def secret(first: int, source: str) -> tuple[Rule, ...]:
        return tuple(
            row(f"KS-{first + n}", REQUIRED, f"{spec}.{source}", _lacks_secret(key), f"secret file source must specify non-empty secret {key}",
                path=f"{spec}.{source.replace('[]', '[{}]')}.secret.{key}")
            for n, key in enumerate(("name", "key"))
        )  # fmt: skip

    rows = (
        row("KS-1", INVALID, f"{spec}.files[]", _both("content", "contentFrom"), "only one of content or contentFrom may be specified for a single file"),
        *secret(2, "files[].contentFrom"),
        row("KS-4", INVALID, f"{spec}.files", _repeated_paths(where), "path property must be unique among all files", path=f"{spec}.files[{{}}].path"),
        row("KS-5", INVALID, f"{spec}.users[]", _both("passwd", "passwdFrom"), "only one of passwd or passwdFrom may be specified for a single user"),
        *secret(6, "users[].passwdFrom"),
        row("KS-8", FORBIDDEN, f"{spec}.format", lambda r, v: v == "ignition" and not r.enabled(GATE), _GATE_OFF),
        row("KS-9", FORBIDDEN, f"{spec}.ignition", lambda r, v: is_filled(v) and not r.enabled(GATE), _GATE_OFF),
        row("KS-10", INVALID, f"{spec}.format", _no_ignition(where), 'must be set to "ignition" if spec.ignition is set'),
        row("KS-11", FORBIDDEN, f"{spec}.users[].inactive", ignition(bool), _NOT_WITH_IGNITION),
        row("KS-12", FORBIDDEN, f"{spec}.files[].encoding", ignition(lambda v: v in ("gzip", "gzip+base64")), _NOT_WITH_IGNITION),
        row("KS-13", FORBIDDEN, f"{spec}.bootCommands", ignition(lambda v: v is not None), _NOT_WITH_IGNITION),
        row("KS-14", INVALID, f"{spec}.diskSetup.partitions[].tableType", ignition(lambda v: bool(v) and v != "gpt"),
            'only partition type "gpt" is supported when spec.format is set to "ignition"'),
        row("KS-15", FORBIDDEN, f"{spec}.diskSetup.filesystems[].replaceFS", ignition(bool), _NOT_WITH_IGNITION),
        row("KS-16", FORBIDDEN, f"{spec}.diskSetup.filesystems[].partition", ignition(bool), _NOT_WITH_IGNITION),
        row("KS-17", INVALID, f"{spec}.diskSetup.partitions[].diskLayout", _over_full, "the sum of all partition percentages must not be greater than 100"),
        # the path is spelled like this by everyone who has reported it so far
        row("KS-18", INVALID, f"{spec}.joinConfiguration.discovery.file.kubeConfig.user", _both("authProvider", "exec"),
            "only one of authProvider or exec must be defined", path=f"{spec}.joinConfiguration.discovery.file.kubeconfig.user"),
    )  # fmt: skip
    if not control_plane:
        return rows
    unequal = (
        "controlPlaneComponentHealthCheckSeconds must be set to the same value both in "
        "initConfiguration.timeouts ({init}) and in joinConfiguration.timeouts ({join})"
    )
    checks = tuple(
        row("KS-19", INVALID, spec, _unequal_checks(n), unequal, path=".".join((spec, section, *_HEALTH_CHECK)))
        for n, section in enumerate(("initConfiguration", "joinConfiguration"))
    )
    return (*rows, *checks)


def _both(one: str, other: str) -> Guard:
    return lambda _, value: is_filled(at(value, one)) and is_filled(at(value, other))


def _lacks_secret(key: str) -> Guard:
    return lambda _, value: is_filled(value) and not at(value, "secret", key)


def _repeated_paths(where: tuple[str, ...]) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        known: set[str] = set()
        for n, file in enumerate(value or ()):
            path = file.get("path") or ""
            if path in known:
                shown = as_written(review.new, review.model, (*where, "files", ("",)), (n,)) if review.model is not None else file
                yield Fault(Verbatim(shown), at=(n,))
            known.add(path)

    return guard


def _no_ignition(where: tuple[str, ...]) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        if is_filled(at(review.new, *where, "ignition")) and value != "ignition" and review.enabled(GATE):
            yield Fault(value or "")

    return guard


def _over_full(review: Review, value: Any) -> Iterator[Fault]:
    del review
    total = sum(part.get("percentage") or 0 for part in value or ())
    if total > 100:
        yield Fault(total)


def _unequal_checks(shown: int) -> Guard:
    def guard(review: Review, value: Any) -> Iterator[Fault]:
        del review
        seconds = [at(value, section, *_HEALTH_CHECK) for section in ("initConfiguration", "joinConfiguration")]
        if seconds[0] != seconds[1]:
            texts = ["unset" if s is None else str(s) for s in seconds]
            yield Fault(texts[shown], init=texts[0], join=texts[1])

    return guard


def require_tokens(*where: str) -> Callable[[Json], None]:
    """Return a reader that refuses malformed tokens, which their type cannot hold. Raises ValueError (a TokenError)."""

    def readable(obj: Json) -> None:
        for token in at(obj, *where, "initConfiguration", "bootstrapTokens") or ():
            parse_token(str(token.get("token") or ""))

    return readable


def with_former_defaults(spec: Mapping[str, Any]) -> Json:
    """Return the spec with the defaults of earlier releases; apply it to both specs before comparing them."""
    out: Json = {"format": "cloud-config"} | dict(spec)
    for section in ("initConfiguration", "joinConfiguration"):
        settings = dict(out.get(section) or {})
        settings["nodeRegistration"] = {"imagePullPolicy": "IfNotPresent"} | dict(settings.get("nodeRegistration") or {})
        out[section] = settings
    exec_ = at(out, "joinConfiguration", "discovery", "file", "kubeConfig", "user", "exec")
    if exec_:
        node = out["joinConfiguration"]
        for step in ("discovery", "file", "kubeConfig", "user"):
            node[step] = dict(node[step])
            node = node[step]
        node["exec"] = {"apiVersion": "client.authentication.k8s.io/v1"} | dict(exec_)
    return out
