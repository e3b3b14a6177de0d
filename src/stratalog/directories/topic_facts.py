"""What is known of a directory's topics that tells how to read their files: compacted, tiered."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from stratalog.directories.topic_configs import KnownTopic
from stratalog.storage.files import FileSystem

_POLICY = "cleanup.policy"
_BROKER_POLICY = "log.cleanup.policy"
_TIERED = "remote.storage.enable"
_KEPT_SECONDS = 10
_KEPT_MAX = 64


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """``known`` are the topics whose configs are known; the other sets are parts of it.

    A default in the properties of a broker that is not known is not counted: compaction leaves
    other traces as well.
    """

    known: frozenset[str] = frozenset()
    not_compacted: frozenset[str] = frozenset()
    tiered: frozenset[str] = frozenset()

    def is_tiered(self, topic: str) -> bool | None:
        """None if nothing is known of the topic."""
        return topic in self.tiered if topic in self.known else None


def find_topic_facts(files: FileSystem, log_dir: str) -> TopicFacts:
    """Metadata that is not there, or cannot be read, tells nothing."""
    # Imported when a scan has to know: most tasks of a scan do not.
    from stratalog.directories.known_directory import learn_directory

    known = learn_directory(files, log_dir)
    default = {**(known.server_configs or {}), **known.dynamic_configs}.get(_BROKER_POLICY, "")
    topics = {name: topic for name, topic in known.topics.items() if not topic.is_held}
    return TopicFacts(
        frozenset(topics),
        frozenset(name for name, each in topics.items() if not _is_compacted(each, default)),
        frozenset(name for name, each in topics.items() if each.configs.get(_TIERED) == "true"),
    )


class RecentTopicFacts:
    """Facts that are not read again for a while: a stream looks at its directory ten times a
    second, and a controller's log may be long."""

    def __init__(
        self,
        find: Callable[[FileSystem, str], TopicFacts] = find_topic_facts,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._now_s = now_s
        self._kept: dict[str, tuple[float, TopicFacts]] = {}

    def of(self, files: FileSystem, log_dir: str) -> TopicFacts:
        read_s, facts = self._kept.get(log_dir, (float("-inf"), TopicFacts()))
        if self._now_s() - read_s >= _KEPT_SECONDS:
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            facts = self._find(files, log_dir)
            self._kept[log_dir] = (self._now_s(), facts)
        return facts


def _is_compacted(topic: KnownTopic, default: str) -> bool:
    return "compact" in topic.configs.get(_POLICY, default)
