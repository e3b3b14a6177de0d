"""Logs that we own and that others own in between: no reader is ever misled by time ranges."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from log_harness import DIRECTORY, START_MS, disk_of, new_log, reopened, timed_batch

from stratalog.records import Codec, Record, build_batch, read_headers
from stratalog.storage.layout import LOG_SUFFIX, segment_file
from stratalog.storage.log import Log
from stratalog.testing import CrashMode, SimulatedFileSystem
from stratalog.testing.time_ranges import believed_ranges, false_ranges

CONFIG = {
    "index_interval_bytes": 128,
    "internal_segment_bytes": 3000,
    "segment_index_bytes": 6000,
}
OWN = f"{DIRECTORY}/.stratalog"

Act = Callable[[Log], Log]
draws = st.integers(0, 10_000)


# --- what we do ---------------------------------------------------------------------------------


def appending(count: int, seed: int) -> Act:
    def act(log: Log) -> Log:
        for number in range(count):
            late = START_MS + (seed * 7919 + number * 104_729) % 1000
            codec = list(Codec)[(seed + number) % 5]
            log.append_as_leader(timed_batch([late, late - seed % 50], codec=codec))
        log.flush()
        log.update_high_watermark(log.log_end_offset)
        return log

    return act


def cutting(share: int) -> Act:
    def act(log: Log) -> Log:
        log.truncate_to(log.log_end_offset * share // 100)
        return log

    return act


def rolling(log: Log) -> Log:
    log.roll()
    return log


def deleting(log: Log) -> Log:
    log.delete_segments(list(log.segments)[:-1][:1])
    return log


def killing(log: Log) -> Log:
    return reopened(log, clean=False)


def losing_power(mode: CrashMode, seed: int) -> Act:
    def act(log: Log) -> Log:
        return reopened(log, clean=False, files=disk_of(log).after_crash(mode, seed))

    return act


# --- what others do while it is not ours --------------------------------------------------------


def last_log(files: SimulatedFileSystem) -> str:
    names = [e.name for e in files.list(DIRECTORY) if e.name.endswith(LOG_SUFFIX)]
    return f"{DIRECTORY}/{max(names)}"


def cut_and_appended(files: SimulatedFileSystem, seed: int) -> None:
    """An owner that recovers, or follows another leader: to the byte as long as it was."""
    path = last_log(files)
    headers = read_headers(files.contents(path))
    if not headers:
        return
    first = headers[seed % len(headers)]
    file = files.open(path)
    file.truncate(first.position)
    position = first.position
    for header in headers[seed % len(headers) :]:
        late = START_MS - 5000 - seed
        rows = [Record(b"k", b"v", (), late), Record(b"k", b"v", (), late - seed % 50)]
        batch = build_batch(rows, base_offset=header.base_offset, leader_epoch=0)
        file.write_at(position, [batch])
        position += len(batch)
    file.sync()
    file.close()


def cleaned(files: SimulatedFileSystem, seed: int) -> None:
    """A cleaner: other bytes in another file, of the same name and modification time."""
    path = last_log(files)
    content = files.contents(path)
    headers = read_headers(content)
    entry = files.stat(path)
    if len(headers) < 3 or entry is None:
        return
    gone = headers[seed % (len(headers) - 1)]
    late = [Record(b"k", b"v", (), START_MS - 9000)]
    kept = content[: gone.position] + content[gone.position + gone.size_bytes :]
    if seed % 2:
        smaller = build_batch(late, base_offset=gone.base_offset, last_offset_delta=1)
        rest = content[gone.position + gone.size_bytes :]
        kept = content[: gone.position] + smaller + rest
    files.put(path + ".swap", kept)
    files.set_modified(path + ".swap", entry.modified_ms)
    files.rename(path + ".swap", path)
    for suffix in (".index", ".timeindex"):
        files.unlink(path.removesuffix(LOG_SUFFIX) + suffix, missing_ok=True)


def side_cars_restored(files: SimulatedFileSystem, seed: int) -> None:
    """Those of one segment for those of another: somebody mixed up two backups."""
    if not files.exists(OWN):
        return
    names = sorted(e.name for e in files.list(OWN) if e.name.endswith(".timeranges"))
    for name, other in zip(names, names[seed % max(len(names), 1) :] + names, strict=False):
        files.put(f"{OWN}/{name}", files.contents(f"{OWN}/{other}"))


def by_others(what: Callable[[SimulatedFileSystem, int], None], seed: int) -> Act:
    def act(log: Log) -> Log:
        log.close()
        files = disk_of(log)
        what(files, seed)
        assert not false_ranges(files, DIRECTORY)
        again = reopened(log, clean=False, recovery_point=0)
        if again.is_damaged:
            # Nothing more can be done with it, and what it has is to be believed all the same.
            assert not false_ranges(files, DIRECTORY, is_active=True)
            return new_log(**CONFIG)
        return again

    return act


acts: st.SearchStrategy[Act] = st.one_of(
    st.builds(appending, st.integers(1, 25), draws),
    st.builds(appending, st.integers(1, 25), draws),
    st.builds(cutting, st.integers(0, 100)),
    st.sampled_from((rolling, deleting, killing, reopened)),
    st.builds(losing_power, st.sampled_from(CrashMode), draws),
    st.builds(by_others, st.sampled_from((cut_and_appended, cleaned, side_cars_restored)), draws),
)


@given(st.lists(acts, min_size=1, max_size=12))
def test_ranges_that_are_believed_are_true_through_any_history(history: list[Act]) -> None:
    log = appending(20, 1)(new_log(**CONFIG))
    for act in history:
        if log.is_damaged or log.is_closed:
            return
        log = act(log)
        assert not false_ranges(log.context.files, DIRECTORY, is_active=True)
    if not log.is_damaged:
        log.close()
        assert not false_ranges(log.context.files, DIRECTORY)


def test_the_histories_have_ranges_to_be_misled_by() -> None:
    log = appending(60, 3)(new_log(**CONFIG))
    assert len(believed_ranges(disk_of(log), DIRECTORY)) >= 1
    log = by_others(cleaned, 4)(log)
    log = appending(60, 5)(log)
    log = by_others(cut_and_appended, 2)(log)
    log.close()
    files = disk_of(log)
    assert len(believed_ranges(files, DIRECTORY)) >= 2
    assert files.exists(segment_file(DIRECTORY, 0, LOG_SUFFIX))
