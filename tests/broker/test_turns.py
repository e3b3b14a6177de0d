"""Any order of turns: no epoch of ours is ahead of the next that Kafka's controller begins."""

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from startup_worlds import DyingFiles, append, opened, unpack_kafka
from test_kafka_turn import PLAIN, controller, id_of, kafkas_turn

from metadata_records import record
from stratalog.metadata import ProducerIds
from stratalog.metadata.producer_ids import PRODUCER_ID_MIN
from stratalog.storage.layout import CLEAN_SHUTDOWN_FILE

turns = st.lists(
    st.tuples(st.sampled_from(("kafka", "flushing", "unflushed")), st.booleans()),
    min_size=2,
    max_size=6,
)


class Directory:
    """``plain-0`` in turns: the epochs in which each owner has led it, and the ids given out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        unpack_kafka(path)
        self.topic_id = id_of(path, "plain")
        self.epochs: list[int] = []
        self.given: list[int] = []
        # Kafka stopped cleanly, and has written that nobody leads.
        self.was_killed = False

    def recorded(self) -> int:
        return controller(self.path).topics[self.topic_id].partitions[0].leader_epoch

    def kafka(self, *, is_killed: bool) -> None:
        """A start gives the leader back, after a kill takes it away first; so does a clean stop."""
        self._leaders(*((-1, 1) if self.was_killed else (1,)))
        self.epochs.append(self.recorded())
        if not is_killed:
            self._leaders(-1)
        self.was_killed = is_killed

    def _leaders(self, *leaders: int) -> None:
        change = {"partitionId": 0, "topicId": self.topic_id}
        kafkas_turn(
            self.path, *(record("PARTITION_CHANGE", **change, leader=each) for each in leaders)
        )

    def ours(self, *, is_flushing: bool, is_killed: bool) -> None:
        broker = opened(self.path, files=DyingFiles(), log_flush_on_ack=is_flushing)
        self.epochs.append(broker.store.image.topic("plain").partition(0).leader_epoch)
        assert broker.logs.get(PLAIN).epochs.latest_epoch == self.epochs[-1]
        assert self.epochs[-1] <= self.recorded() + 1
        self.given.append(ProducerIds(broker.store).next_id())
        append(broker, PLAIN, "more", producer_id=self.given[-1], producer_epoch=0, base_sequence=0)
        broker.close()
        if is_killed:
            (self.path / CLEAN_SHUTDOWN_FILE).unlink()


@settings(max_examples=15)
@example([("unflushed", True)] * 4 + [("kafka", False)])
@given(turns)
def test_epochs_never_fall_and_producer_ids_are_given_out_once(
    taken: list[tuple[str, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as home:
        directory = Directory(Path(home))
        for owner, is_killed in taken:
            if owner == "kafka":
                directory.kafka(is_killed=is_killed)
            else:
                directory.ours(is_flushing=owner == "flushing", is_killed=is_killed)
        assert directory.epochs == sorted(directory.epochs)
        assert len(set(directory.given)) == len(directory.given)
        assert all(each >= PRODUCER_ID_MIN for each in directory.given)
