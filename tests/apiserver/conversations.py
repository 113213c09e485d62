"""Conversations made at random by a seed: creates, applies of several managers, patches of every kind and updates of one object.

What is sent is half sense and half nonsense: most differences between servers are in how they say no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

Json = dict[str, Any]
Choices = Mapping[str, Sequence[Any]]
"""Values by field; one that is a function makes one."""
NAMESPACE: Final = "/namespaces/${ns}/"
MEDIA: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
    "strategic": "application/strategic-merge-patch+json",
}


def some(random: Random, choices: Choices, chance: float) -> Json:
    """Some of the fields, each with one of its values."""
    return {
        field: made(random) if callable(made := random.choice(values)) else made
        for field, values in choices.items()
        if random.random() < chance
    }


def each(choices: Choices, chance: float = 0.6, most: int = 2) -> Callable[[Random], list[Json]]:
    """Lists of such objects."""
    return lambda random: [some(random, choices, chance) for _ in range(random.randrange(most + 1))]


def one(choices: Choices, chance: float = 0.5) -> Callable[[Random], Json]:
    """Such an object."""
    return lambda random: some(random, choices, chance)


METADATA: Final[Choices] = {
    "labels": [{}, {"a": "1"}, {"a": "2", "b": "x"}],
    "annotations": [{"n": ""}, {"n": "1", "m": "2"}],
    "finalizers": [["a.io/x"], []],
}
WIDGET: Final[Choices] = {
    "color": ["red", "green", "pink", 1], "size": [0, 3, 101, "x", None], "title": ["", "a"], "replicas": [0, 2, -1],
    "ports": [each({"port": [80, 81], "protocol": ["TCP", "UDP"], "name": ["x", "y"]}, 0.8), [], 5],
    "parts": [each({"name": ["p", "q"], "count": [0, 1], "labels": [{"a": "1"}, {}]}, 0.8)],
    "tags": [["t1"], ["t1", "t2"], ["t1", "t1"], [], True], "args": [["x"], []], "config": [{"k": "v"}, {"": "e"}, {}, {"a": 1}],
    "selector": [{"mode": "m"}, {"matchLabels": {"a": "1"}}, {}], "nested": [{"a": "1", "deep": {"x": 1}}, {"b": None}, "x"],
}  # fmt: skip
FORM: Final[Choices] = {
    "color": ["red", "pink"], "code": ["abc", "ABC", ""], "title": ["ab", "a", "abcdef"], "size": [1, 11, 1.0, "1"],
    "small": [1, 2**31], "ratio": [0, 0.5, 1], "even": [2, 3], "flag": [True, "true"], "list": [[], ["a"], ["a", "b", "c"], "a", None],
    "set": [["a", "a"], ["a", "b"]], "keyed": [[{"name": "a"}], [{"name": "a"}, {"name": "a"}], [{}], [None]],
    "limit": [1, "10%", 1.5, True], "options": [{}, {"a": {}}, {"a": None}, {"a": {}, "b": {}, "c": {}}], "strict": [{}, {"a": "x"}, {"b": "x"}],
    "either": [{}, {"x": 1}, {"x": 1, "y": 2}], "forbidden": ["bad", "good"], "note": [None, "x", 1], "nonNullDefault": [None, "x"],
    "nullDefault": [None, "x"], "defaults": [{}, None, {"a": None}], "filled": [{}, None], "preset": [{}, {"a": None}],
    "when": ["2020-01-01T00:00:00Z", "2020-01-01", "x"], "duration": ["1h", "5", "P1D", "1h1x", "3 days"],
    "ip": ["1.2.3.4", "1.2.3", "01.2.3.4"], "bytes": ["YQ==", "YQ", ""], "open": [{"x": 1}, {"known": {"b": 1}}, None],
}  # fmt: skip
RULED: Final[Choices] = {
    "min": [1, 5], "max": [3, 0], "fixed": ["a", "b"], "grow": [1, 5, 20], "name": ["app-x", "x", "app-.."], "mode": ["port", "x"],
    "port": [1], "hosts": [["a.b"], ["A"], ["a", "B"]], "weights": [{"a": 1}, {"a": 0}], "quantity": [1, 0, "1Gi", "-1", "x"], "extra": ["e"],
}  # fmt: skip
CONTAINER: Final[Choices] = {
    "name": ["a", "b"], "image": ["i", "j"], "args": [["x"]], "env": [each({"name": ["E", "F"], "value": ["1", "2"]}, 0.9)],
    "ports": [each({"containerPort": [80, 81, 0], "protocol": ["TCP", "X"], "name": ["p"]}, 0.8)], "imagePullPolicy": ["Always", "Foo"],
    "resources": [{"limits": {"cpu": "1000m", "memory": "1Gi"}}, {"limits": {"cpu": 2}}], "securityContext": [{"runAsUser": 1}, {"runAsUser": -1}],
    "volumeMounts": [[{"name": "v", "mountPath": "/a"}], [{"name": "zz", "mountPath": "/a"}]],
}  # fmt: skip
POD: Final[Choices] = {
    "volumes": [[{"name": "v", "emptyDir": {}}], [{"name": "v"}]], "nodeSelector": [{"a": "b"}], "restartPolicy": ["Always", "Never", "X"],
    "tolerations": [each({"key": ["k"], "operator": ["Exists", "X"], "effect": ["NoSchedule", "Z"]}, 0.7, 1)],
}  # fmt: skip
DEPLOYMENT: Final[Choices] = {
    "replicas": [0, 3, -1], "minReadySeconds": [5, -1], "paused": [True],
    "strategy": [{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 1}}, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}],
}  # fmt: skip
EVENT: Final[Choices] = {
    "reason": ["R"], "message": ["m"], "type": ["Normal", "X"], "count": [1], "eventTime": ["2020-01-01T00:00:00.000000Z", "x"],
    "action": ["A"], "reportingComponent": ["c", "C!"], "reportingInstance": ["i"],
    "involvedObject": [{"kind": "Pod", "namespace": "${ns}"}, {"kind": "Pod", "namespace": "default"}, {"kind": "Pod"}],
}  # fmt: skip
SUBJECT: Final[Choices] = {
    "kind": ["User", "ServiceAccount", "X"], "name": ["a", ""], "namespace": ["default"], "apiGroup": ["rbac.authorization.k8s.io", ""],
}  # fmt: skip
RULE: Final[Choices] = {"verbs": [["get"], []], "apiGroups": [[""], []], "resources": [["pods"], []], "nonResourceURLs": [["/x"]]}
LEASE: Final[Choices] = {
    "holderIdentity": ["a", ""], "leaseDurationSeconds": [1, 0], "leaseTransitions": [2, -1], "strategy": ["OldestEmulationVersion"],
    "acquireTime": ["2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00Z", "x"],
}  # fmt: skip
REFERENCE: Final[Choices] = {"apiGroup": ["rbac.authorization.k8s.io", "x"], "kind": ["Role", "X"], "name": ["r", "s", ""]}
BUDGET: Final[Choices] = {
    "minAvailable": [1, "50%", "x", -1], "maxUnavailable": [0], "unhealthyPodEvictionPolicy": ["AlwaysAllow", "X"],
    "selector": [{"matchLabels": {"a": "b"}}, {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}],
}  # fmt: skip


def _deployment(random: Random) -> Json:
    pods = {"containers": [some(random, CONTAINER, 0.25) | {"name": random.choice("ab"), "image": "i"}], **some(random, POD, 0.2)}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pods}
    return {"spec": {**some(random, DEPLOYMENT, 0.25), "selector": {"matchLabels": {"a": random.choice("bbbc")}}, "template": template}}


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind, where it is served, and what makes the rest of such an object."""

    group_version: str
    kind: str
    plural: str
    make: Callable[[Random], Json]

    @property
    def path(self) -> str:
        return f"/{'apis' if '/' in self.group_version else 'api'}/{self.group_version}{NAMESPACE}{self.plural}"


def _spec(choices: Choices, chance: float, **always: Any) -> Callable[[Random], Json]:
    return lambda random: {"spec": always | some(random, choices, chance)}


SUBJECTS: Final = (
    Subject("widgets.example.com/v1", "Widget", "widgets", _spec(WIDGET, 0.25, color="red")),
    Subject("widgets.example.com/v1", "Form", "forms", _spec(FORM, 0.12, color="red")),
    Subject("widgets.example.com/v1", "Ruled", "ruleds", _spec(RULED, 0.3)),
    Subject("apps/v1", "Deployment", "deployments", _deployment),
    Subject("v1", "ConfigMap", "configmaps", one({"data": [{"a": "1"}, {"c d": "x"}, {"n": 5}], "binaryData": [{"b": "YQ=="}, {"b": "%"}]})),
    Subject("v1", "Secret", "secrets", one({"data": [{"a": "YQ=="}, {"a": "!"}], "stringData": [{"a": "x"}], "type": ["Opaque", "a/b"]})),
    Subject("v1", "Event", "events", one(EVENT, 0.6)),
    Subject("rbac.authorization.k8s.io/v1", "Role", "roles", one({"rules": [each(RULE, 0.7)]}, 0.9)),
    Subject(
        "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", one({"subjects": [each(SUBJECT, 0.8)], "roleRef": [one(REFERENCE, 0.9)]}, 0.9)
    ),
    Subject("coordination.k8s.io/v1", "Lease", "leases", _spec(LEASE, 0.5)),
    Subject("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", _spec(BUDGET, 0.5)),
)  # fmt: skip


def _step(random: Random, subject: Subject) -> Json:
    path, named = subject.path, f"{subject.path}/x"
    body = {"metadata": {"name": "x", **some(random, METADATA, 0.15)}, **subject.make(random)}
    whole = {"apiVersion": subject.group_version, "kind": subject.kind, **body}
    query: Json = {"fieldValidation": random.choice(["Strict", "Ignore"])} if random.random() < 0.15 else {}
    verb = random.choices(["create", "apply", "merge", "json", "strategic", "update", "delete"], [3, 5, 3, 1, 2, 2, 1])[0]
    if verb == "strategic" and "." in subject.group_version and subject.group_version.endswith("example.com/v1"):
        verb = "merge"
    if verb == "create":
        return {"method": "POST", "path": path, "body": whole, "query": query}
    if verb == "update":
        return {"method": "PUT", "path": named, "body": whole, "query": query}
    if verb == "delete":
        return {"method": "DELETE", "path": named}
    patch: Any = whole if verb == "apply" else body
    if verb == "apply":
        query |= {"fieldManager": random.choice(["m1", "m2"])} | ({"force": "true"} if random.random() < 0.4 else {})
    if verb == "json":
        field = random.choice([*body, "nothing"])
        patch = [{"op": random.choice(["add", "replace", "remove", "test"]), "path": f"/{field}", "value": body.get(field)}]
    return {"method": "PATCH", "path": named, "body": patch, "query": query, "headers": {"Content-Type": MEDIA[verb]}}


def conversation(subject: Subject, seed: int) -> Json:
    """A scenario of the recorded kind, without its answers."""
    random = Random(f"{subject.kind} {seed}")
    steps = [_step(random, subject) for _ in range(random.randrange(5, 10))]
    steps.append({"method": "GET", "path": f"{subject.path}/x"})
    return {"name": f"{subject.plural}-{seed}", "area": "random", "description": "", "steps": [{"request": step} for step in steps]}
