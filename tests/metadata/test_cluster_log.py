"""A controller's log, read: what it comes to, from any snapshot on, and when it is not believed."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata_records import (
    NO_OP,
    config,
    control,
    log_of,
    partition,
    record,
    snapshot_of,
    topic,
)
from stratalog.errors import AdoptionError
from stratalog.metadata.cluster_log import ClusterMetadata, read_cluster_metadata
from stratalog.records.control import ControlType

ONE, TWO = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)
BEGIN, END, ABORT = (
    record("BEGIN_TRANSACTION"),
    record("END_TRANSACTION"),
    record("ABORT_TRANSACTION"),
)


def read_files(files: dict[str, bytes]) -> ClusterMetadata:
    found = read_cluster_metadata(files, files.__getitem__)
    assert found is not None
    return found


def log_name(offset: int) -> str:
    return f"{offset:020d}.log"


def snapshot_name(offset: int) -> str:
    return f"{offset:020d}-{7:010d}.checkpoint"


def read_records(*records: bytes) -> ClusterMetadata:
    return read_files({log_name(0): log_of(records)})


def change(topic_id: uuid.UUID, number: int, **fields: object) -> bytes:
    return record("PARTITION_CHANGE", partitionId=number, topicId=topic_id, **fields)


def producer_ids(next_producer_id: int) -> bytes:
    return record("PRODUCER_IDS", brokerId=1, brokerEpoch=5, nextProducerId=next_producer_id)


# --- what records come to ---------------------------------------------------------------------


def test_a_topic_is_what_its_records_made_of_it() -> None:
    found = read_records(
        topic("orders", ONE),
        config("orders", "retention.ms", "5"),
        config("orders", "segment.bytes", "6"),
        partition(ONE, 0, (1, 2)),
        partition(ONE, 1, (2, 1), leader_epoch=4),
        change(ONE, 0, leader=2, isr=[2]),
        change(ONE, 0, replicas=[2, 3]),
        config("orders", "segment.bytes", None),
        producer_ids(3000),
    )
    orders = found.topics[ONE]
    assert orders.name == "orders"
    assert found.topic_configs == {"orders": {"retention.ms": "5"}}
    zero, one = orders.partitions[0], orders.partitions[1]
    assert (zero.leader, zero.leader_epoch, zero.partition_epoch) == (2, 1, 2)
    assert (zero.replicas, zero.isr) == ((2, 3), (2,))
    assert (one.leader, one.leader_epoch) == (2, 4)
    assert (found.next_producer_id, found.end_offset) == (3000, 9)


def test_a_leader_that_stays_begins_an_epoch_only_if_it_is_named() -> None:
    found = read_records(
        topic("orders", ONE), partition(ONE, 0), change(ONE, 0, isr=[1]), change(ONE, 0, leader=1)
    )
    assert found.topics[ONE].partitions[0].leader_epoch == 1


def test_a_removed_topic_takes_its_configs_along_and_is_remembered() -> None:
    found = read_records(
        topic("orders", ONE),
        config("orders", "retention.ms", "5"),
        partition(ONE, 0),
        record("REMOVE_TOPIC", topicId=ONE),
        topic("orders", TWO),
        partition(TWO, 0),
    )
    assert list(found.topics) == [TWO]
    assert found.removed == {ONE}
    assert found.topic_configs == {}


def test_configs_of_brokers_are_those_of_one_or_of_all() -> None:
    found = read_records(
        config("", "log.retention.ms", "1", resource_type=4),
        config("12", "log.retention.ms", "2", resource_type=4),
        config("group", "consumer.session.timeout.ms", "3", resource_type=32),
        config("9" * 5000, "log.retention.ms", "4", resource_type=4),
    )
    assert found.broker_configs == {
        None: {"log.retention.ms": "1"},
        12: {"log.retention.ms": "2"},
    }


@pytest.mark.parametrize(("ending", "is_there"), [(END, True), (ABORT, False), (NO_OP, False)])
def test_a_transaction_counts_when_it_has_ended(ending: bytes, is_there: bool) -> None:
    found = read_records(BEGIN, topic("orders", ONE), partition(ONE, 0), ending)
    assert (ONE in found.topics) == is_there


def test_an_aborted_transaction_is_over() -> None:
    found = read_records(BEGIN, topic("orders", ONE), ABORT, topic("payments", TWO))
    assert list(found.topics) == [TWO]


def test_a_replica_moves_to_another_directory() -> None:
    elsewhere = uuid.UUID(int=7 << 100)
    found = read_records(
        topic("orders", ONE), partition(ONE, 0), change(ONE, 0, directories=[elsewhere])
    )
    assert found.topics[ONE].partitions[0].directories == (elsewhere,)


def test_types_of_later_releases_are_counted_and_passed_over() -> None:
    found = read_records(bytes((1, 99, 0, 1, 2, 3)), topic("orders", ONE), bytes((1, 0xC8, 1, 0)))
    assert (list(found.topics), found.skipped) == ([ONE], 2)


def test_control_records_take_offsets_and_say_nothing() -> None:
    data = control(ControlType.LEADER_CHANGE, 0) + log_of([topic("a", ONE)], base_offset=1)
    assert read_files({log_name(0): data}).end_offset == 2


# --- files ------------------------------------------------------------------------------------


def state_records(found: ClusterMetadata) -> list[bytes]:
    """What a controller would write into a snapshot."""
    records = [producer_ids(found.next_producer_id)]
    for each in found.topics.values():
        records.append(topic(each.name, each.topic_id))
        for number, one in each.partitions.items():
            records.append(
                record(
                    "PARTITION",
                    partitionId=number,
                    topicId=each.topic_id,
                    replicas=one.replicas,
                    isr=one.isr,
                    removingReplicas=(),
                    addingReplicas=(),
                    leader=one.leader,
                    leaderEpoch=one.leader_epoch,
                    partitionEpoch=one.partition_epoch,
                    directories=one.directories,
                )
            )
    for name, configs in found.topic_configs.items():
        records += (config(name, key, value) for key, value in configs.items())
    return records


@st.composite
def histories(draw: st.DrawFn) -> list[bytes]:
    """Records that a controller could have written, of topics ``t0`` to ``t2``."""
    records, live, made = [NO_OP], {}, 0
    for _ in range(draw(st.integers(0, 15))):
        name = f"t{draw(st.integers(0, 2))}"
        step = draw(st.integers(0, 4))
        if name not in live:
            made += 1
            live[name] = uuid.UUID(int=made << 64)
            records += [topic(name, live[name]), partition(live[name], 0)]
        elif step == 0:
            records.append(record("REMOVE_TOPIC", topicId=live.pop(name)))
        elif step == 1:
            records.append(change(live[name], 0, leader=draw(st.integers(1, 3))))
        elif step == 2:
            value = draw(st.none() | st.sampled_from(("1", "2")))
            records.append(config(name, "retention.ms", value))
        elif step == 3:
            records.append(producer_ids(1000 * len(records)))
        else:
            records.append(NO_OP)
    return records


def comparable(found: ClusterMetadata) -> ClusterMetadata:
    configs = {name: values for name, values in found.topic_configs.items() if values}
    return replace(found, removed=set(), topic_configs=configs)


@given(records=histories(), data=st.data())
def test_a_snapshot_and_the_rest_of_the_log_say_what_the_whole_log_says(
    records: list[bytes], data: st.DataObject
) -> None:
    whole = read_records(*records)
    at = data.draw(st.integers(0, len(records)), label="snapshot")
    cuts = sorted({0, *data.draw(st.sets(st.integers(1, len(records)), max_size=3))})
    first = data.draw(st.sampled_from([cut for cut in cuts if cut <= at]), label="first segment")
    before = read_records(*records[:at]) if at else ClusterMetadata()
    files = {
        log_name(cut): log_of(records[cut:end], base_offset=cut)
        for cut, end in zip(cuts, [*cuts[1:], len(records)], strict=True)
        if cut >= first
    }
    files[snapshot_name(at)] = snapshot_of(state_records(before))
    if data.draw(st.booleans()):
        files[snapshot_name(at + 1)] = snapshot_of([topic("half", ONE)], is_whole=False)
    assert comparable(read_files(files)) == comparable(whole)


@given(records=histories(), data=st.data())
def test_a_log_cut_short_says_what_its_whole_batches_say(
    records: list[bytes], data: st.DataObject
) -> None:
    log = log_of(records, batch_records=1)
    cut = log[: data.draw(st.integers(0, len(log)))]
    found = read_files({log_name(0): cut})
    expected = read_records(*records[: found.end_offset]) if found.end_offset else ClusterMetadata()
    assert found == expected


def test_the_newest_whole_snapshot_counts() -> None:
    older, newer = snapshot_of([topic("older", ONE)]), snapshot_of([topic("newer", TWO)])
    files = {
        snapshot_name(2): older,
        snapshot_name(4): newer,
        log_name(4): log_of([NO_OP], base_offset=4),
    }
    assert list(read_files(files).topics) == [TWO]


def test_a_damaged_snapshot_is_passed_over_if_an_older_one_and_the_log_suffice() -> None:
    damaged = bytearray(snapshot_of([topic("newer", TWO)]))
    damaged[200] ^= 1
    files = {
        snapshot_name(2): snapshot_of([topic("older", ONE)]),
        snapshot_name(4): bytes(damaged),
        log_name(0): log_of([NO_OP] * 4),
    }
    assert list(read_files(files).topics) == [ONE]
    del files[snapshot_name(2)]
    assert list(read_files(files).topics) == []


def test_a_directory_without_such_files_says_nothing() -> None:
    def never(_name: str) -> bytes:
        raise AssertionError("there is nothing to read")

    assert read_cluster_metadata(["quorum-state", "partition.metadata"], never) is None


def remove_segment(files: dict[str, bytes]) -> None:
    files[log_name(9)] = log_of([NO_OP], base_offset=9)


def begin_late(files: dict[str, bytes]) -> None:
    files[log_name(4)] = log_of([NO_OP] * 4, base_offset=4)
    del files[log_name(0)]


def unknown_topic(files: dict[str, bytes]) -> None:
    files[log_name(0)] = log_of([partition(ONE, 0)])


def unknown_partition(files: dict[str, bytes]) -> None:
    files[log_name(0)] = log_of([topic("a", ONE), change(ONE, 0, leader=1)])


def garble_record(files: dict[str, bytes]) -> None:
    files[log_name(0)] = log_of([topic("orders", ONE)[:-4]])


def garble_batch(files: dict[str, bytes]) -> None:
    data = bytearray(files[log_name(0)])
    data[70] ^= 1
    files[log_name(0)] = bytes(data)


def snapshot_after_a_hole(files: dict[str, bytes]) -> None:
    files[snapshot_name(2)] = snapshot_of([])
    files[log_name(4)] = log_of([NO_OP], base_offset=4)
    del files[log_name(0)]


@pytest.mark.parametrize(
    "damage",
    [
        remove_segment,
        begin_late,
        unknown_topic,
        unknown_partition,
        garble_record,
        garble_batch,
        snapshot_after_a_hole,
    ],
)
def test_a_log_that_cannot_be_read_whole_is_not_believed(
    damage: Callable[[dict[str, bytes]], None],
) -> None:
    files = {log_name(0): log_of([NO_OP] * 4)}
    damage(files)
    with pytest.raises(AdoptionError):
        read_files(files)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.binary(max_size=200))
def test_any_bytes_end_in_metadata_or_in_our_own_error(values: list[bytes], junk: bytes) -> None:
    framed = [bytes((1, len(value) % 30, 0)) + value for value in values]
    for data in (log_of(framed), log_of(framed) + junk, junk):
        with suppress(AdoptionError):
            read_files({log_name(0): data})
