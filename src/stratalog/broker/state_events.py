"""Notices what has changed in a broker's state, and says so in the event log.

Storage and metadata decide and do not log. After the periodic tasks ``StateEvents.look`` compares
how directories and logs stand with how they stood before; changes of topics and configs come from
the metadata store, on the thread that made them. Neither looks at every log: a look costs the
same with ten thousand partitions.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from stratalog.broker.event_log import log_event
from stratalog.broker.services import Services
from stratalog.metadata.image import MetadataChange
from stratalog.storage.context import DiskState
from stratalog.storage.directory import LogDirectory
from stratalog.storage.layout import CUT_DIRECTORY, TopicPartition
from stratalog.storage.lease_book import LeaseEnd
from stratalog.storage.log import Log
from stratalog.storage.retention import RetentionPlan
from stratalog.storage.scanning import RecoveryReport
from stratalog.storage.segment import Segment

_STATE_EVENTS = {
    DiskState.ONLINE: "directory_online",
    DiskState.FULL: "directory_full",
    DiskState.OFFLINE: "directory_offline",
}
_NAMED_MAX = 10


class StateEvents:
    """On the loop's thread, but for what the store says."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._directories = {each.path: DiskState.ONLINE for each in services.logs.directories}
        self._refusing: set[str] = set()
        self._offline: set[TopicPartition] = set()
        self._uncleanable: dict[TopicPartition, str] = {}
        self._retention: dict[TopicPartition, str] = {}
        self._unsubscribe = services.store.subscribe(_metadata_changed)
        services.logs.tell_deleted = _segments_deleted

    def start(self) -> None:
        """Say what the start has found; once."""
        _say_recovered(log.recovery_report for log in self._services.logs)
        _say_some("recovery_cut", _cuts(self._services.logs))
        topics = self._services.store.image.topics.values()
        held = [topic.name for topic in topics if topic.is_held]
        _say_some(
            "topic_held", ({"topic": name, "reason": "its configs are unknown"} for name in held)
        )
        damaged = [log for log in self._services.logs if log.is_damaged]
        _say_some(
            "log_damaged",
            ({"log": log.topic_partition, "directory": log.directory} for log in damaged),
        )
        self.look()

    def look(self) -> None:
        """Say what is otherwise than at the last look."""
        for directory in self._services.logs.directories:
            now = directory.state.state
            if now is not self._directories.get(directory.path):
                self._directories[directory.path] = now
                log_event(_STATE_EVENTS[now], path=directory.path, reason=directory.state.reason)
            self._look_at_refused(directory)
            news = sorted(directory.offline_logs.keys() - self._offline, key=str)
            self._offline.update(news)
            reasons = directory.offline_logs
            _say_some("log_offline", ({"log": key, "reason": reasons[key]} for key in news))
        self._look_at_cleaning()
        self._look_at_leases()
        failures = self._services.logs.retention_failures
        for key in _news(self._retention, failures):
            log_event("retention_failed", log=key, reason=failures[key])
        for key in self._retention.keys() - failures.keys():
            log_event("retention_recovered", log=key)
        self._retention = dict(failures)

    def _look_at_refused(self, directory: LogDirectory) -> None:
        path, refused = directory.path, directory.state.refused
        if refused and path not in self._refusing:
            self._refusing.add(path)
            log_event("appends_refused", path=path, reason=refused)
        elif not refused and path in self._refusing:
            self._refusing.remove(path)
            if directory.state.state is DiskState.ONLINE:
                log_event("appends_resumed", path=path)

    def _look_at_cleaning(self) -> None:
        cleaner = self._services.logs.cleaner
        if cleaner is None:
            return
        marked = cleaner.uncleanable.all()
        reasons = {key: each.reason for key, each in marked.items()}
        for key in _news(self._uncleanable, reasons):
            log_event(
                "log_uncleanable", log=key, reason=reasons[key], attempts=marked[key].attempts
            )
        for key in self._uncleanable.keys() - reasons.keys():
            log_event("log_cleanable", log=key)
        self._uncleanable = reasons

    def _look_at_leases(self) -> None:
        news = self._services.logs.leases.book.news
        while news:
            ended = news.popleft()
            is_asked = ended.end in (LeaseEnd.RELEASED, LeaseEnd.EXPIRED)
            log_event(
                "lease_ended" if is_asked else "lease_lapsed",
                id=ended.lease.lease_id,
                holder=ended.lease.holder,
                reason=ended.end.value,
                held_bytes=ended.held_bytes,
            )

    def stop(self) -> None:
        self._services.logs.tell_deleted = lambda _log, _plan: None
        self._unsubscribe()


def _segments_deleted(log: Log, plan: RetentionPlan[Segment]) -> None:
    """What goes is a run of segments: the last of it is the youngest that had to."""
    last = plan.doomed[-1]
    log_event(
        "segments_deleted",
        log=log.topic_partition,
        segments=len(plan.doomed),
        bytes=plan.freed_bytes,
        log_start_offset=plan.log_start_offset,
        rule=last.breach.value,
        reason=last.explanation,
    )


def _cuts(logs: Iterable[Log]) -> Iterator[dict[str, object]]:
    """What this start has cut off although valid batches followed, and where it is kept."""
    for log in logs:
        cut = log.recovery_report.cut
        if cut is not None:
            yield {
                "log": log.topic_partition,
                "offset": cut.start_offset,
                "bytes": cut.size_bytes,
                "reason": cut.reason,
                "kept": f"{log.directory}/{CUT_DIRECTORY}",
                "until": datetime.fromtimestamp(cut.kept_until_ms / 1000, UTC).isoformat(),
            }


def _say_recovered(reports: Iterable[RecoveryReport]) -> None:
    """What a start after an unclean stop has read again, cut off and rebuilt."""
    worked = [each for each in reports if each.scanned_segments]
    if worked:
        log_event(
            "logs_recovered",
            logs=len(worked),
            segments=sum(each.scanned_segments for each in worked),
            bytes=sum(each.scanned_bytes for each in worked),
            truncated_bytes=sum(each.truncated_bytes for each in worked),
            rebuilt=sum(len(each.rebuilt) for each in worked),
        )


def _say_some(event: str, rows: Iterable[dict[str, object]]) -> None:
    """Name a few; of the others, how many there are."""
    count = 0
    for count, fields in enumerate(rows, start=1):
        if count <= _NAMED_MAX:
            log_event(event, **fields)
    if count > _NAMED_MAX:
        log_event(event, others=count - _NAMED_MAX)


def _news(
    before: Mapping[TopicPartition, str], now: Mapping[TopicPartition, str]
) -> Iterable[TopicPartition]:
    """What is new, or has another reason than before."""
    return [key for key, reason in now.items() if before.get(key) != reason]


def _metadata_changed(change: MetadataChange) -> None:
    before, after = change.before, change.after
    for topic in change.update.topics:
        known = before.topics_by_id.get(topic.topic_id)
        now = after.topics_by_id.get(topic.topic_id)
        if known is None and now is not None:
            log_event("topic_created", topic=now.name, partitions=len(now.partitions))
        elif known is not None and now is None:
            log_event("topic_deleted", topic=known.name)
        elif known is not None and now is not None:
            if len(now.partitions) != len(known.partitions):
                log_event("partitions_created", topic=now.name, partitions=len(now.partitions))
            _say_configs("topic", now.name, known.configs, now.configs)
            if known.is_held and not now.is_held:
                log_event("topic_released", topic=now.name)
    for node, configs in change.update.broker_configs.items():
        name = "all" if node is None else str(node)
        _say_configs("broker", name, before.broker_configs.get(node, {}), configs)


def _say_configs(
    resource: str, name: str, before: Mapping[str, str], now: Mapping[str, str]
) -> None:
    """Names and values: they are settings of storage, and hold no secrets."""
    changed = {key: value for key, value in now.items() if before.get(key) != value}
    gone = before.keys() - now.keys()
    if changed or gone:
        shown = [f"{key}={value}" for key, value in sorted(changed.items())]
        shown += [f"-{key}" for key in sorted(gone)]
        log_event("configs_changed", resource=resource, name=name, changes=",".join(shown))
