"""Machine names from templates in Go's language; what the language itself does is in test_gotemplate."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright.kubeadm.naming import BadNamingTemplate, machine_name, suffix

RANDOM = suffix("u", "s")


def name(template: str, **changes: Any) -> str:
    given: dict[str, Any] = {"template": template, "cluster": "c1", "control_plane": "kcp1", "uid": "u", "slot": "s", **changes}
    return machine_name(**given)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("", f"kcp1-{RANDOM}"),
        ("{{.cluster.name}}-{{.random}}", f"c1-{RANDOM}"),
        ("a {{- .random -}} b", f"a{RANDOM}b"),
        ('{{ printf "%s-%03d" .cluster.name 7 }}-{{ .random }}', f"c1-007-{RANDOM}"),
        ("{{ with .cluster }}{{ .name }}{{ end }}-{{ .random }}", f"c1-{RANDOM}"),
        ('{{ if eq .cluster.name "c1" }}first{{ else }}other{{ end }}-{{ .random }}', f"first-{RANDOM}"),
        ("{{ slice .kubeadmControlPlane.name 0 3 }}-{{ .random }}", f"kcp-{RANDOM}"),
    ],
)
def test_a_template_gives_the_name(template: str, expected: str) -> None:
    assert name(template) == expected


@pytest.mark.parametrize(
    "template", ["{{ .cluster.nobody }}", "{{ upper .cluster.name }}", "{{ .cluster.name", "{{ range 9999999 }}x{{ end }}"]
)
def test_a_template_without_a_valid_name_is_refused(template: str) -> None:
    with pytest.raises(BadNamingTemplate, match="machineNaming"):
        name(template + "-{{ .random }}")


@pytest.mark.parametrize("template", ["fixed{{/* {{ .random }} */}}", "fixed{{ if false }}{{ .random }}{{ end }}"])
def test_a_template_that_gives_only_a_taken_name_is_refused(template: str) -> None:
    assert name(template) == "fixed"
    with pytest.raises(BadNamingTemplate, match="same name"):
        name(template, taken={"fixed", "other"})
