"""Commits over the admin port of a running broker: answers, refusals, and what else goes on."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

import stratalog
from broker_fixture import RunningBroker, running_broker
from handover_staging import rows, stage, staged_left
from stratalog.broker import admin_app, commit_admin, committing
from stratalog.handover import Handover, open_handover
from stratalog.storage.commits.committing import CommitResult
from stratalog.storage.commits.errors import CommitRefusedError
from stratalog.storage.commits.journal import PendingCommit
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.storage.layout import TopicPartition
from stratalog.storage.owner_file import read_owner

ORDERS = TopicPartition("orders", 0)
SECONDS = 60


def create(broker: RunningBroker, name: str = "orders", partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    configs = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=configs)])[name].result(60)


def ask(
    path: Path,
    page: str,
    content: bytes | None = None,
    *,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """POST ``content``, or GET if there is none; status and body."""
    owner = read_owner(str(path))
    address = urlsplit(owner.admin)
    assert address.hostname is not None
    sent = {"Authorization": f"Bearer {owner.token}"} if headers is None else headers
    with closing(HTTPConnection(address.hostname, address.port, timeout=SECONDS)) as channel:
        channel.request("GET" if content is None else "POST", page, content, sent)
        response = channel.getresponse()
        return response.status, json.loads(response.read())


def keys_in(path: Path, topic: str = "orders", partition: int = 0) -> list[bytes | None]:
    with stratalog.open_directory(path, topics={topic: {}}) as logs:
        return [each.key for each in logs.log(topic, partition).records()]


def expected(first: int, count: int) -> list[bytes]:
    return [b"s%d" % number for number in range(first, first + count)]


class Later(threading.Thread):
    """A commit that somebody else waits for."""

    def __init__(self, handover: Handover, manifest: Manifest) -> None:
        super().__init__(daemon=True)
        self._ask = lambda: handover.commit(manifest)
        self._found: CommitResult | Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._found = self._ask()
        except Exception as error:  # noqa: BLE001 - raised again where the test waits
            self._found = error

    def result(self) -> CommitResult:
        self.join(SECONDS)
        if isinstance(self._found, Exception):
            raise self._found
        assert self._found is not None, "it is not done in time"
        return self._found


@contextmanager
def busy_worker(broker: RunningBroker) -> Iterator[threading.Event]:
    """The worker of commits has something else to do, until the event is set."""
    begun, may_go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_go_on.wait(SECONDS)

    broker.broker.services.commits.worker.submit(work)
    assert begun.wait(SECONDS)
    try:
        yield may_go_on
    finally:
        may_go_on.set()


@contextmanager
def standing_still(
    broker: RunningBroker, manifest: Manifest
) -> Iterator[tuple[Later, threading.Event]]:
    """A commit between its stop and its settling, until the event is set."""
    settle = threading.Event()
    with busy_worker(broker) as check:
        log_dir = broker.broker.services.logs.directories[0].path
        asked = Later(open_handover(log_dir), manifest)
        wait_until(broker, lambda: is_planned(broker))
        broker.broker.services.commits.worker.submit(settle.wait, SECONDS)
        check.set()
        wait_until(broker, lambda: log_of(broker).is_paused)
        try:
            yield asked, settle
        finally:
            settle.set()


def wait_until(broker: RunningBroker, is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not broker.call(is_so):
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.005)


def is_planned(broker: RunningBroker) -> bool:
    return broker.broker.services.logs.commits.is_under_way(ORDERS)


def log_of(broker: RunningBroker) -> Any:
    return broker.broker.services.logs.get(ORDERS)


# --- answers ----------------------------------------------------------------------------------


def test_a_manifest_is_answered_with_its_offsets_and_the_same_one_again_as_known(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        app = AppVersion(name="q", version=3)
        manifest = stage(
            open_handover(tmp_path), "orders", {0: [rows(0, 7)]}, manifest_id="q:3", app=app
        )
        assert ask(tmp_path, "/v1/commits/q:3") == (200, {"status": "unknown"})
        offsets = {"id": "q:3", "partitions": [["orders", 0, 0, 7]]}
        again = {"status": "already committed", **offsets}

        assert ask(tmp_path, "/v1/commits", manifest.encode()) == (
            200,
            {"status": "committed", **offsets},
        )
        assert ask(tmp_path, "/v1/commits", manifest.encode()) == (200, again)
        assert ask(tmp_path, "/v1/commits/q:3") == (200, again)
        _, told = ask(tmp_path, "/v1/commits/other?app=q&version=2")
        assert told["status"] == "already committed"
        asked = f"/v1/commits/other?app=q&version=2&log_dir={tmp_path}"
        assert ask(tmp_path, asked)[1]["status"] == "already committed"
        _, told = ask(tmp_path, "/v1/commits/other?app=q&version=4")
        assert told["status"] == "unknown"
        status, told = ask(tmp_path, "/v1/commits/other?app=q")
        assert (status, "version" in told["error"]) == (400, True)
    assert keys_in(tmp_path) == expected(0, 7)


def test_what_is_refused_is_remembered_with_its_reason_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        manifest = stage(open_handover(tmp_path), "orders", {0: [rows(0, 7)]}, manifest_id="m")
        (file,) = staged_left(tmp_path)
        content = file.read_bytes()
        file.unlink()

        status, answer = ask(tmp_path, "/v1/commits", manifest.encode())

        assert (status, answer["status"], answer["kind"]) == (422, "refused", "StagedFileError")
        assert file.name in answer["error"]
        assert ask(tmp_path, "/v1/commits/m") == (200, answer)
        _, told = ask(tmp_path, "/v1/status")
        assert told["commits"] == {"running": 0, "committed": 0, "refused": 1}
        file.write_bytes(content)
        status, answer = ask(tmp_path, "/v1/commits", manifest.encode())
        assert (status, answer["status"]) == (200, "committed")


def test_a_topic_that_is_not_there_is_a_conflict(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        manifest = stage(open_handover(tmp_path), "orders", {0: [rows(0, 7)]})
        (part,) = manifest.partitions
        manifest = replace(manifest, partitions=(replace(part, partition=5),))

        status, answer = ask(tmp_path, "/v1/commits", manifest.encode())

        assert (status, answer["kind"]) == (409, "CommitRefusedError")
        assert "orders-5" in answer["error"]


BODIES = {
    "nothing": b"",
    "half of one": b'{"version": 1, "id": "x"',
    "a list": b"[]",
    "brackets": b"[" * 100_000,
    "another version": b'{"version": 2}',
    "no digest": b'{"version": 1, "id": "x", "kind": "append"}',
    "not UTF-8": b'{"id": "\xff"}',
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("served")
    with running_broker(path) as broker:
        create(broker)
        yield path


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_no_manifest_is_refused(served: Path, body: bytes) -> None:
    status, answer = ask(served, "/v1/commits", body)
    assert (status, answer["kind"]) == (422, "ManifestError")


@pytest.mark.parametrize("log_dir", ["\0", "data\0", "\ud800", 7])
def test_a_log_directory_that_is_no_path_is_told_so(served: Path, log_dir: str | int) -> None:
    body = {"id": "0" * 32, "log_dir": log_dir, "topics": ["orders"], "seconds": 60}
    answers = [ask(served, "/v1/compactions", json.dumps(body).encode())]
    if isinstance(log_dir, str) and log_dir.isascii():
        page = f"/v1/commits/x?app=a&version=1&log_dir={quote(log_dir)}"
        answers.append(ask(served, page))
    assert answers == [(400, {"error": '"log_dir" is not a path'})] * len(answers)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}, {"Origin": "http://x"}])
def test_without_the_token_or_from_a_web_page_nothing_is_committed(
    served: Path, headers: dict[str, str]
) -> None:
    if "Origin" in headers:
        headers = {**headers, "Authorization": f"Bearer {read_owner(str(served)).token}"}
    manifest = stage(open_handover(served), "orders", {0: [rows(0, 1)]})
    status, _ = ask(served, "/v1/commits", manifest.encode(), headers=headers)
    assert status in (401, 403)
    assert ask(served, f"/v1/commits/{manifest.manifest_id}")[1] == {"status": "unknown"}


def test_a_body_that_is_too_large_is_not_read(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_app, "COMMIT_BODY_BYTES_MAX", 1000)
    status, answer = ask(served, "/v1/commits", b"x" * 1001)
    assert (status, answer["error"]) == (413, "a body has at most 1000 bytes")


def test_who_sends_a_body_too_slowly_is_disconnected(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_app, "REQUEST_SECONDS_MAX", 0.2)
    owner = read_owner(str(served))
    address = urlsplit(owner.admin)
    head = (
        f"POST /v1/commits HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {owner.token}\r\nContent-Length: 1000\r\n\r\n{{"
    )
    with socket.create_connection((address.hostname, address.port), timeout=SECONDS) as slow:
        slow.sendall(head.encode())
        answer = slow.recv(1000)
    assert answer == b"" or b" 500 " in answer.splitlines()[0]


def test_a_commit_that_takes_long_is_answered_as_running_and_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_admin, "ANSWER_SECONDS", 0.01)
    with running_broker(tmp_path) as broker:
        create(broker)
        handover = open_handover(tmp_path)
        manifest = stage(handover, "orders", {0: [rows(0, 7)]}, manifest_id="m")
        with busy_worker(broker) as go_on:
            assert ask(tmp_path, "/v1/commits", manifest.encode()) == (202, {"status": "running"})
            assert ask(tmp_path, "/v1/commits/m") == (200, {"status": "running"})
            asked = Later(handover, manifest)
            go_on.set()
            assert asked.result().partitions == {ORDERS: (0, 7)}
    assert keys_in(tmp_path) == expected(0, 7)


def test_who_asks_for_the_same_commit_meanwhile_waits_for_the_one_that_runs(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        handover = open_handover(tmp_path)
        manifest = stage(handover, "orders", {0: [rows(0, 7)]})
        with busy_worker(broker) as go_on:
            asked = [Later(handover, manifest) for _ in range(4)]
            wait_until(broker, lambda: is_planned(broker))
            go_on.set()
            assert {each.result().partitions[ORDERS] for each in asked} == {(0, 7)}
    assert keys_in(tmp_path) == expected(0, 7)


def test_commits_wait_for_their_turn(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        handover = open_handover(tmp_path)
        manifests = [stage(handover, "orders", {0: [rows(10 * each, 10)]}) for each in range(5)]
        with busy_worker(broker) as go_on:
            asked = [Later(handover, each) for each in manifests]
            wait_until(broker, lambda: broker.broker.services.commits.running_count == 5)
            go_on.set()
            found = sorted(each.result().partitions[ORDERS] for each in asked)
    assert found == [(10 * each, 10 * each + 10) for each in range(5)]
    assert sorted(map(str, keys_in(tmp_path))) == sorted(map(str, expected(0, 50)))


@contextmanager
def unfinished_commit(broker: RunningBroker) -> Iterator[None]:
    """The log of orders has a commit whose end could not be noted; until the block is left."""
    services = broker.broker.services
    commits, directory = services.logs.commits, services.logs.directories[0]
    work = {"topic": "orders", "partition": 0, "mode": "append"}
    record = PendingCommit(
        manifest_id="earlier",
        kind="append",
        staging_id="ab" * 16,
        app=None,
        at_ms=services.clock.now_ms(),
        work=(work,),
    )

    def leave() -> None:
        journal = commits._journals[directory.path]
        journal.prepare()
        journal.commit(record)
        commits.leave_unfinished(directory, journal, record)

    broker.call(leave)
    yield
    broker.call(lambda: commits.sweep(services.clock.now_ms()))


def test_a_commit_to_a_busy_log_holds_up_no_commit_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "_BUSY_TRIES", 10**6)
    with running_broker(tmp_path) as broker:
        create(broker)
        create(broker, "other")
        handover = open_handover(tmp_path)
        manifests = [stage(handover, name, {0: [rows(0, 7)]}) for name in ("orders", "other")]
        with unfinished_commit(broker):
            asked = Later(handover, manifests[0])
            wait_until(broker, lambda: broker.broker.services.commits.running_count == 1)
            status, answer = ask(tmp_path, "/v1/commits", manifests[1].encode())
            assert (status, answer["status"]) == (200, "committed")
            assert asked.is_alive()
        assert asked.result().status == "committed"


def test_a_later_version_does_not_overtake_one_that_waits_for_a_busy_log(tmp_path: Path) -> None:
    """Of the earlier one it would be said that it was made, and it never would be."""
    with running_broker(tmp_path) as broker:
        create(broker)
        create(broker, "other")
        handover, commits = open_handover(tmp_path), broker.broker.services.commits
        manifests = [
            stage(
                handover,
                name,
                {0: [rows(0, 7)]},
                manifest_id=f"q:{version}",
                app=AppVersion(name="q", version=version),
            )
            for version, name in enumerate(("orders", "other"))
        ]
        asked = []
        with unfinished_commit(broker):
            for manifest in manifests:
                asked.append(Later(open_handover(tmp_path), manifest))
                wait_until(broker, lambda each=manifest: each.manifest_id in commits._waiting)  # type: ignore[misc]
        assert [each.result().status for each in asked] == ["committed", "committed"]


# --- who else wants something -----------------------------------------------------------------


def test_producers_wait_while_a_log_stands_still_and_their_order_stays(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        create(broker, "other")
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_server,
                "linger.ms": 0,
                "enable.idempotence": True,
                "batch.num.messages": 1,
            }
        )
        producer.produce("orders", b"v", b"first")
        producer.flush(SECONDS)
        manifest = stage(open_handover(tmp_path), "orders", {0: [rows(0, 7)]})
        services = broker.broker.services
        with standing_still(broker, manifest) as (asked, settle):
            for number in range(20):
                producer.produce("orders", b"v", b"p%d" % number)
            producer.poll(0)
            wait_until(broker, lambda: len(services.replicas.append_purgatory) == 1)
            assert services.memory.used_bytes > 0, "what waits is counted"
            assert broker.call(lambda: log_of(broker).log_end_offset) == 1
            # Others are served meanwhile, out of the same buffer.
            other = Producer({"bootstrap.servers": broker.bootstrap_server, "linger.ms": 0})
            for _ in range(5):
                other.produce("other", b"w" * 5_000, b"w" * 5_000)
                assert other.flush(SECONDS) == 0
            settle.set()
            assert asked.result().partitions == {ORDERS: (1, 8)}
        assert producer.flush(SECONDS) == 0
        assert services.memory.used_bytes == 0
    wanted = [b"first", *expected(0, 7), *(b"p%d" % number for number in range(20))]
    assert keys_in(tmp_path) == wanted


@pytest.mark.parametrize("is_synced", [True, False], ids=["flush on ack", "page cache"])
def test_nothing_is_lost_or_out_of_order_while_commits_and_producers_meet(
    tmp_path: Path, is_synced: bool
) -> None:
    with running_broker(tmp_path, log_flush_on_ack=str(is_synced).lower()) as broker:
        create(broker, segment_bytes="4000000")
        handover = open_handover(tmp_path)
        produced = [0]
        is_over = threading.Event()
        failures: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(error)

        def produce() -> None:
            producer = Producer(
                {"bootstrap.servers": broker.bootstrap_server, "enable.idempotence": True}
            )
            while not is_over.is_set():
                for _ in range(20):
                    key = b"p%d" % produced[0]
                    producer.produce("orders", b"v" * 50, key, on_delivery=delivered)
                    produced[0] += 1
                producer.poll(0.01)
            failures.extend(["not flushed"] * producer.flush(SECONDS))

        thread = threading.Thread(target=produce)
        thread.start()
        batch = [rows(0, 100, 9_000)]
        results = []
        try:
            for size in (1, 25, 1, 1, 40, 1):  # in batches of 0.9 MB: some appended, some adopted
                manifest = stage(handover, "orders", {0: batch * size})
                results.append(handover.commit(manifest).partitions[ORDERS])
        finally:
            is_over.set()
            thread.join(SECONDS)
    found = keys_in(tmp_path)
    assert failures == []
    assert [each for each in found if each and each[:1] == b"p"] == [
        b"p%d" % number for number in range(produced[0])
    ]
    for (first, end), size in zip(results, (1, 25, 1, 1, 40, 1), strict=True):
        assert found[first:end] == expected(0, 100) * size
    assert len(found) == produced[0] + 69 * 100


def test_a_reader_that_waits_sees_what_was_committed_at_once(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_server,
                "group.id": "g",
                # Twice as long as anything here is waited for: nothing comes because it is over.
                "fetch.wait.max.ms": 2 * SECONDS * 1_000,
                "socket.timeout.ms": 3 * SECONDS * 1_000,
                "session.timeout.ms": 1_000,  # closing asks for this long, behind that fetch
                "fetch.error.backoff.ms": 1,
            }
        )
        consumer.assign([Place("orders", 0, 0)])
        replicas = broker.broker.services.replicas

        def is_waiting() -> bool:
            consumer.poll(0)
            return len(replicas.fetch_purgatory) == 1

        until = time.monotonic() + SECONDS
        while not is_waiting():
            assert time.monotonic() < until
            time.sleep(0.005)
        for manifest_rows in ([rows(0, 5)], [rows(5, 20, 45_000)] * 20):
            handover = open_handover(tmp_path)
            handover.commit(stage(handover, "orders", {0: manifest_rows}))
            count = 5 if len(manifest_rows) == 1 else 400
            found = consumer.consume(count, timeout=SECONDS)
            assert len(found) == count
        consumer.close()


def test_a_topic_deleted_while_its_files_are_checked_refuses_them_and_harms_nobody(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        create(broker, "other")
        handover = open_handover(tmp_path)
        manifest = stage(handover, "orders", {0: [rows(0, 7)]})
        with busy_worker(broker) as go_on:
            asked = Later(handover, manifest)
            wait_until(broker, lambda: is_planned(broker))
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
            admin.delete_topics(["orders"])["orders"].result(SECONDS)
            go_on.set()
            with pytest.raises(stratalog.StratalogError):
                asked.result()
        create(broker)
        with pytest.raises(CommitRefusedError):
            handover.commit(manifest)  # of another topic of that name
        committed = handover.commit(stage(handover, "other", {0: [rows(0, 7)]}))
        assert committed.status == "committed"
        assert ask(tmp_path, "/health")[1]["status"] == "ok"


def test_a_topic_is_deleted_after_the_commit_that_its_logs_stand_still_for(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        manifest = stage(open_handover(tmp_path), "orders", {0: [rows(0, 7)]})
        with standing_still(broker, manifest) as (asked, settle):
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
            deleted = admin.delete_topics(["orders"])["orders"]
            wait_until(broker, lambda: len(broker.broker.services.topics._changes) == 2)
            assert ORDERS in broker.broker.services.logs
            settle.set()
            assert asked.result().partitions == {ORDERS: (0, 7)}
        deleted.result(SECONDS)
        assert ORDERS not in broker.broker.services.logs
        assert ask(tmp_path, "/health")[1]["status"] == "ok"


def test_a_setting_changed_while_files_are_checked_counts_for_them(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        handover = open_handover(tmp_path)
        small, large = (stage(handover, "orders", {0: [rows(0, 7, size)]}) for size in (10, 10_000))
        with busy_worker(broker) as go_on:
            asked = [Later(handover, small)]
            wait_until(broker, lambda: is_planned(broker))
            asked.append(Later(handover, large))
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
            entry = ConfigEntry(
                "max.message.bytes", "5000", incremental_operation=AlterConfigOpType.SET
            )
            resource = ConfigResource("topic", "orders", incremental_configs=[entry])
            for future in admin.incremental_alter_configs([resource]).values():
                future.result(SECONDS)
            go_on.set()
            assert asked[0].result().partitions == {ORDERS: (0, 7)}
            with pytest.raises(stratalog.StratalogError, match="5000"):
                asked[1].result()


def test_a_broker_that_stops_within_a_commit_leaves_a_definite_answer(tmp_path: Path) -> None:
    """Whoever asks is answered by it, or goes on as the next owner."""
    with running_broker(tmp_path) as broker:
        create(broker)
        handover = open_handover(tmp_path)
        first, second = (stage(handover, "orders", {0: [rows(each, 7)]}) for each in (0, 7))
        with busy_worker(broker) as go_on:
            asked = [Later(handover, first)]
            wait_until(broker, lambda: is_planned(broker))
            asked.append(Later(handover, second))
            wait_until(broker, lambda: broker.broker.services.commits.running_count == 2)
            broker.broker.services.logs.commits.stop_checks()
            broker.call(lambda: setattr(broker.broker.services.commits, "is_stopping", True))
            go_on.set()
    places = [each.result().partitions[ORDERS] for each in asked]
    assert sorted(places) == [(0, 7), (7, 14)]
    found = keys_in(tmp_path)
    assert [found[first:end] for first, end in places] == [expected(0, 7), expected(7, 7)]
    assert len(found) == 14


def test_a_broker_does_not_stay_for_what_takes_long_to_be_checked(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker, max_message_bytes="2000000")
        commits = broker.broker.services.logs.commits
        begun, is_stopping = threading.Event(), threading.Event()

        def take_long() -> bool:
            begun.set()
            return not is_stopping.wait(SECONDS)

        def stop_checks(stop: Callable[[], None] = commits.stop_checks) -> None:
            stop()
            is_stopping.set()

        commits.pause, commits.stop_checks = take_long, stop_checks  # type: ignore[method-assign]
        manifest = stage(open_handover(tmp_path), "orders", {0: [rows(0, 100, 9_000)] * 5})
        asked = Later(open_handover(tmp_path), manifest)
        assert begun.wait(SECONDS)
    assert asked.result().partitions == {ORDERS: (0, 500)}, "the driver did it itself"
    assert keys_in(tmp_path) == expected(0, 100) * 5


def test_commits_are_counted(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        create(broker)
        handover = open_handover(tmp_path)
        manifest = stage(handover, "orders", {0: [rows(0, 7)]})
        handover.commit(manifest)
        handover.commit(manifest)
        counts = broker.broker.services.metrics.commits
        assert (counts.committed, counts.refused) == (1, 0)
        assert counts.committed_bytes == manifest.partitions[0].size_bytes
        assert (counts.duration.count, counts.paused.count) == (1, 1)


def test_a_body_that_does_not_come_is_told_so_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_app, "BODY_SECONDS_MAX", 0.01)
    with running_broker(tmp_path):
        owner = read_owner(str(tmp_path))
        address = urlsplit(owner.admin)
        with socket.create_connection((address.hostname, address.port), timeout=SECONDS) as channel:
            head = "POST /v1/commits HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
            channel.sendall(f"{head}Authorization: Bearer {owner.token}\r\n\r\n{{".encode())
            answer = b"".join(iter(lambda: channel.recv(4096), b""))

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.split(b"\r\n\r\n")[1]) == {
        "error": "the body did not come to its end in 0.01 s"
    }
