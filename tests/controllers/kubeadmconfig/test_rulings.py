"""Where the requirement, other implementations and good sense differ, a ruling was made; each is pinned by a test of this name."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
RULINGS = {
    "a worker with joinConfiguration.controlPlane is refused before anything is created": "test_a_worker_with_a_control_plane_section_is_an_error",
    "a lock whose holder is gone is taken over in the same pass": "test_the_lock_of_a_machine_that_is_gone_is_taken_over_at_once",
    "a lock is never stolen from a living holder, deleting or not": "test_a_deleting_holder_keeps_the_lock_until_it_is_gone",
    "requeues are a net, what is waited for is watched": "test_a_config_does_not_wait_for_a_timer",
    "a deleting object is left alone": "test_a_config_that_is_deleted_is_left_alone",
    "a lost token of a Machine that is not built yet is made anew": "test_an_unused_lost_token_is_created_again",
    "a lost token of a Machine that is built is an error with advice": (
        "test_a_lost_token_of_a_machine_that_is_being_built_is_an_error_that_says_what_to_do"
    ),
    "v1beta1 CertificatesAvailable is set together with the v1beta2 one": "test_conditions_are_kept_after_a_restore_and_an_upgrade",
    "Ignition: ntp.enabled false disables": "test_disabled_ntp_is_disabled",
    "Ignition: layout false makes no partition, overwrite may be missing": (
        "test_layout_false_makes_no_partition_and_overwrite_may_be_missing"
    ),
    "Ignition: permissions may be missing": "test_a_file_without_permissions_is_0644",
    "a condition never set is initialised while the lock is held by another": ("test_of_two_control_plane_machines_only_one_gets_data"),
    "while the endpoint is missing, only CertificatesAvailable speaks": "test_a_joining_machine_waits_for_the_endpoint",
    "Ready is always the summary of its inputs": "test_row",
    "a token is not yet refreshed at exactly 5/6 of its TTL": "test_at_exactly_five_sixths_a_token_is_not_yet_prolonged",
    "a pool's old token stays until the new one exists": "test_a_rotation_that_fails_keeps_the_old_token",
    "serial numbers are positive and random": "test_serial_numbers_are_positive_and_differ",
}


@pytest.mark.parametrize("ruling", RULINGS)
def test_every_ruling_is_pinned(ruling: str) -> None:
    folders = (TESTS / "controllers" / "kubeadmconfig", TESTS / "kubeadm", TESTS / "seeds")
    text = "\n".join(path.read_text() for folder in folders for path in folder.glob("test_*.py"))

    assert f"def {RULINGS[ruling]}(" in text
