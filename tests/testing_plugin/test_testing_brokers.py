"""``stratalog.testing.broker``: a real broker for the tests of other people's code."""

import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from ends import is_open, is_running, wait_until

from stratalog.testing import BrokerStartError, RunningBroker, broker
from stratalog.testing.launching import close_launcher
from stratalog.testing.topics import TopicNotMadeError

STARTS = 20
CLIENT_SECONDS = 60


@pytest.fixture
def own_launcher() -> Iterator[None]:
    """For tests in which the launcher is another, or none."""
    close_launcher()
    yield
    close_launcher()


def partitions(running: RunningBroker) -> dict[str, int]:
    client = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    topics = client.list_topics(timeout=CLIENT_SECONDS).topics
    return {name: len(topic.partitions) for name, topic in topics.items()}


def produce(running: RunningBroker, topic: str, value: bytes, timestamp_ms: int = 0) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
    producer.produce(topic, value, timestamp=timestamp_ms)
    assert producer.flush(CLIENT_SECONDS) == 0


def first_value(running: RunningBroker, topic: str) -> bytes:
    consumer = Consumer(
        {
            "bootstrap.servers": running.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        message = consumer.poll(CLIENT_SECONDS)
        assert message is not None
        assert message.error() is None
        return bytes(message.value() or b"")
    finally:
        consumer.close()


# --- while it runs -------------------------------------------------------------------------------


def test_it_is_a_broker_in_a_process_of_its_own_that_clients_can_use() -> None:
    with broker(topics={"orders": 3}) as running:
        produce(running, "orders", b"one")

        assert first_value(running, "orders") == b"one"
        assert partitions(running)["orders"] == 3
        assert running.is_running
        assert running.pid != os.getpid()
        assert (Path(running.log_dir) / "orders-0").is_dir()
        assert running.admin.startswith("http://127.0.0.1:")


def test_ctrl_c_is_for_the_tests_and_does_not_reach_it() -> None:
    with broker() as running:
        assert os.getsid(running.pid) != os.getsid(0)


def test_two_at_once_have_nothing_in_common() -> None:
    with broker(topics=["a"]) as one, broker(topics=["b"]) as other:
        assert one.port != other.port
        assert one.log_dir != other.log_dir
        assert (list(partitions(one)), list(partitions(other))) == (["a"], ["b"])


def test_threads_may_start_them_at_the_same_time() -> None:
    def start(number: int) -> list[str]:
        with broker(topics=[f"topic-{number}"]) as running:
            return list(partitions(running))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(start, range(4))) == [[f"topic-{n}"] for n in range(4)]


def test_settings_are_kafkas_and_may_be_numbers_and_truths() -> None:
    settings = {"num.partitions": 5, "auto.create.topics.enable": True, "log.roll.ms": "60000"}
    with broker(settings) as running:
        produce(running, "made-by-a-producer", b"one")

        assert partitions(running) == {"made-by-a-producer": 5}


def test_a_topic_may_be_made_with_configs_and_is_there_at_once() -> None:
    with broker() as running:
        running.create_topic("orders", 2, {"retention.ms": 60_000})

        assert partitions(running) == {"orders": 2}


def test_a_topic_that_cannot_be_is_refused_with_the_brokers_words() -> None:
    with (
        broker(topics=["orders"]) as running,
        pytest.raises(TopicNotMadeError, match=r"orders was not made: .*exists"),
    ):
        running.create_topic("orders")


def test_settings_win_over_those_for_quick_tests_so_that_retention_can_be_tested() -> None:
    settings = {"log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 1}
    with broker(settings, topics=["orders"]) as running:
        produce(running, "orders", b"old", timestamp_ms=1)

        wait_until(lambda: "segments_deleted" in running.events())


def test_what_it_writes_can_be_read_and_by_nobody_else() -> None:
    with broker() as running:
        home = Path(running.log_dir).parent

        assert f"ready address={running.bootstrap_servers}" in running.events()
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


# --- its end -------------------------------------------------------------------------------------


def test_nothing_is_left_behind() -> None:
    with broker(topics=["orders"]) as running:
        pid, port, home = running.pid, running.port, Path(running.log_dir).parent
        assert is_open(port)

    assert not is_running(pid)
    assert not is_open(port)
    assert not home.exists()


def test_nothing_is_left_behind_by_a_test_that_fails() -> None:
    seen = []

    def fail() -> None:
        with broker() as running:
            seen.append((running.pid, Path(running.log_dir).parent))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    (pid, home) = seen[0]
    assert not is_running(pid)
    assert not home.exists()


def test_what_was_acknowledged_survives_a_kill_and_clients_find_it_at_the_same_address() -> None:
    with broker(topics=["orders"]) as running:
        address, first = running.bootstrap_servers, running.pid
        produce(running, "orders", b"one")
        running.kill()

        assert (running.is_running, running.exit_code) == (False, -9)
        assert not is_running(first)

        running.start()

        assert running.is_running
        assert running.bootstrap_servers == address
        assert first_value(running, "orders") == b"one"


def test_a_restart_is_clean() -> None:
    with broker(topics=["orders"]) as running:
        running.stop()
        assert running.exit_code == 0
        assert (Path(running.log_dir) / ".kafka_cleanshutdown").exists()
        running.start()

        assert partitions(running) == {"orders": 1}


def test_to_stop_what_does_not_run_is_nothing_and_to_start_what_runs_neither() -> None:
    with broker() as running:
        pid = running.pid
        running.start()
        assert running.pid == pid
        running.kill()
        running.kill()
        running.stop()
        assert running.exit_code == -9


def test_one_that_ends_by_itself_is_seen_to_have_ended() -> None:
    with broker() as running:
        os.kill(running.pid, 9)
        wait_until(lambda: not running.is_running)

        assert running.exit_code == -9


def test_a_directory_of_the_callers_is_served_and_left_clean(tmp_path: Path) -> None:
    with broker(topics={"orders": 2}, log_dir=tmp_path / "data") as running:
        produce(running, "orders", b"one")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()

    with broker(log_dir=tmp_path / "data") as running:
        assert first_value(running, "orders") == b"one"


# --- what cannot be ------------------------------------------------------------------------------


def start_error(**arguments: object) -> str:
    with (
        pytest.raises(BrokerStartError) as refused,
        broker(**arguments),  # type: ignore[arg-type]
    ):
        pass
    return str(refused.value)


def test_a_setting_that_is_none_is_told_in_the_brokers_own_words() -> None:
    assert "did you mean num.partitions?" in start_error(settings={"num.partitons": 1})


def test_a_port_that_is_taken_is_told() -> None:
    with broker() as running:
        assert f"127.0.0.1:{running.port}" in start_error(port=running.port)


def test_a_directory_that_another_broker_has_is_told() -> None:
    with broker() as running:
        assert str(running.pid) in start_error(log_dir=running.log_dir)


def test_the_directory_is_an_argument_and_no_setting() -> None:
    assert "log_dir" in start_error(settings={"log.dirs": "/tmp/anywhere"})


def test_a_start_that_takes_too_long_is_ended_and_told() -> None:
    assert "took longer than 0 s" in start_error(start_seconds=0.0)


def test_a_directory_that_cannot_be_served_again_is_told() -> None:
    with broker() as running:
        running.kill()
        Path(running.log_dir, "meta.properties").write_bytes(b"version=7\n")
        with pytest.raises(BrokerStartError, match=r"not ready: .*meta.properties"):
            running.start()
        assert not running.is_running


def test_a_start_that_failed_can_be_tried_again() -> None:
    with broker() as running:
        running.kill()
        running._start_seconds = 0.0
        with pytest.raises(BrokerStartError):
            running.start()
        assert not running.is_running
        running._start_seconds = 30.0
        running.start()

        assert running.is_running
        assert partitions(running) == {}


@pytest.mark.usefixtures("own_launcher")
def test_a_python_that_cannot_run_a_broker_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho there is no such module >&2\nexit 1\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))

    assert "there is no such module" in start_error()


# --- how quickly ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_launcher")
def test_twenty_starts_in_a_row_are_quick_and_leave_nothing() -> None:
    seconds = []
    for _ in range(STARTS):
        began = time.perf_counter()
        with broker() as running:
            seconds.append(time.perf_counter() - began)
            pid, home = running.pid, Path(running.log_dir).parent
        assert not is_running(pid)
        assert not home.exists()

    # A machine may be slow or busy: `python -m benchmarks fixture` has the bars. The first start
    # imports the broker, which the others need not.
    assert median(seconds[1:]) < seconds[0] / 2


def test_a_directory_with_a_comma_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    said = start_error(log_dir=tmp_path / "a,b")

    assert "has no comma in its name" in said
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    places = {"file": "is not a directory", "file/below": "cannot be made", "n" * 300: "too long"}
    for name, why in places.items():
        with pytest.raises(BrokerStartError, match=why), broker(log_dir=tmp_path / name):
            pass
    with pytest.raises(BrokerStartError, match="empty"), broker(log_dir=""):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("own_launcher")
def test_a_temporary_directory_with_a_comma_is_told_where_logs_would_be_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "here, there"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)

    with pytest.raises(BrokerStartError, match=f"{place} has a comma .*TMPDIR"), broker():
        pass
    assert list(place.iterdir()) == []
    with broker(topics=["orders"], log_dir=tmp_path / "logs") as running:
        assert partitions(running) == {"orders": 1}
        running.restart()
        assert partitions(running) == {"orders": 1}
    assert list(place.iterdir()) == []


def test_a_topic_of_a_broker_that_is_stopped_is_told() -> None:
    with broker() as running:
        running.stop()
        with pytest.raises(TopicNotMadeError, match="gave no answer"):
            running.create_topic("orders")
