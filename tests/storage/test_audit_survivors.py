"""Rules that could be broken without any other test noticing."""

import pytest
from log_harness import batch, disk_of, new_log, read_all, reopened

from stratalog.storage.layout import segment_file


@pytest.mark.parametrize("clean", [True, False])
def test_a_lost_epoch_file_is_built_again_also_where_epoch_zero_is_the_only_one(
    clean: bool,
) -> None:
    log = new_log()
    log.append_as_leader(batch(2), leader_epoch=0)
    log.flush()
    path = f"{log.directory}/leader-epoch-checkpoint"
    if clean:
        log.close()
    disk_of(log).unlink(path)

    again = reopened(log, clean=clean)

    assert again.epochs.latest_epoch == 0
    assert disk_of(again).contents(path) == b"0\n1\n0 0\n"


@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_segment_that_a_given_up_roll_left_inside_the_log_hides_nothing(
    clean: bool,
) -> None:
    log = new_log()
    for _ in range(3):
        log.append_as_leader(batch(2))
    log.flush()
    stored = read_all(log)
    if clean:
        log.close()
    disk_of(log).put(segment_file(log.directory, 2, ".log"), b"")

    again = reopened(log, clean=clean)

    assert again.log_end_offset == 6
    assert read_all(again) == stored
    assert again.append_as_leader(batch()).first_offset == 6
