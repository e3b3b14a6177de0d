"""Tasks of a write, without Spark: what they stage, what they refuse, what they leave behind."""

import errno
import pickle
import random
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sink_plans import STAGING_ID, make_plan, make_topic, staged_records, topic_in
from sink_topics import left_behind

from stratalog.errors import DiskError
from stratalog.records import read_headers
from stratalog.records.compression import Codec
from stratalog.records.partitioner import partition_of
from stratalog.spark.sink_commit import make_manifest
from stratalog.spark.sink_errors import SinkError, SinkRowError, StagingLostError
from stratalog.spark.sink_plan import TaskPlace
from stratalog.spark.sink_tasks import stage_rows
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.commits.staging import open_staging, release_staging, staging_until_ms
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition, staging_directory
from stratalog.testing import ManualClock, SimulatedFileSystem

NOW_MS = 1_700_000_000_123
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", HEADERS),
        ("ignored", pa.int64()),
    ]
)
COLUMNS = ("topic", "key", "value", "partition", "timestamp", "headers")
PARTITIONS = {"orders": 3, "payments": 2}


def batch_of(rows):
    """Rows are dictionaries; what they do not name is null."""
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def plan_of(path, **more):
    topics = [make_topic(path, name, count) for name, count in PARTITIONS.items()]
    return make_plan(path, *topics, **{"columns": COLUMNS, **more})


def stage(plan, *batches, task=0, attempt=0):
    place = TaskPlace(task=task, attempt=attempt)
    return stage_rows(iter(batches), plan, place, OsFileSystem(), ManualClock(NOW_MS))


def files_in(path):
    return [each for each in Path(path).rglob("*") if each.is_file()]


rows_strategy = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(sorted(PARTITIONS)),
            "key": st.none() | st.binary(max_size=6),
            "value": st.none() | st.binary(max_size=300),
            "partition": st.none() | st.integers(0, 1),
            "timestamp": st.none() | st.integers(0, 2**52),
            "headers": st.none()
            | st.lists(
                st.fixed_dictionaries(
                    {"key": st.text(max_size=3), "value": st.none() | st.binary(max_size=3)}
                ),
                max_size=2,
            ),
        }
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(
    rows=rows_strategy,
    cut=st.integers(1, 20),
    codec=st.sampled_from(list(Codec)),
    batch_bytes=st.sampled_from([1024, 65536]),
)
def test_every_row_is_staged_once_in_its_partition_and_in_order(
    tmp_path_factory, rows, cut, codec, batch_bytes
):
    plan = plan_of(tmp_path_factory.mktemp("logs"), codec=codec, batch_bytes=batch_bytes)
    batches = [batch_of(rows[start : start + cut]) for start in range(0, len(rows), cut)]

    found = staged_records(plan, stage(plan, *batches))

    expected = defaultdict(list)
    anywhere = defaultdict(list)
    for row in rows:
        record = (
            NOW_MS if row["timestamp"] is None else row["timestamp"] // 1000,
            row["key"],
            row["value"],
            tuple((each["key"], each["value"]) for each in row["headers"] or ()),
        )
        if row["partition"] is not None:
            expected[row["topic"], row["partition"]].append(record)
        elif row["key"] is not None:
            count = PARTITIONS[row["topic"]]
            expected[row["topic"], partition_of(row["key"], count)].append(record)
        else:
            anywhere[row["topic"]].append(record)
    total = 0
    for (topic, partition), records in found.items():
        told = [(each.timestamp_ms, each.key, each.value, each.headers) for each in records]
        assert [each.offset for each in records] == list(range(len(records)))
        # Rows without a key or a partition may come in between; the rest has its order.
        rest = iter(told)
        assert all(each in rest for each in expected[topic, partition])
        total += len(records)
        for each in expected[topic, partition]:
            told.remove(each)
        for each in told:
            anywhere[topic].remove(each)
    assert total == len(rows)


@given(seed=st.integers(0, 3))
@settings(max_examples=4, deadline=None)
def test_a_task_that_is_run_again_stages_the_same_bytes(tmp_path_factory, seed):
    rows = batch_of([{"topic": "orders", "value": b"v" * 100, "timestamp": 5}] * 500)
    plan = plan_of(tmp_path_factory.mktemp("logs"))

    first = stage(plan, rows, task=seed, attempt=0)
    again = stage(plan, rows, task=seed, attempt=7)

    assert len(first.files) > 1
    for key in first.files:
        assert [(each.size_bytes, each.digest) for each in first.files[key]] == [
            (each.size_bytes, each.digest) for each in again.files[key]
        ]
        assert {each.name for each in first.files[key]}.isdisjoint(
            each.name for each in again.files[key]
        )


def test_small_writes_without_keys_go_to_different_partitions(tmp_path):
    plan = make_plan(tmp_path, make_topic(tmp_path, "wide", 8), columns=COLUMNS, topic="wide")
    chosen = set()
    for number in range(40):
        again = replace(plan, staging_id=f"{number:032x}")
        chosen.update(each.partition for each in stage(again, batch_of([{"value": b"v"}])).files)

    assert chosen == set(range(8))


def test_batches_are_as_large_as_they_may_be_however_many_topics_there_are(tmp_path):
    topics = [make_topic(tmp_path, "wide", 20), *(topic_in("/", f"t{n}", 1) for n in range(2000))]
    plan = make_plan(tmp_path, *topics, columns=COLUMNS, batch_bytes=128 << 10)
    rows = [
        {"topic": "wide", "partition": n % 20, "value": b"v" * 1000, "timestamp": 1}
        for n in range(5000)
    ]

    staged = stage(plan, *(batch_of(rows[start : start + 500]) for start in range(0, 5000, 500)))

    assert len(batch_sizes(plan, staged)) == 20 * 2


def test_the_open_batches_of_all_topics_have_one_budget_and_the_largest_are_closed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("stratalog.spark.sink_tasks.OPEN_BYTES_MAX", 100_000)
    topics = [make_topic(tmp_path, f"t{n}", 1) for n in range(10)]
    plan = make_plan(tmp_path, *topics, columns=COLUMNS, batch_bytes=1 << 20)
    sizes = {f"t{n}": 20_000 if n == 7 else 1000 for n in range(10)}
    rows = [{"topic": name, "value": b"v" * size, "timestamp": 1} for name, size in sizes.items()]

    staged = stage(plan, *([batch_of(rows)] * 5))

    found = defaultdict(list)
    for topic, size in batch_sizes(plan, staged):
        found[topic].append(size)
    assert len(found.pop("t7")) == 2
    assert {len(each) for each in found.values()} == {1}
    assert sum(len(each) for each in staged_records(plan, staged).values()) == 50


def batch_sizes(plan, staged):
    found = []
    for key, files in staged.files.items():
        directory = staging_directory(
            plan.topics[key.topic].directories[key.partition], plan.staging_id
        )
        for file in files:
            headers = read_headers(Path(directory, file.name).read_bytes(), 0, check_crc=False)
            found += [(key.topic, header.size_bytes) for header in headers]
    return found


@pytest.mark.parametrize(
    ("rows", "row", "column", "sentence"),
    [
        ([{"topic": "orders", "value": b"v"}, {"value": b"v"}], 1, "topic", "null topic present"),
        ([{"topic": "orders", "value": b""}, {"topic": "typo"}], 1, "topic", "no topic 'typo'"),
        ([{"topic": "orders", "value": b"v" * 2_000_000}], 0, "value", "max.message.bytes"),
        ([{"topic": "__orders", "value": b"v"}], 0, "topic", "is the broker's own. Nothing was"),
        ([{"topic": "orders", "partition": 3}], 0, "partition", "0 to 2"),
        ([{"topic": "payments"}, {"topic": "orders", "partition": -1}], 1, "partition", "0 to 2"),
        ([{"topic": "orders", "timestamp": -5000}], 0, "timestamp", "before 1970"),
        ([{"topic": "orders", "headers": [{"value": b""}]}], 0, "headers", "key"),
    ],
)
def test_a_row_that_cannot_be_written_is_named_and_nothing_is_left(
    tmp_path, rows, row, column, sentence
):
    plan = plan_of(tmp_path, refused={"__orders": "it is the broker's own"})
    before = batch_of([{"topic": "orders", "value": b"v" * 3000, "key": b"k"}] * 10)

    with pytest.raises(SinkRowError) as caught:
        stage(plan, before, batch_of(rows), task=4)

    assert (caught.value.task, caught.value.row, caught.value.column) == (4, 10 + row, column)
    assert sentence in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert left_behind(tmp_path) == []


def test_no_batch_is_larger_than_a_segment(tmp_path):
    topic = make_topic(tmp_path, "small", 1, segment_bytes=5000, max_message_bytes=1 << 20)
    plan = make_plan(tmp_path, topic, columns=COLUMNS, topic="small", batch_bytes=1 << 20)
    rows = [{"value": b"v" * 500}] * 100

    assert max(size for _, size in batch_sizes(plan, stage(plan, batch_of(rows)))) <= 5000
    with pytest.raises(SinkRowError, match=r"row 1 .* segment\.bytes"):
        stage(plan, batch_of([{"value": b"v"}, {"value": b"v" * 5000}]), attempt=1)


def test_a_topic_that_is_deleted_meanwhile_is_named(tmp_path):
    plan = plan_of(tmp_path, batch_bytes=1)

    def rows():
        yield batch_of([{"topic": "orders", "partition": 1, "value": b"v"}])
        (tmp_path / "orders-1").rename(tmp_path / "orders-1.0123-delete")
        (tmp_path / "orders-2").rename(tmp_path / "orders-2.0123-delete")
        yield batch_of([{"topic": "orders", "partition": 2, "value": b"v"}])

    with pytest.raises(SinkError, match=r"orders-1 is no longer in .*: its topic was deleted"):
        stage(plan, *rows())


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(tmp_path):
    plan = make_plan(
        tmp_path,
        make_topic(tmp_path, "table", 2, is_compacted=True),
        columns=COLUMNS,
        topic="table",
    )

    with pytest.raises(SinkRowError) as caught:
        stage(plan, batch_of([{"key": b"k"}, {"value": b"v"}]))

    assert (caught.value.row, caught.value.column) == (1, "key")
    assert "compacted" in str(caught.value)


@pytest.mark.parametrize(("off_ms", "is_taken"), [(-2000, True), (-2001, False), (3001, False)])
def test_a_timestamp_that_the_topic_does_not_take_is_told_by_its_row(tmp_path, off_ms, is_taken):
    topic = make_topic(tmp_path, "orders", 3, before_max_ms=2000, after_max_ms=3000)
    plan = make_plan(tmp_path, topic, columns=COLUMNS, topic="orders")
    rows = [{"value": b"v"}, {"value": b"v", "timestamp": (NOW_MS + off_ms) * 1000}]
    if is_taken:
        stage(plan, batch_of(rows))
        return

    with pytest.raises(SinkRowError) as caught:
        stage(plan, batch_of(rows))

    assert (caught.value.row, caught.value.column) == (1, "timestamp")
    assert f"outside of {NOW_MS - 2000} to {NOW_MS + 3000}" in str(caught.value)
    assert "message.timestamp.before.max.ms" in str(caught.value)


def test_a_row_of_one_of_several_topics_is_called_by_its_number_in_the_task(tmp_path):
    plan = plan_of(tmp_path, codec=Codec.ZSTD, batch_bytes=1 << 20)
    fine = [{"topic": name, "key": b"k", "value": b"v"} for name in ("orders", "payments")]
    large = {"topic": "payments", "key": b"k", "value": random.Random(1).randbytes(2_000_000)}

    with pytest.raises(SinkRowError) as caught:
        stage(plan, batch_of(fine), batch_of([*fine, large, *fine]))

    assert caught.value.row == 4


def test_a_partition_that_is_in_another_directory_is_refused(tmp_path):
    topic = make_topic(tmp_path, "orders", 3)
    directories = {number: topic.directories[number] for number in (0, 2)}
    part = replace(topic, directories=directories)
    plan = make_plan(tmp_path, part, columns=COLUMNS, topic="orders")

    stage(plan, batch_of([{"partition": 2}]))
    with pytest.raises(SinkRowError, match="partition 1"):
        stage(plan, batch_of([{"partition": 0}, {"partition": 1}]))


def test_a_task_of_very_many_partitions_holds_few_files_open(tmp_path):
    partitions = 300
    plan = make_plan(
        tmp_path, make_topic(tmp_path, "wide", partitions), columns=COLUMNS, topic="wide"
    )
    opened = []

    def rows():
        for number in range(20):
            yield batch_of(
                [
                    {"partition": each, "value": b"%d" % number * 2000, "timestamp": 1}
                    for each in range(partitions)
                ]
            )
            opened.append(open_files_in(tmp_path))

    place = TaskPlace(task=0, attempt=0)
    found = staged_records(plan, stage_rows(rows(), plan, place, OsFileSystem(), ManualClock()))

    assert len(found) == partitions
    for records in found.values():
        assert [each.value for each in records] == [b"%d" % n * 2000 for n in range(20)]
    assert 0 < max(opened) < 100


def open_files_in(path):
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed since it was listed
            count += descriptor.readlink().is_relative_to(path)
    return count


@pytest.mark.parametrize("found", ["another", None])
def test_a_host_where_the_path_is_another_directory_is_named(tmp_path, found):
    plan = plan_of(tmp_path, directory_id="the-one-that-is-meant")
    if found is not None:
        (tmp_path / "meta.properties").write_text(f"version=1\ndirectory.id={found}\n")

    with pytest.raises(SinkError, match=r"on host .* is not the log directory"):
        stage(plan, batch_of([{"topic": "orders"}]))

    assert left_behind(tmp_path) == []


def test_nothing_is_opened_for_a_task_without_rows(tmp_path):
    plan = plan_of(tmp_path)

    staged = stage(plan, batch_of([]))

    assert not staged.files
    assert files_in(tmp_path) == []


def test_a_task_whose_rows_fail_leaves_nothing_staged(tmp_path):
    def rows():
        yield batch_of([{"topic": "orders", "key": b"k", "value": b"v" * 5000}] * 10)
        raise OSError("the other side is gone")

    with pytest.raises(OSError, match="the other side"):
        stage_rows(
            rows(), plan_of(tmp_path), TaskPlace(task=0, attempt=0), OsFileSystem(), ManualClock()
        )

    assert files_in(tmp_path) == []
    assert list(tmp_path.rglob(STAGING_ID)) == []


WRONG = {"topic": "orders", "partition": 9, "value": b"v"}


def test_a_task_that_fails_leaves_what_others_have_staged_and_the_lease(tmp_path):
    plan = plan_of(tmp_path)
    good = {"topic": "orders", "partition": 1, "value": b"v"}
    staged = stage(plan, batch_of([good]), task=1)

    with pytest.raises(SinkRowError):
        stage(plan, batch_of([good]), batch_of([WRONG]))

    assert len(staged_records(plan, staged)) == 1
    assert staging_until_ms(OsFileSystem(), plan.path, STAGING_ID) is not None
    assert len(files_in(tmp_path)) == 2


def test_a_task_that_fails_is_not_in_the_way_of_one_that_holds_rows_alone(tmp_path):
    plan = plan_of(tmp_path)
    good = batch_of([{"topic": "orders", "partition": 1, "value": b"v"}])

    def rows():
        yield good
        with pytest.raises(SinkRowError):
            stage(plan, good, batch_of([WRONG]))
        yield good

    place = TaskPlace(task=1, attempt=0)
    staged = stage_rows(rows(), plan, place, OsFileSystem(), ManualClock(NOW_MS))

    (records,) = staged_records(plan, staged).values()
    assert len(records) == 2


def test_a_manifest_has_files_by_task_and_then_by_number(tmp_path):
    plan = make_plan(
        tmp_path,
        make_topic(tmp_path, "orders", 1, segment_bytes=5000),
        columns=COLUMNS,
        topic="orders",
    )
    rows = batch_of([{"value": b"v" * 2000}] * 5)
    told = [stage(plan, rows, task=task, attempt=9 - task) for task in (2, 0, 1)]

    manifest = make_manifest(told, "an-id", AppVersion(name="job", version=1))

    assert [each.topic_partition for each in manifest] == [TopicPartition("orders", 0)]
    names = [each.name for each in manifest.partitions[0].files]
    assert names == [
        f"0000{task}-{9 - task}-0000{number}.log" for task in range(3) for number in range(3)
    ]
    assert manifest.partitions[0].record_count == 15
    assert manifest.partitions[0].topic_id == "id-orders"


def test_there_is_no_manifest_of_nothing(tmp_path):
    assert make_manifest([stage(plan_of(tmp_path), batch_of([]))], "an-id", None) is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_fails_the_task_and_leaves_nothing_that_counts(code):
    """Whatever operation it is that fails: one of them after the other."""
    rows = batch_of([{"topic": "orders", "key": b"k%d" % n, "value": b"v" * 500} for n in range(9)])
    plan = make_plan(Path("/logs"), topic_in("/logs", "orders", 3), columns=COLUMNS, topic="orders")

    def on_a_disk(failing):
        """Whether all was staged, and the disk, where the operation of that number fails."""
        files = SimulatedFileSystem()
        for directory in ("/logs", *(f"/logs/orders-{each}" for each in range(3))):
            files.make_directory(directory)
        files.fail(files.operations + failing, code)
        with suppress(DiskError):
            stage_rows(iter([rows]), plan, TaskPlace(task=0, attempt=0), files, ManualClock())
            return True, files
        return False, files

    for failing in range(1, 1000):
        is_staged, files = on_a_disk(failing)
        if is_staged:
            break
        assert [name for name in files.tree() if name.endswith(".log")] == []
    assert failing > 10


def test_a_task_that_goes_on_after_its_write_was_given_up_leaves_nothing(tmp_path):
    """Whatever it had done by then: Spark runs the tasks of a write that failed on for a while."""
    plan = plan_of(tmp_path, is_opened=True, batch_bytes=1)
    files = OsFileSystem()

    def opened():
        clock = ManualClock(NOW_MS)
        open_staging(
            files, plan.path, holder="", seconds=9e9, clock=clock, staging_id=plan.staging_id
        )

    def rows(given_up_at):
        for number in range(4):
            if number == given_up_at:
                release_staging(files, plan.path, plan.staging_id)
            yield batch_of([{"topic": "orders", "partition": number // 2, "value": b"v"}])

    opened()
    whole = stage(plan, *rows(None))
    assert len(staged_records(plan, whole)) == 2
    for given_up_at in (0, 2):  # before the first file is made, and before the second
        opened()
        with pytest.raises(StagingLostError):
            stage(plan, *rows(given_up_at), attempt=1)
        assert files_in(tmp_path) == []


def test_a_task_holds_what_its_driver_has_opened_no_longer_than_it_may(tmp_path):
    plan = plan_of(tmp_path, is_opened=True, staging_seconds=60)
    files, clock = OsFileSystem(), ManualClock(NOW_MS)
    open_staging(files, plan.path, holder="", seconds=9e9, clock=clock, staging_id=plan.staging_id)

    stage(plan, batch_of([{"topic": "orders", "value": b"v"}]))

    assert staging_until_ms(files, plan.path, plan.staging_id) == NOW_MS + 60_000


def test_a_task_whose_staging_was_taken_away_ends(tmp_path):
    plan = plan_of(tmp_path, staging_seconds=0, batch_bytes=1)  # each row is written as it comes

    def rows():
        yield batch_of([{"topic": "orders", "value": b"v"}] * 9)
        release_staging(OsFileSystem(), str(tmp_path), STAGING_ID)
        while True:  # until the thread that renews it has seen that
            yield batch_of([{"topic": "orders", "value": b"v"}])

    with pytest.raises(StagingLostError, match="stagingSeconds") as caught:
        stage_rows(rows(), plan, TaskPlace(task=0, attempt=0), OsFileSystem())

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_task_imports_nothing_that_changes_a_log():
    program = (
        "import sys, stratalog.spark.sink, stratalog.spark.stream_sink, stratalog.spark.sink_tasks;"
        "print(*sorted(name for name in sys.modules if name.startswith('stratalog.')))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert "stratalog.storage.commits.staged_log" in told
    for each in told:
        assert not each.startswith(("stratalog.broker", "stratalog.handover", "stratalog.metadata"))
        assert each not in ("stratalog.storage.log", "stratalog.storage.manager")
