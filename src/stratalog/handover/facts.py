"""What a driver knows of the topics it writes to: where their partitions lie, and their rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stratalog.config import TopicConfig
from stratalog.errors import StratalogError
from stratalog.handover.errors import HandoverError
from stratalog.records import ProduceRules
from stratalog.storage.appending import produce_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """``partitions`` are the directories of those that can be written to now, by number; there may
    be fewer than ``partition_count``. ``topic_id`` is Kafka's text of it, as a manifest has it."""

    name: str
    topic_id: str
    partition_count: int
    partitions: Mapping[int, str]
    config: TopicConfig
    is_held: bool = False
    is_internal: bool = False

    def within(self, log_dir: str) -> "TopicFacts":
        """With those partitions alone that lie in this log directory, by whatever name it goes."""
        homes = {number: path.rpartition("/")[0] for number, path in self.partitions.items()}
        here = {home for home in set(homes.values()) if _is_same(home, log_dir)}
        found = {number: path for number, path in self.partitions.items() if homes[number] in here}
        return replace(self, partitions=found)

    @property
    def rules(self) -> ProduceRules:
        return produce_rules(self.config)

    @property
    def segment_bytes(self) -> int:
        return self.config.segment_size_bytes

    @property
    def max_message_bytes(self) -> int:
        return self.config.max_message_bytes

    @property
    def is_compacted(self) -> bool:
        return self.config.compact


def _is_same(home: str, log_dir: str) -> bool:
    if home == log_dir:
        return True
    try:
        return Path(home).samefile(log_dir)
    except OSError:
        return False


def read_facts(rows: Iterable[Mapping[str, Any]]) -> dict[str, TopicFacts]:
    """What ``staging_facts`` made, perhaps in another process of another release."""
    try:
        facts = [_read(row) for row in rows]
    except (KeyError, TypeError, ValueError, AttributeError, StratalogError) as error:
        raise HandoverError(
            f"the owner's answer about its topics is not understood: {error!r}; is it of another "
            "release of stratalog?"
        ) from error
    return {each.name: each for each in facts}


def _read(row: Mapping[str, Any]) -> TopicFacts:
    return TopicFacts(
        name=str(row["topic"]),
        topic_id=str(row["topic_id"]),
        partition_count=int(row["partition_count"]),
        partitions={int(number): str(path) for number, path in row["directories"].items()},
        config=TopicConfig.from_properties(row["configs"]),
        is_held=bool(row["is_held"]),
        is_internal=bool(row["is_internal"]),
    )
