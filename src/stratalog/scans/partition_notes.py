"""Partitions of a topic that its log directory lacks, for whoever looks at a plan.

A broker with several log directories has some of a topic's partitions in each, and so do several
brokers. So a partition that is not there is told, and no error: whose it is only its broker knows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from stratalog.directories.known_directory import learn_directory
from stratalog.scans.selection import SubscribePattern
from stratalog.scans.snapshot import choose_replicas
from stratalog.storage.files import FileSystem

_SHOWN_MAX = 8


def absent_partitions(
    files: FileSystem, log_directory: str, topics: Iterable[str]
) -> Iterator[str]:
    """A sentence for each of ``topics`` that is known to have more partitions than are there."""
    known = learn_directory(files, log_directory).topics
    _, replicas = choose_replicas(files, log_directory, SubscribePattern(""))
    here: dict[str, set[int]] = defaultdict(set)
    for key in replicas:
        here[key.topic].add(key.partition)
    for topic in sorted(set(topics)):
        count = known[topic].partition_count if topic in known else 0
        absent = [each for each in range(count) if each not in here[topic]]
        if absent:
            more = f" and {len(absent) - _SHOWN_MAX} more" if len(absent) > _SHOWN_MAX else ""
            yield (
                f"{topic}: {len(absent)} of its {count} partitions are not in this directory "
                f"({', '.join(map(str, absent[:_SHOWN_MAX]))}{more}): in other log directories, of "
                "its broker or of others, or gone"
            )
