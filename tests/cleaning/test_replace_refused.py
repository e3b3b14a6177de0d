"""A replacement that is not what it says, or not of this log, is refused: nothing has changed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from outside_rounds import KEY, STAGING_ID, Side
from test_replace_crashes import batches, staged

from stratalog.storage.commits.errors import (
    CommitError,
    CommitRefusedError,
    SourceChangedError,
    StagedFileError,
)
from stratalog.storage.commits.manifest import Manifest, PartitionManifest, Replacement
from stratalog.storage.commits.one_commit import Commit
from stratalog.storage.layout import staging_directory

STAGED = staging_directory("/data/t-0", STAGING_ID)


def with_part(
    manifest: Manifest, change: Callable[[PartitionManifest], PartitionManifest]
) -> Manifest:
    return replace(manifest, partitions=(change(manifest.partitions[0]),))


def with_group(
    manifest: Manifest, number: int, change: Callable[[Replacement], Replacement]
) -> Manifest:
    def changed(part: PartitionManifest) -> PartitionManifest:
        groups = list(part.groups)
        groups[number] = change(groups[number])
        return replace(part, groups=tuple(groups))

    return with_part(manifest, changed)


def check_refused(side: Side, manifest: Manifest, error: type[CommitError] = CommitError) -> None:
    before = batches(side)
    plain = {name for name in side.files.tree("/data/t-0") if not name.startswith(".stratalog")}
    with pytest.raises(error):
        side.manager.commits.run(manifest)
    assert batches(side) == before
    assert side.manager.get(KEY).failure is None
    after = {name for name in side.files.tree("/data/t-0") if not name.startswith(".stratalog")}
    assert after == plain
    assert side.manager.cleaner is not None
    assert side.manager.cleaner.states.is_free(KEY)


def test_a_bit_that_fell_over_in_a_staged_file_is_found() -> None:
    side, manifest = staged()
    file = manifest.partitions[0].groups[0].file
    path = f"{STAGED}/{file.name}"
    for position in [*range(22), *range(22, file.size_bytes, 7)]:
        side.files.flip(path, position, 1)
        check_refused(side, manifest, StagedFileError)
        side.files.flip(path, position, 1)
    side.manager.commits.run(manifest)


@pytest.mark.parametrize("how", ["removed", "cut", "written to"])
def test_a_staged_file_that_is_changed_behind_its_check_is_refused(how: str) -> None:
    side, manifest = staged()
    path = f"{STAGED}/{manifest.partitions[0].groups[0].file.name}"
    content, before = side.files.contents(path), batches(side)
    commit = planned(side, manifest)
    commit.check()
    if how == "removed":
        side.files.unlink(path)
    else:
        side.files.put(path, content[:-10] if how == "cut" else bytes(len(content)))
    commit.stop()
    with pytest.raises(StagedFileError, match="it was checked"):
        commit.settle()
    commit.abandon()
    assert batches(side) == before
    assert side.manager.directories[0].is_online
    assert side.manager.get(KEY).failure is None


def test_a_policy_that_changes_while_files_are_checked_keeps_every_record() -> None:
    side, manifest = staged()
    before = batches(side)
    commit = planned(side, manifest)
    commit.check()
    config = side.manager.get(KEY).config
    side.manager.configure(KEY.topic, replace(config, cleanup_policy=("delete",)))
    with pytest.raises(CommitRefusedError, match="is not compacted"):
        commit.stop()
    commit.abandon()
    assert batches(side) == before


def test_what_a_truncation_kept_from_being_replaced_is_not_clean() -> None:
    side, manifest = staged()
    log, directory = side.manager.get(KEY), side.manager.directories[0]
    commit = planned(side, manifest)
    commit.check()
    commit.stop()
    commit.settle()
    before = directory.cleaner_offset(KEY)
    assert log.truncate_to(log.log_end_offset - 1)
    commit.apply()
    commit.complete()
    commit.finish()
    assert directory.cleaner_offset(KEY) == before


def planned(side: Side, manifest: Manifest) -> Commit:
    found = side.manager.commits.plan(manifest)
    assert isinstance(found, Commit)
    return found


def test_a_source_that_is_not_what_it_was_is_refused() -> None:
    side, manifest = staged()
    for change in ({"size_bytes": 1}, {"last_offset": 1}, {"last_crc": 1}, {"base_offset": 1}):

        def altered(group: Replacement, change: dict[str, int] = change) -> Replacement:
            last = group.sources[-1]
            values = {name: getattr(last, name) + value for name, value in change.items()}
            return replace(group, sources=(*group.sources[:-1], replace(last, **values)))

        check_refused(side, with_group(manifest, -1, altered), CommitError)
    crc = with_group(
        manifest,
        0,
        lambda g: replace(
            g, sources=(replace(g.sources[0], last_crc=g.sources[0].last_crc ^ 1), *g.sources[1:])
        ),
    )
    check_refused(side, crc, SourceChangedError)


def test_groups_that_do_not_follow_each_other_or_end_elsewhere_are_refused() -> None:
    side, manifest = staged()
    for change in (
        lambda part: replace(part, groups=part.groups[::-1]),
        lambda part: replace(part, groups=(part.groups[0], *part.groups[2:])),
        lambda part: replace(part, cleaned_to=part.cleaned_to + 1),
        lambda part: replace(part, cleaned_to=-1),
        lambda part: replace(part, topic_id="AAAAAAAAAAAAAAAAAAAAAQ"),
    ):
        check_refused(side, with_part(manifest, change))


def test_counts_digests_and_files_must_be_right() -> None:
    side, manifest = staged()
    first = manifest.partitions[0].groups[0].file
    for file in (
        replace(first, record_count=first.record_count + 1),
        replace(first, digest="00000000"),
        replace(first, size_bytes=first.size_bytes - 1),
        replace(first, name="nowhere.log"),
        replace(first, base_offset=first.base_offset + 1),
        replace(first, has_aborts=not first.has_aborts),
    ):
        check_refused(side, with_group(manifest, 0, partial(replace, file=file)))


def test_a_log_that_is_not_compacted_any_more_is_refused() -> None:
    side, manifest = staged()
    config = side.manager.get(KEY).config.altered(cleanup_policy=("delete",))
    side.manager.configure("t", config)
    check_refused(side, manifest)
