"""Flags of controllers, and the file that they may come from."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterwright.cli import grammar, settings, up
from clusterwright.controllers.kit.features import EMBEDDED_FEATURES


def _parse(argv: list[str]) -> Any:
    return up.check(grammar.parse("up", argv))


def parsed(tmp_path: Path, text: str, *flags: str) -> Any:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return _parse(["--config", str(file), *flags])


def test_options_of_controllers_are_flags() -> None:
    labels = [f"--additional-sync-machine-labels={pattern}" for pattern in ("a/.*", "b")]
    arguments = _parse(["--bootstrap-token-ttl", "1h30m", "--remote-conditions-grace-period=90s", *labels, "--tracing"])

    assert settings.controller_options(arguments) == {
        "bootstrap-token-ttl": timedelta(minutes=90),
        "remote-conditions-grace-period": timedelta(seconds=90),
        "additional-sync-machine-labels": ["a/.*", "b"],
    }
    assert arguments.tracing


def test_a_file_sets_values_that_flags_do_not_set(tmp_path: Path) -> None:
    text = """
    feature-gates: {ClusterTopology: true, MachinePool: false}
    concurrency: {machine: 3, cluster: 4}
    bootstrap-token-ttl: 20m
    remote-connection-grace-period: 40s
    additional-sync-machine-annotations: [a, b]
    leader-elect: true
    qps: 7
    log-level: debug
    data-dir: /somewhere
    """
    arguments = parsed(tmp_path, text, "--bootstrap-token-ttl=5m", "--concurrency", "machine=9")

    assert arguments.features == {**EMBEDDED_FEATURES, "ClusterTopology": True, "MachinePool": False}
    assert arguments.passes == {"machine": 9}
    assert (arguments.leader_elect, arguments.qps, arguments.log_level, arguments.data_dir) == (True, 7.0, "debug", Path("/somewhere"))
    assert settings.controller_options(arguments) == {
        "bootstrap-token-ttl": timedelta(minutes=5),
        "remote-connection-grace-period": timedelta(seconds=40),
        "additional-sync-machine-annotations": ["a", "b"],
    }


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert settings.controller_options(parsed(tmp_path, "")) == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bootstrap-token: 5m", "'bootstrap-token' is unknown; known: "),
        ("bootstrap-token-ttl: soon", "bootstrap-token-ttl: 'soon' is not a duration; write it as 90s, 15m or 1h30m"),
        ("bootstrap-token-ttl: 0s", "'0s' must be greater than zero"),
        ("additional-sync-machine-labels: ['(']", "is not a regular expression"),
        ("leader-elect: sure", "true or false is expected, not 'sure'"),
        ("log-level: loud", "'loud' is not one of debug, info, warning, error"),
        ("qps: [1, 2]", "one value is expected, not a list"),
        ("feature-gates: {Nothing: true}", "--feature-gates: 'Nothing' is not known"),
        ("[a, b]", "a mapping of flag names to values is expected"),
        ("a: [", "--config: "),
    ],
)
def test_errors_in_a_settings_file_are_reported(tmp_path: Path, capsys: Any, text: str, complaint: str) -> None:
    with pytest.raises(SystemExit):
        parsed(tmp_path, text)

    assert complaint in capsys.readouterr().err


def test_a_missing_settings_file_is_reported(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        _parse(["--config", "nowhere.yaml"])

    assert "nowhere.yaml: No such file or directory" in capsys.readouterr().err


def test_a_wrong_flag_is_reported(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        _parse(["--bootstrap-token-ttl", "5"])

    assert "'5' is not a duration" in capsys.readouterr().err
