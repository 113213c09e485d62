"""The page of all rules, as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clusterwright.conformance.evidence import ROLES, Rule
from clusterwright.conformance.rules import BEHAVIOUR, RULES

_HEAD = """# The conformance kit

Rendered from the code by `make docs`; do not edit.

The kit judges a provider of Cluster API in any language, through the API alone. It creates objects of the provider's kinds next to core
controllers, pauses, changes and deletes them, refuses writes of their status for a while, restarts the provider, and compares what happens
with the rules of the [contract](write-a-provider.md). Both contract versions are known; the labels of the definitions say which one holds.

    clusterwright up --audit-log audit.log                        # a plane; start the provider against it
    clusterwright conformance --infrastructure-machine-template machine.yaml \\
        --infrastructure-cluster-template cluster.yaml --restart-command ./restart.sh --audit-log audit.log

The first object of a FILE is judged: a template, or an object of the kind. The others, such as credentials, are created before and deleted
afterwards. A control plane is given as an object with `spec.version`, because templates have none.

The command exits with 0 if no rule is broken, with 3 if one is. `-o junit` and `-o json` are for CI. `--definitions-only` judges the
CustomResourceDefinitions of a provider that does not run. Everything that a run creates is named `conformance-XXXX-...` and is deleted at
its end; what the provider does not let go loses its finalizers.

In a test of a provider in Python, without a process and in virtual time:

    async with virtual_plane(crds=crds, setup=lambda manager: provider.add(manager, Racks)) as plane:
        judgement = await judge(plane, "InfraMachine", template)
    assert judgement.conforms, as_text([judgement])

`judge` and `virtual_plane` are in [`clusterwright.testing`](testing.md), `as_text` and `Options` in `clusterwright.conformance`.

Each rule ends in one of these states:

| State | Meaning |
|---|---|
| `ok` | nothing that breaks the rule was seen |
| `FAILED` | the rule is broken; the report says by what, and what to do |
| `advice` | nothing is broken, but users would gain from a change |
| `-` | not seen: the provider does not use the feature, or the run was not given what the check needs |

## What the kit cannot see

- What the provider has in its cloud: whether a second attempt makes a second machine, or whether a deleted object leaves something behind,
  unless a field of the object shows it.
- The Node: whether `spec.providerID` is that of the Node, and whether the bootstrap data were booted. A machine of the run boots a
  cloud-config that does nothing, or what `--bootstrap-data` names.
- Reads and, without `--audit-log`, writes that change nothing. Requests to other systems.
- Lost answers, stale caches and slow answers of the API server: only refused writes are played.
- Restarts, without `--restart-command`. A restart is played once over machines that are up and once while one is made, not at every step.
- Whether the machines of a pool run: a pool is judged by what it lists. IPAM: there are no rules for it yet.
- Machines of a control plane: a run waits until the object is initialized, and does not upgrade or scale it.
- Roles: the provider's own permissions. The run only asks whether core controllers have theirs.
"""


def as_markdown() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    behaviour = {rule.id for rule in BEHAVIOUR}
    for role in ROLES:
        yield f"## {role}\n"
        yield from _table(rule for rule in RULES if role in rule.roles and rule.id not in behaviour)
        yield ""
    yield "## Behaviour\n"
    yield "These hold for every role that the last column names.\n"
    yield "| Rule | What is checked | What to do | Roles |"
    yield "|---|---|---|---|"
    for rule in BEHAVIOUR:
        yield f"| {rule.id} {rule.title} | {_cell(rule.checked)} | {_cell(rule.fix)} | {', '.join(rule.roles)} |"


def _table(rules: Iterable[Rule]) -> Iterator[str]:
    yield "| Rule | Mandatory | What is checked | What to do |"
    yield "|---|---|---|---|"
    for rule in rules:
        yield f"| {rule.id} {rule.title} | {'yes' if rule.mandatory else 'no'} | {_cell(rule.checked)} | {_cell(rule.fix)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
