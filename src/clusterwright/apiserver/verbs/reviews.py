"""Reviews, which are answered but not stored: access, rules, tokens, the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver.auth.tokens import AUDIENCE
from clusterwright.apiserver.calls import Call
from clusterwright.apiserver.encoding.ordering import ordered_metadata
from clusterwright.apiserver.identity import User, user_info
from clusterwright.apiserver.managedfields import updating
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import bad_request, invalid, invalid_error
from clusterwright.apiserver.verbs import incoming, options
from clusterwright.golang.quoting import quote

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"


def _read(call: Call) -> Json:
    options.write_options(call, "CreateOptions")
    obj, duplicates = incoming.read_body(call)
    incoming.check_kind(call, obj)
    incoming.decode(call, obj, duplicates)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    if not isinstance(obj.get("spec"), dict):
        obj["spec"] = {}
    return obj


def _own(call: Call, obj: Json) -> None:
    """Add managedFields to a review, as kube-apiserver does."""
    server = call.server
    updating.update(None, obj, manager=call.manager, subresource="", time=server.timestamp(), handlers=call.versions)


def _info(spec: Json) -> RequestInfo:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource:
        return RequestInfo(
            path="",
            verb=resource.get("verb") or "",
            is_resource=True,
            group=resource.get("group") or "",
            version=resource.get("version") or "",
            namespace=resource.get("namespace") or "",
            resource=resource.get("resource") or "",
            name=resource.get("name") or "",
            subresource=resource.get("subresource") or "",
        )
    return RequestInfo(path=(path or {}).get("path") or "", verb=(path or {}).get("verb") or "")


def _check(call: Call, obj: Json) -> None:
    """Check a review; raises StatusError (422) without a kind, as upstream does."""
    spec, local = obj["spec"], call.resource.kind == "LocalSubjectAccessReview"
    errors = []
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    shown = {"Path": other.get("path") or "", "Verb": other.get("verb") or ""} if other is not None else None
    if resource is not None and other is not None:
        text = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid("spec.nonResourceAttributes", shown, text))
    if resource is None and other is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", None, text))
    if call.resource.kind in {"SubjectAccessReview", "LocalSubjectAccessReview"} and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    meta = obj["metadata"]
    if meta.keys() - ({"managedFields", "namespace"} if local else {"managedFields"}):
        errors.append(invalid("metadata", ordered_metadata(meta), "must be empty except for namespace" if local else "must be empty"))
    if local and resource is not None and (resource.get("namespace") or "") != (meta.get("namespace") or call.info.namespace):
        errors.append(invalid("spec.resourceAttributes.namespace", resource.get("namespace") or "", "must match metadata.namespace"))
    if local and other is not None:
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    if errors:
        raise invalid_error(call.resource.group, "", "", errors)


def _decide(call: Call, user: User, info: RequestInfo) -> Json:
    server = call.server
    if server.authorizer is not None and not server.authorizer.allows(server, user, info):
        return {"allowed": False}
    explain = getattr(server.authorizer, "reason", None)
    reason = explain(server, user, info) if explain is not None else ""
    return {"allowed": True, "reason": reason} if reason else {"allowed": True}


async def self_subject_access_review(call: Call) -> Response:
    """Answer a SelfSubjectAccessReview."""
    obj = await call.off(_read, call)
    _own(call, obj)
    _check(call, obj)
    obj["status"] = _decide(call, call.user, _info(obj["spec"]))
    return call.answer(201, obj)


async def subject_access_review(call: Call) -> Response:
    """Answer a SubjectAccessReview."""
    obj = await call.off(_read, call)
    _own(call, obj)
    _check(call, obj)
    spec = obj["spec"]
    user = User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "")
    obj["status"] = _decide(call, user, _info(spec))
    return call.answer(201, obj)


async def self_subject_rules_review(call: Call) -> Response:
    """Answer a SelfSubjectRulesReview."""
    obj = await call.off(_read, call)
    namespace = obj["spec"].get("namespace") or ""
    if not namespace:
        raise bad_request("no namespace on request")
    rules = getattr(call.server.authorizer, "rules", None)
    found: list[Any] = list(rules(call.server, call.user, namespace)) if rules is not None else []
    everything = call.server.authorizer is None
    resource_rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}] if everything else []
    url_rules: list[Json] = [{"verbs": ["*"], "nonResourceURLs": ["*"]}] if everything else []
    for rule in found:
        if rule.non_resource_urls:
            url_rules.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)})
        else:
            shown: Json = {"verbs": list(rule.verbs), "apiGroups": list(rule.api_groups), "resources": list(rule.resources)}
            if rule.resource_names:
                shown["resourceNames"] = list(rule.resource_names)
            resource_rules.append(shown)
    status = {"resourceRules": resource_rules, "nonResourceRules": url_rules, "incomplete": False}
    answer = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, "metadata": {}, "spec": {}, "status": status}
    return call.answer(201, answer)


async def self_subject_review(call: Call) -> Response:
    """Answer a SelfSubjectReview."""
    obj = await call.off(_read, call)
    obj["metadata"].setdefault("creationTimestamp", call.server.timestamp())
    obj.pop("spec", None)
    obj["status"] = {"userInfo": user_info(call.user)}
    return call.answer(201, obj)


async def token_review(call: Call) -> Response:
    """Answer a TokenReview."""
    obj = await call.off(_read, call)
    token = obj["spec"].get("token") or ""
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    _own(call, obj)
    wanted = [str(a) for a in obj["spec"].get("audiences") or ()] or [AUDIENCE]
    found = call.server.tokens.review(token, wanted) if call.server.tokens is not None else None
    if found is None and (user := call.server.token_user(token)) is not None:
        found = user, [a for a in wanted if a == AUDIENCE]  # credentials without audiences are for the API server
    if found is None:
        obj["status"] = {"user": {}, "error": "invalid bearer token"}
    elif not found[1]:
        shown = f"token audiences are invalid for the target audiences [{' '.join(map(quote, wanted))}]"
        obj["status"] = {"user": {}, "error": f"[invalid bearer token, {shown}]"}
    else:
        obj["status"] = {"authenticated": True, "user": user_info(found[0]), "audiences": found[1]}
    return call.answer(201, obj)


ROUTES: Final[Mapping[tuple[str, str], Callable[[Call], Awaitable[Response]]]] = {
    (_AUTHORIZATION, "selfsubjectaccessreviews"): self_subject_access_review,
    (_AUTHORIZATION, "subjectaccessreviews"): subject_access_review,
    (_AUTHORIZATION, "localsubjectaccessreviews"): subject_access_review,
    (_AUTHORIZATION, "selfsubjectrulesreviews"): self_subject_rules_review,
    (_AUTHENTICATION, "selfsubjectreviews"): self_subject_review,
    (_AUTHENTICATION, "tokenreviews"): token_review,
}
"""The reviews by group and plural: they are answered, not stored."""
