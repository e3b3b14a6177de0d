"""Apache Kafka and stratalog take turns on one directory, six times, under clients that live on.

    turn   owner          ends with    what else happens
    1      Apache Kafka   stop         transactions, one of them left open
    2      stratalog      stop         a topic is made
    3      Apache Kafka   kill -9      transactions; a topic is made, one altered, one deleted
    4      stratalog      kill -9      one of the topics is altered
    5      Apache Kafka   kill -9      transactions
    6      stratalog      stop

A Java and a librdkafka producer, idempotent, send all the while to a topic of their own. Two groups
of each library read it: the member of one stays, that of the other comes in every turn and goes on
from what the last has committed. A compacted topic is written and cleaned in every turn.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from adopting import BROKER, TOPIC, alter, delete_topics, overrides
from apache_kafka import KafkaDistribution, ToolRun
from batches import Record, make_batch
from confluent_kafka.admin import AdminClient, ResourceType
from consuming import Consumed, consume
from dumping import ALL_KINDS
from kafka_runs import checkpoint
from live_clients import LiveMember, LiveProducer, Transactions, read_next
from owners import KAFKA, OURS, Owners, Stopwatch, verify
from sequences import Sequences
from tools_java import JavaClient, JavaDriver, eventually
from wire import KafkaConnection

from stratalog.metadata.producer_ids import PRODUCER_ID_MIN

pytestmark = pytest.mark.interop

TURNS = ((KAFKA, "stop"), (OURS, "stop"), (KAFKA, "kill"), (OURS, "kill"), (KAFKA, "kill"))
LAST_TURN = (OURS, "stop")
GO_ON_SECONDS = 10
GO_ON_MS = 1000 * GO_ON_SECONDS
RECORDS = 100
START_MS = 1_700_000_000_000
KEYS = 20
CONFIGS = {
    "log.cleaner.backoff.ms": "100",
    "log.dir.reserve.bytes": "0",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "segment.ms": "1000",
}
JAVA = {
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "500",
    "retry.backoff.max.ms": "500",
}
JAVA_PRODUCER = {
    **JAVA,
    "acks": "all",
    "enable.idempotence": "true",
    "linger.ms": "100",
    "delivery.timeout.ms": "600000",
    "max.block.ms": "600000",
}
JAVA_MEMBER = {
    **JAVA,
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": "200",
    "heartbeat.interval.ms": "500",
}


class Life:
    """The turns, everybody who lives through them, and what they know at the end."""

    def __init__(self, owners: Owners, java: JavaClient, kafka: KafkaDistribution) -> None:
        self.owners, self.java, self.kafka = owners, java, kafka
        self.server = owners.bootstrap_server
        self.producer = LiveProducer(self.server, "native")
        self.member = LiveMember(self.server, "native-stays", "native")
        self.transactions = Transactions(self.server, "transactional")
        self.sequences = Sequences("sequences")
        self.latest: dict[bytes, bytes] = {}
        self.came: dict[str, list[int]] = {"java": [], "native": []}
        self.seconds: dict[str, float] = {}
        self.dumps: list[ToolRun] = []
        self.topics: list[set[str]] = []
        self.altered: dict[str, dict[str, str]] = {}
        self.java_sent: dict[str, Any] = {}
        self.read: dict[str, list[Consumed]] = {}
        self.committed: list[Consumed] = []

    def live(self) -> None:
        with ExitStack() as stack:
            stack.callback(self.owners.close)
            for turn, (owner, end) in enumerate(TURNS, start=1):
                self.owners.start(owner)
                if turn == 1:
                    self._begin(stack)
                self._go_on(turn, owner)
                self._end(end)
            self.owners.start(LAST_TURN[0])
            self._go_on(len(TURNS) + 1, LAST_TURN[0])
            self._look_back()
            self._end(LAST_TURN[1])

    def _begin(self, stack: ExitStack) -> None:
        with self._connect() as connection:
            for topic in ("java", "native", "transactional", "sequences", "doomed"):
                connection.create_topic(topic, {})
            connection.create_topic("compacted", COMPACTED)
        self.java.client("start", JAVA_PRODUCER, topic="java")
        configs = {**JAVA_MEMBER, "group.id": "java-stays"}
        self.java.client("join", configs, name="stays", topics=["java"])
        stack.enter_context(self.member)

    def _connect(self) -> KafkaConnection:
        host, _, port = self.server.partition(":")
        return KafkaConnection(host, int(port))

    # --- one turn -----------------------------------------------------------------------------

    def _go_on(self, turn: int, owner: str) -> None:
        self._clients_go_on(turn)
        with self._connect() as connection:
            self.sequences.live_through(connection)
            self._compact(connection, turn)
            self._administrate(connection, turn)
        if owner == KAFKA:
            self.transactions.live_through(turn)
        admin = AdminClient({"bootstrap.servers": self.server, "log_level": 0})
        self.topics.append(set(admin.list_topics(timeout=30).topics))

    def _clients_go_on(self, turn: int) -> None:
        """Everybody writes and reads something of this turn, soon after it has begun."""
        watch = Stopwatch()
        self.producer.send(RECORDS)
        known = self._java_acknowledged(0)
        self._java_acknowledged(known + RECORDS)
        self.producer.settle(GO_ON_SECONDS)
        self._note(turn, "producers", watch)
        eventually(self._java_read, lambda read: bool(read) and max(read) >= known)
        self._note(turn, "the Java member that stays", watch)
        last = max(self.producer.acknowledged.values())
        eventually(lambda: self.member.read[-1:], lambda read: read >= [last])
        self._note(turn, "the librdkafka member that stays", watch)
        watch = Stopwatch()
        self.came["java"] += self._java_comes()
        self._note(turn, "the Java member that comes", watch)
        watch = Stopwatch()
        came = read_next(self.server, "native-comes", "native", RECORDS, GO_ON_SECONDS)
        self.came["native"] += came
        self._note(turn, "the librdkafka member that comes", watch)

    def _note(self, turn: int, who: str, watch: Stopwatch) -> None:
        self.seconds[f"turn {turn}: {who}"] = watch.seconds

    def _java_acknowledged(self, count: int) -> int:
        answer = self.java.client("acknowledged", count=count, timeout_ms=GO_ON_MS)
        return int(answer["count"])

    def _java_read(self) -> list[int]:
        members = self.java.client("await", partitions=1, timeout_ms=0)
        return [offset for _, offset in members["stays"]["records"]]

    def _java_comes(self) -> list[int]:
        configs = {**JAVA_MEMBER, "group.id": "java-comes", "enable.auto.commit": "false"}
        configs["max.poll.records"] = str(RECORDS)
        asked = {"topic": "java", "count": RECORDS, "commit": True, "timeout_ms": GO_ON_MS}
        answer = self.java.client("consume", configs, **asked)
        return [record["offset"] for record in answer["records"]]

    def _compact(self, connection: KafkaConnection, turn: int) -> None:
        """Three rounds of the same keys, a segment each; the owner cleans all but the last."""
        for round_ in range(3):
            records = [
                Record(b"key %d" % key, b"turn %d, round %d" % (turn, round_), START_MS)
                for key in range(KEYS)
            ]
            at_ms = START_MS + 10_000 * (3 * turn + round_)
            records = [each._replace(timestamp_ms=at_ms) for each in records]
            last = connection.produce("compacted", make_batch(records)).base_offset
            self.latest |= {each.key: each.value for each in records}  # type: ignore[misc]
        cleaned = eventually(self._cleaned, lambda offset: offset >= last)
        assert cleaned >= last, f"turn {turn}: cleaned up to {cleaned} of {last}"

    def _cleaned(self) -> int:
        file = self.owners.log_dir / "cleaner-offset-checkpoint"
        if not file.exists() or not file.read_bytes():
            return -1
        return checkpoint(self.owners.log_dir, "cleaner-offset-checkpoint").get("compacted", -1)

    def _administrate(self, connection: KafkaConnection, turn: int) -> None:
        if turn == 2:
            connection.create_topic("made-here", {})
            connection.produce("made-here", make_batch([Record(None, b"kept", START_MS)]))
            alter(connection, TOPIC, "native", "segment.bytes", "2000000")
        elif turn == 3:
            connection.create_topic("made-there", {"retention.ms": "-1"})
            alter(connection, TOPIC, "native", "retention.bytes", "900000000")
            alter(connection, BROKER, "", "log.cleaner.io.buffer.size", "600000")
            delete_topics(connection, "doomed")

    def _end(self, end: str) -> None:
        getattr(self.owners, end)()
        if end == "stop":
            verify(self.owners.log_dir)
            self.dumps.append(self._dump())

    def _dump(self) -> ToolRun:
        """All but the log of the compacted topic, of whose gaps the tool would tell."""
        log_dir = self.owners.log_dir
        files = {file for kind in ALL_KINDS for file in log_dir.glob(f"*-0/*{kind}")}
        files -= {*log_dir.glob("compacted-0/*.log"), *log_dir.glob("__cluster_metadata-0/*")}
        return self.kafka.dump_log(sorted(files), "--deep-iteration")

    def _look_back(self) -> None:
        self.java_sent = self.java.client("stop")
        admin = AdminClient({"bootstrap.servers": self.server, "log_level": 0})
        for kind, name in ((ResourceType.TOPIC, "native"), (ResourceType.BROKER, "1")):
            self.altered[name] = overrides(admin, kind, name)
        topics = ("java", "native", "sequences", "compacted", "made-here")
        self.read = consume(self.server, topics)
        committed = consume(self.server, ["transactional"], committed_only=True)
        self.committed = committed["transactional"]


@pytest.fixture(scope="module")
def life(
    kafka: KafkaDistribution, driver: JavaDriver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Life]:
    owners = Owners(kafka, tmp_path_factory.mktemp("turns"), CONFIGS)
    life = Life(owners, JavaClient(driver, owners.bootstrap_server), kafka)
    life.live()
    yield life
    life.transactions.forget()


def values(records: list[Consumed]) -> list[bytes | None]:
    return [each.value for each in records]


def test_each_acknowledged_record_of_live_producers_is_stored_once_and_in_order(life: Life) -> None:
    counted = [b"%d" % number for number in range(len(life.read["java"]))]
    assert values(life.read["java"]) == counted
    assert life.java_sent["offsets"] == list(range(len(counted)))
    assert life.java_sent["failures"] == life.producer.failures == []
    assert values(life.read["native"]) == [b"%d" % n for n in range(len(life.read["native"]))]
    assert life.producer.acknowledged == {n: n for n in range(len(life.read["native"]))}


def test_every_producer_goes_on_with_its_sequence_and_what_it_repeats_is_stored_once(
    life: Life,
) -> None:
    assert [each for each in life.sequences.repeats if each[0] != each[1]] == []
    assert values(life.read["sequences"]) == life.sequences.stored
    assert life.sequences.answered == list(range(len(life.sequences.stored)))


def test_no_producer_id_is_given_out_twice(life: Life) -> None:
    ids = life.sequences.producer_ids
    assert len(set(ids)) == len(ids) == 2 * (len(TURNS) + 1)
    assert [each >= PRODUCER_ID_MIN for each in ids] == [False, False, True, True] * 3


def test_no_leader_epoch_falls_or_is_forgotten(life: Life) -> None:
    lines = (life.owners.log_dir / "native-0" / "leader-epoch-checkpoint").read_text().splitlines()
    epochs = [(int(epoch), int(offset)) for epoch, offset in map(str.split, lines[2:])]
    assert epochs[0] == (0, 0)
    assert epochs == sorted(epochs)
    # Each of Kafka's turns begins one, and the first of ours goes on in what Kafka ended with.
    assert len(epochs) > len(TURNS) // 2


def test_groups_and_producers_go_on_within_seconds_of_each_turn(life: Life) -> None:
    assert {who: took for who, took in life.seconds.items() if took > GO_ON_SECONDS} == {}
    assert len(life.seconds) == 5 * (len(TURNS) + 1)


def test_a_member_that_comes_goes_on_where_the_last_has_committed(life: Life) -> None:
    for came in life.came.values():
        assert came == list(range(RECORDS * (len(TURNS) + 1)))


def test_a_member_that_stays_reads_every_record(life: Life) -> None:
    assert set(life.member.read) == set(life.producer.acknowledged.values())


def test_a_compacted_topic_holds_the_latest_of_every_key_after_both_have_cleaned_it(
    life: Life,
) -> None:
    compacted = life.read["compacted"]
    assert {each.key: each.value for each in compacted} == life.latest
    # The last cleaning left one of each key, and the active segment holds them once more.
    assert len(compacted) == 2 * KEYS


def test_committed_transactions_are_read_and_no_others(life: Life) -> None:
    assert values(life.committed) == [each.encode() for each in life.transactions.committed]


def test_topics_that_either_side_made_altered_and_deleted_are_followed(life: Life) -> None:
    made_here = ["made-here" in topics for topics in life.topics]
    assert made_here == [False, True, False, True, False, True]
    assert ["made-there" in topics for topics in life.topics] == [False, False, *[True] * 4]
    assert ["doomed" in topics for topics in life.topics] == [True, True, *[False] * 4]
    assert values(life.read["made-here"]) == [b"kept"]


def test_configs_that_either_side_altered_count(life: Life) -> None:
    native = life.altered["native"]
    assert (native["segment.bytes"], native["retention.bytes"]) == ("2000000", "900000000")
    assert life.altered["1"]["log.cleaner.io.buffer.size"] == "600000"


def test_kafka_dump_log_is_quiet_after_each_clean_stop(life: Life) -> None:
    assert [(each.exit_code, each.stderr) for each in life.dumps] == [(0, "")] * 3
    for each in life.dumps:
        assert "Found" not in each.stdout
