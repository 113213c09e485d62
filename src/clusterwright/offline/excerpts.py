"""Take from a large YAML text only the objects that an explanation needs: reading YAML costs more than explaining it.

`kubectl get -o yaml` writes a list whose items begin at the first column; other tools write documents between lines of `---`. Texts of
another form, and short ones, are left whole.
"""

from __future__ import annotations

from typing import Final

LARGE: Final = 1_000_000
"""The length of a text, in characters, from which an excerpt pays."""
_ITEMS: Final = "\nitems:\n- "
_EVERYWHERE: Final = frozenset(
    {
        "ClusterClass",
        "CustomResourceDefinition",
        "ExtensionConfig",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Observation",
        "ValidatingWebhookConfiguration",
    }
)
"""Kinds that matter to clusters of every namespace."""
_ANCHORS: Final = (": &", "- &")
"""An alias in one object may mean a value in another one."""
_PROVIDERS: Final = ("cluster.x-k8s.io/provider: ", "app.kubernetes.io/name: clusterwright")
"""In Deployments of providers, which have namespaces of their own."""


def excerpt(text: str, name: str, namespace: str = "") -> str:
    """Return the part of a text that matters to an object. Without a namespace, every namespace with an object of this name counts."""
    if len(text) < LARGE or any(mark in text for mark in _ANCHORS):
        return text
    listed = f"\n{text}".find(_ITEMS)
    if listed >= 0:
        head, items = text[: listed + len(_ITEMS) - 3], text[listed + len(_ITEMS) - 3 :]
        end = _end_of_list(items)
        parts, tail = [f"- {part}" for part in items[:end].removeprefix("- ").split("\n- ")], items[end:]
        chosen = _chosen(parts, name, namespace, indent="  ")
        return head + "\n".join(part.rstrip("\n") for part in chosen) + "\n" + tail if chosen else text
    documents = text.split("\n---")
    chosen = _chosen(documents, name, namespace, indent="")
    return "\n---".join(chosen) if len(documents) > 1 and chosen else text


def _end_of_list(items: str) -> int:
    """Return the position where the items end: the first line that begins with a letter."""
    at = items.find("\nkind: List")
    return at + 1 if at >= 0 else len(items)


def _chosen(parts: list[str], name: str, namespace: str, indent: str) -> list[str]:
    places = [_place(part, indent) for part in parts]
    wanted = {namespace} if namespace else {where for _, called, where in places if called == name}
    return [
        part
        for part, (kind, _, where) in zip(parts, places, strict=True)
        if not where or where in wanted or kind in _EVERYWHERE or (kind == "Deployment" and any(label in part for label in _PROVIDERS))
    ]


def _place(part: str, indent: str) -> tuple[str, str, str]:
    """Return kind, name and namespace of an object's text; each empty if it is not found."""
    metadata = part.find(f"\n{indent}metadata:\n")
    inner = f"{indent}  "
    block = ""
    if metadata >= 0:
        begin = part.index("\n", metadata + 1)
        end = begin
        while end >= 0 and part.startswith(f"\n{inner}", end):
            end = part.find("\n", end + 1)
        block = part[begin : end if end >= 0 else len(part)]
    return _value(part, f"\n{indent}kind: "), _value(block, f"\n{inner}name: "), _value(block, f"\n{inner}namespace: ")


def _value(text: str, key: str) -> str:
    at = text.find(key)
    if at < 0:
        return ""
    end = text.find("\n", at + 1)
    return text[at + len(key) : end if end >= 0 else len(text)].strip().strip("\"'")
