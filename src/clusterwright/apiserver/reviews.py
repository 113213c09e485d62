"""Kinds that are asked, not stored: access reviews, token reviews, who am I."""

from __future__ import annotations

from typing import Any

from clusterwright.api.meta import Json
from clusterwright.api.wire import Response
from clusterwright.apiserver import subresources, writes
from clusterwright.apiserver.calls import Call, read_body, write_options
from clusterwright.apiserver.identity import User
from clusterwright.apiserver.requestinfo import RequestInfo
from clusterwright.apiserver.status import invalid, invalid_error, required

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"


def _read(call: Call) -> Json:
    write_options(call, "CreateOptions")
    obj, duplicates = read_body(call)
    writes.check_kind(call, obj)
    writes.decode(call, obj, duplicates)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    if not isinstance(obj.get("spec"), dict):
        obj["spec"] = {}
    return obj


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


def _check_spec(call: Call, obj: Json) -> None:
    spec = obj["spec"]
    errors = []
    if spec.get("resourceAttributes") and spec.get("nonResourceAttributes"):
        text = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], text))
    if not spec.get("resourceAttributes") and not spec.get("nonResourceAttributes"):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", spec.get("nonResourceAttributes"), text))
    if call.resource.kind in {"SubjectAccessReview", "LocalSubjectAccessReview"} and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    if errors:
        raise invalid_error(call.resource.group, call.resource.kind, "", errors)


def _decide(call: Call, user: User, info: RequestInfo) -> Json:
    server = call.server
    if server.authorizer is not None and not server.authorizer.allows(server, user, info):
        return {"allowed": False}
    explain = getattr(server.authorizer, "reason", None)
    reason = explain(server, user, info) if explain is not None else ""
    return {"allowed": True, "reason": reason} if reason else {"allowed": True}


async def self_subject_access_review(call: Call) -> Response:
    """May I?"""
    obj = _read(call)
    _check_spec(call, obj)
    obj["status"] = _decide(call, call.user, _info(obj["spec"]))
    return call.answer(201, obj)


async def subject_access_review(call: Call) -> Response:
    """May they?"""
    obj = _read(call)
    _check_spec(call, obj)
    spec = obj["spec"]
    user = User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "")
    info = _info(spec)
    if call.resource.kind == "LocalSubjectAccessReview" and info.namespace != call.info.namespace:
        text = f"must match metadata.namespace: {call.info.namespace}"
        error = invalid("spec.resourceAttributes.namespace", info.namespace, text)
        raise invalid_error(call.resource.group, call.resource.kind, "", [error])
    obj["status"] = _decide(call, user, info)
    return call.answer(201, obj)


async def self_subject_rules_review(call: Call) -> Response:
    """What may I do in a namespace?"""
    obj = _read(call)
    namespace = obj["spec"].get("namespace") or ""
    if not namespace:
        raise invalid_error(call.resource.group, call.resource.kind, "", [required("spec.namespace")])
    rules = getattr(call.server.authorizer, "rules", None)
    found: list[Any] = list(rules(call.server, call.user, namespace)) if rules is not None else []
    everything = call.server.authorizer is None or "system:masters" in call.user.groups
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
    obj["status"] = {"resourceRules": resource_rules, "nonResourceRules": url_rules, "incomplete": False}
    return call.answer(201, obj)


def user_info(user: User) -> Json:
    """A user as authentication.k8s.io shows it."""
    info: Json = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {k: list(v) for k, v in user.extra.items()}
    return info


async def self_subject_review(call: Call) -> Response:
    """Who am I?"""
    obj = _read(call)
    obj["metadata"].setdefault("creationTimestamp", call.server.timestamp())
    obj.pop("spec", None)
    obj["status"] = {"userInfo": user_info(call.user)}
    return call.answer(201, obj)


async def token_review(call: Call) -> Response:
    """Whose token is this?"""
    obj = _read(call)
    token = obj["spec"].get("token") or ""
    if not token:
        raise invalid_error(call.resource.group, call.resource.kind, "", [required("spec.token")])
    user = call.server.token_user(token)
    if user is None:
        obj["status"] = {"user": {}, "error": "invalid bearer token"}
    else:
        obj["status"] = {"authenticated": True, "user": user_info(user)}
    return call.answer(201, obj)


subresources.CREATES.update(
    {
        (_AUTHORIZATION, "selfsubjectaccessreviews"): self_subject_access_review,
        (_AUTHORIZATION, "subjectaccessreviews"): subject_access_review,
        (_AUTHORIZATION, "localsubjectaccessreviews"): subject_access_review,
        (_AUTHORIZATION, "selfsubjectrulesreviews"): self_subject_rules_review,
        (_AUTHENTICATION, "selfsubjectreviews"): self_subject_review,
        (_AUTHENTICATION, "tokenreviews"): token_review,
    }
)
