"""What the metadata in a log directory tells of topics' files."""

import uuid
from pathlib import Path

import pytest

from metadata_records import config, log_of, partition, topic
from stratalog.directories.topic_facts import RecentTopicFacts, TopicFacts, find_topic_facts
from stratalog.storage.files import OsFileSystem

IDS = {name: uuid.UUID(int=number << 100) for number, name in enumerate(("a", "b", "c", "d"), 1)}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Topics a to d of an Apache Kafka; b and c are compacted, d is tiered."""
    records = [
        value
        for name, topic_id in IDS.items()
        for value in (topic(name, topic_id), partition(topic_id, 0))
    ]
    records += [
        config("b", "cleanup.policy", "compact"),
        config("c", "cleanup.policy", "compact,delete"),
        config("d", "remote.storage.enable", "true"),
    ]
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(log_of(records))
    return tmp_path


def test_kafkas_metadata_tells_which_topics_are_not_compacted_and_which_are_tiered(
    log_dir: Path,
) -> None:
    found = find_topic_facts(OsFileSystem(), str(log_dir))

    assert found == TopicFacts(frozenset("abcd"), frozenset("ad"), frozenset("d"))


def test_a_dynamic_default_of_a_broker_counts_for_topics_without_a_policy(log_dir: Path) -> None:
    path = log_dir / "__cluster_metadata-0" / f"{0:020d}.log"
    policy = config("", "log.cleanup.policy", "compact", resource_type=4)
    count = 2 * len(IDS) + 3
    path.write_bytes(path.read_bytes() + log_of([policy], base_offset=count))

    assert find_topic_facts(OsFileSystem(), str(log_dir)).not_compacted == frozenset()


@pytest.mark.parametrize("content", [b"", b"garbage" * 20])
def test_metadata_that_is_not_there_or_damaged_tells_nothing(
    tmp_path: Path, content: bytes
) -> None:
    if content:
        (tmp_path / "__cluster_metadata-0").mkdir()
        (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(content)

    assert find_topic_facts(OsFileSystem(), str(tmp_path)).not_compacted == frozenset()


def test_facts_are_read_again_after_a_while_and_not_at_every_look() -> None:
    now, reads = [0.0], []
    facts = TopicFacts(frozenset("a"))

    def find(_files: object, log_dir: str) -> TopicFacts:
        reads.append(log_dir)
        return facts

    recent = RecentTopicFacts(find, lambda: now[0])
    for at, expected in ((0.0, ["/x"]), (9.9, ["/x"]), (10.0, ["/x", "/x"])):
        now[0] = at
        assert recent.of(OsFileSystem(), "/x") is facts
        assert reads == expected
