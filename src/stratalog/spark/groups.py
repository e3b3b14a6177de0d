"""A stream's position told to a consumer group, so that the tools that watch lag see the query.

The position that counts is the one in Spark's checkpoint; this one is for people, and nothing is
ever read from it. So it may not hold a query up: offsets are committed by a thread of its own,
the newest only, and what goes wrong is warned of once.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from stratalog.directories.owner_client import ask
from stratalog.errors import StratalogError
from stratalog.spark.admission import Offsets
from stratalog.storage.owner_file import read_owner

_log = logging.getLogger(__name__)

_WAIT_SECONDS = 2.0

# What a client needs to be let in; all else of ``kafka.*`` is about reading, or Java's alone.
_CLIENT_SETTINGS = ("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password")
_CLIENT_SETTINGS_TLS = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")


class Commits(Protocol):
    """Who takes a group's offsets."""

    def commit(self, offsets: Offsets) -> None: ...


def make_commits(
    log_directory: str, group_id: str, bootstrap_servers: str | None, kafka: Mapping[str, str]
) -> Commits:
    """A client of the broker at ``bootstrap_servers``, or else of the directory's owner."""
    servers = bootstrap_servers or owner_endpoint(log_directory)
    settings = {
        name: kafka[name] for name in _CLIENT_SETTINGS + _CLIENT_SETTINGS_TLS if name in kafka
    }
    return _ClientCommits({**settings, "bootstrap.servers": servers, "group.id": group_id})


def owner_endpoint(log_directory: str) -> str:
    """Where clients reach the broker that owns ``log_directory``; asked over its admin port."""
    owner = read_owner(log_directory)
    if not owner.admin:
        raise StratalogError(
            f"the owner of {log_directory}, process {owner.pid}, has no admin port to ask for its "
            "address; set kafka.bootstrap.servers"
        )
    # Nobody but the group's own thread waits for it.
    answer = ask(owner, "/v1/status")
    if "endpoint" not in answer.body:
        raise StratalogError(
            f"the owner of {log_directory} does not tell its address at {owner.admin} "
            f"({answer.reason}); set kafka.bootstrap.servers"
        )
    return str(answer.body["endpoint"])


class _ClientCommits:
    """librdkafka, as a member of no group: it only says how far the group has come."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        from confluent_kafka import Consumer, KafkaException

        own = {"enable.auto.commit": False, "log_level": 0, "client.id": "stratalog-spark"}
        try:
            self._consumer = Consumer({**settings, **own})
        except KafkaException as error:
            raise StratalogError(str(error.args[0])) from error

    def commit(self, offsets: Offsets) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        told = [TopicPartition(*each, offset) for each, offset in offsets.items()]
        try:
            answered = self._consumer.commit(offsets=told, asynchronous=False)
        except KafkaException as error:
            raise StratalogError(str(error.args[0])) from error
        for each in answered or ():
            if each.error is not None:
                raise StratalogError(f"{each.topic}-{each.partition}: {each.error}")


class GroupOffsets:
    """Commits positions behind the stream's back. ``submit`` and ``wait`` are the stream's."""

    def __init__(self, group_id: str, connect: Callable[[], Commits]) -> None:
        self._group_id = group_id
        self._connect = connect
        self.answered = threading.Condition()
        self._pending: Offsets | None = None
        self._submitted: Offsets | None = None
        self._is_busy = False
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._warned: str | None = None

    def submit(self, offsets: Offsets) -> None:
        """Let the group be at ``offsets``, as soon as may be; what was pending is superseded."""
        with self.answered:
            if offsets == self._submitted or not offsets or self._is_closed:
                return
            self._submitted = self._pending = dict(offsets)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"group {self._group_id}", daemon=True
                )
                self._thread.start()
            self.answered.notify_all()

    def wait(self, seconds: float = _WAIT_SECONDS) -> bool:
        """Whether all that was submitted has been answered, now or within ``seconds``.

        After a failure nobody waits any more: the query is what matters.
        """
        with self.answered:
            if self._warned is not None:
                seconds = 0
            return self.answered.wait_for(self._is_idle, seconds)

    def close(self) -> None:
        with self.answered:
            self._is_closed = True
            self.answered.notify_all()

    def _is_idle(self) -> bool:
        return self._pending is None and not self._is_busy

    def _run(self) -> None:
        commits: Commits | None = None
        while True:
            with self.answered:
                self._is_busy = False
                self.answered.notify_all()
                self.answered.wait_for(lambda: self._pending is not None or self._is_closed)
                if self._pending is None:
                    return
                offsets, self._pending = self._pending, None
                self._is_busy = True
            try:
                commits = commits or self._connect()
                commits.commit(offsets)
                self._warned = None
            except StratalogError as error:
                self._warn(str(error))

    def _warn(self, reason: str) -> None:
        if reason != self._warned:
            self._warned = reason
            _log.warning(
                "the group %s is not told how far the query has come (the query goes on): %s",
                self._group_id,
                reason,
            )
