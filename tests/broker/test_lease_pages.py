"""Leases over the admin port, and by those who read a running broker's files."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from broker_parts import append, broker_parts, create_topic
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker_fixture import RunningBroker, running_broker
from command_line import run_stratalog
from stratalog.broker import compaction_admin
from stratalog.broker.services import Services
from stratalog.clock import SteadyClock, SystemClock
from stratalog.scans import leasing
from stratalog.scans.selection import Subscribe
from stratalog.scans.snapshot import take_snapshot
from stratalog.storage.cleaning.states import Phase
from stratalog.storage.layout import TopicPartition, lease_file
from stratalog.storage.owner_file import read_owner
from stratalog.testing import ManualClock

ORDERS = TopicPartition("orders", 0)


def make_topic(broker: RunningBroker, name: str = "orders", rows: int = 50) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    config = {"internal.segment.bytes": "4000", "file.delete.delay.ms": "0"}
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(60)
    producer = Producer({"bootstrap.servers": broker.bootstrap_server, "linger.ms": 0})
    for number in range(rows):
        producer.produce(name, b"v%d" % number * 100, b"k")
        producer.flush(60)


def delete_everything(broker: RunningBroker) -> None:
    def act() -> None:
        logs = broker.broker.services.logs
        log = logs.get(ORDERS)
        log.roll()
        log.delete_records(-1)
        logs.check_retention(log, logs.clock.now_ms())
        logs.delete_due(logs.clock.now_ms())

    broker.call(act)


def kept(path: Path) -> list[Path]:
    return sorted(path.glob("*/.stratalog/leased/*.log"))


def ask(path: Path, page: str, body: Any = None) -> leasing.Answer:
    return leasing._ask(read_owner(str(path)), page, body)


def test_what_is_held_outlives_retention_until_it_is_released(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        make_topic(broker)
        snapshot = take_snapshot(str(tmp_path), Subscribe(("orders",)))
        before = [each.read_bytes() for each in sorted(tmp_path.glob("orders-0/*.log"))]
        holding = leasing.hold(snapshot, holder="a test")
        assert holding.is_held, holding.why_not
        delete_everything(broker)
        assert [each.read_bytes() for each in kept(tmp_path)] == before
        assert leasing.renew(str(tmp_path), holding.lease_ids, 900)
        (row,) = ask(tmp_path, "/v1/leases").body["leases"]
        assert (row["holder"], row["topics"]) == ("a test", {"orders": 1})
        assert row["held_bytes"] >= sum(map(len, before))
        assert leasing.release(str(tmp_path), holding.lease_ids)
        broker.call(broker.broker.services.logs._janitor.finish)
        assert kept(tmp_path) == []
        assert not leasing.renew(str(tmp_path), holding.lease_ids)
        assert not leasing.release(str(tmp_path), holding.lease_ids)


def test_a_lease_survives_a_restart_of_its_broker(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        make_topic(broker)
        holding = leasing.hold_ranges(str(tmp_path), {ORDERS: (0, 50)}, holder="a test")
        delete_everything(broker)
        before = kept(tmp_path)
        assert before
    with running_broker(tmp_path):
        assert kept(tmp_path) == before
        assert leasing.renew(str(tmp_path), holding.lease_ids)


def test_a_lease_left_as_a_file_is_known_to_who_renews_it(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        make_topic(broker, rows=1)
    holding = leasing.hold_ranges(str(tmp_path), {ORDERS: (0, 50)}, holder="a test")
    assert holding.is_held
    path = Path(lease_file(str(tmp_path), holding.lease_ids[0]))
    content, until_ns = path.read_bytes(), path.stat().st_mtime_ns
    path.unlink()
    with running_broker(tmp_path):
        assert ask(tmp_path, "/v1/leases").body == {"leases": []}
        path.write_bytes(content)
        os.utime(path, ns=(until_ns, until_ns))
        assert leasing.renew(str(tmp_path), holding.lease_ids)
        (row,) = ask(tmp_path, "/v1/leases").body["leases"]
        assert row["id"] == holding.lease_ids[0]


def test_a_lease_that_nobody_renews_ends_by_itself(tmp_path: Path) -> None:
    clock = ManualClock(SystemClock().now_ms())
    with running_broker(tmp_path, clock=clock) as broker:
        make_topic(broker, rows=5)
        assert leasing.hold_ranges(str(tmp_path), {ORDERS: (0, 5)}, seconds=60, holder="a").is_held
        delete_everything(broker)
        assert kept(tmp_path)
        clock.advance(60_001)
        broker.call(lambda: broker.broker.services.logs.delete_due(clock.now_ms()))
        broker.call(broker.broker.services.logs._janitor.finish)
        assert kept(tmp_path) == []


def test_ten_thousand_partitions_are_held_by_one_request(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        ranges = {TopicPartition("t" * 249, number): (0, 1 << 40) for number in range(10_000)}
        holding = leasing.hold_ranges(str(tmp_path), ranges, holder="a test")
        assert holding.is_held, holding.why_not
        assert leasing.renew(str(tmp_path), holding.lease_ids)
        leases = broker.broker.services.logs.leases.book.leases
        assert len(leases[holding.lease_ids[0]].ranges) == 10_000


GOOD = {"holder": "x", "seconds": 60, "ranges": {"orders": {"0": [0, 5]}}}


@pytest.mark.parametrize(
    "change",
    [
        {"holder": ""},
        {"holder": 5},
        {"seconds": 0},
        {"seconds": True},
        {"seconds": "60"},
        {"seconds": 1e300},
        {"ranges": {}},
        {"ranges": []},
        {"ranges": {"orders": {"0": [5, 0]}}},
        {"ranges": {"orders": {"0": [-1, 5]}}},
        {"ranges": {"orders": {"0": [0, 1 << 63]}}},
        {"ranges": {"orders": {"x": [0, 5]}}},
        {"ranges": {"or/ders": {"0": [0, 5]}}},
    ],
)
def test_a_lease_that_makes_no_sense_is_refused_with_a_sentence(
    asked: Path, change: dict[str, Any]
) -> None:
    answer = ask(asked, "/v1/leases", GOOD | change)
    assert answer.status == 400
    assert answer.body["error"]
    assert ask(asked, "/v1/leases").body == {"leases": []}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("asked")
    with running_broker(path):
        yield path


@pytest.mark.parametrize("page", ["renew", "release"])
@pytest.mark.parametrize("lease_id", ["0" * 32, "..", "%2e%2e%2fx"])
def test_a_lease_that_is_not_there_is_not_found(asked: Path, page: str, lease_id: str) -> None:
    answer = ask(asked, f"/v1/leases/{lease_id}/{page}", {"seconds": 5})
    assert answer.status == 404


def test_whoever_lacks_the_token_gets_no_lease(asked: Path) -> None:
    owner = read_owner(str(asked))
    answer = leasing._ask(
        type(owner)(pid=owner.pid, admin=owner.admin, token="x"), "/v1/leases", GOOD
    )
    assert answer.status == 0, "it counts as somebody else's port"
    assert ask(asked, "/v1/leases").body == {"leases": []}


def test_a_body_has_an_end(asked: Path) -> None:
    answer = ask(asked, "/v1/leases", GOOD | {"holder": "x" * (5 << 20)})
    assert answer.status in (0, 413)


# --- the command ------------------------------------------------------------------------------


def test_leases_of_a_running_broker_are_listed_and_released(tmp_path: Path) -> None:
    where = ("--log-dir", str(tmp_path))
    with running_broker(tmp_path) as broker:
        make_topic(broker, rows=1)
        assert (
            run_stratalog("lease", "list", *where).text == f"Nobody holds anything of {tmp_path}.\n"
        )
        (lease_id,) = leasing.hold_ranges(
            str(tmp_path), {ORDERS: (0, 50)}, holder="a notebook"
        ).lease_ids
        assert "a notebook" in run_stratalog("lease", "list", *where).text
        (row,) = run_stratalog("lease", "list", *where, "-o", "json").json["leases"]
        assert row["id"] == lease_id
        ran = run_stratalog("lease", "release", lease_id, *where)
        assert (ran.exit_code, ran.text) == (0, "1 lease released.\n")
        assert run_stratalog("lease", "list", *where, "-o", "json").json == {"leases": []}
        ran = run_stratalog("lease", "release", lease_id, *where)
        assert ran.exit_code == 1
        assert f"there is no lease {lease_id}" in ran.stderr


def test_leases_without_a_broker_are_listed_and_released(tmp_path: Path) -> None:
    where = ("--log-dir", str(tmp_path))
    with running_broker(tmp_path) as broker:
        make_topic(broker)
        held = leasing.hold_ranges(str(tmp_path), {ORDERS: (0, 50)}, holder="a notebook")
        delete_everything(broker)
    (row,) = run_stratalog("lease", "list", *where, "-o", "json").json["leases"]
    assert (row["id"], row["topics"]) == (held.lease_ids[0], {"orders": 1})
    assert row["held_bytes"] > 5_000
    ran = run_stratalog("lease", "release", "--all", *where, "-o", "json")
    assert json.loads(ran.text) == {"released": list(held.lease_ids)}
    assert run_stratalog("lease", "list", *where, "-o", "json").json == {"leases": []}
    assert not Path(lease_file(str(tmp_path), held.lease_ids[0])).exists()


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [(("release",), 2), (("release", "--all", "0" * 32), 2), (("list",), 1)],
    ids=str,
)
def test_a_command_that_cannot_be_done_says_so(
    tmp_path: Path, arguments: tuple[str, ...], exit_code: int
) -> None:
    ran = run_stratalog("lease", *arguments, "--log-dir", str(tmp_path / "none"))
    assert ran.exit_code == exit_code
    assert ran.stderr


# --- pauses of the cleaner: leases that are kept in memory ----------------------------------------

PAUSE_ID = "ab" * 16


async def pause_cleaner(services: Services, seconds: float) -> None:
    """For a compaction elsewhere, of a log that has something to be cleaned."""
    await create_topic(services, "orders", cleanup_policy="compact")
    append(services, "orders", count=5)
    log = services.logs.get(ORDERS)
    log.roll()
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    body = {"id": PAUSE_ID, "topics": ["orders"], "force": True, "seconds": seconds}
    planned = await compaction_admin.plan(services, body)
    assert len(planned["rounds"]) == 1, planned["left_out"]
    assert phase_of_cleaner(services) is Phase.PAUSED


def phase_of_cleaner(services: Services) -> Phase:
    cleaner = services.logs.cleaner
    assert cleaner is not None
    return cleaner.states.state(ORDERS).phase


@pytest.mark.parametrize("set_by_days", [-365, 0, 365])
def test_a_pause_lasts_as_long_as_it_was_asked_for_wherever_a_clock_is_set(
    tmp_path: Path, set_by_days: int
) -> None:
    async def act() -> None:
        async with broker_parts(tmp_path) as services:
            was_ms = SystemClock().now_ms()
            clock = services.clock = ManualClock(was_ms)
            steady_clock = services.steady_clock = ManualClock(was_ms)
            await pause_cleaner(services, 60)
            clock.set(was_ms + set_by_days * 86_400_000)

            for each in (clock, steady_clock):
                each.advance(59_999)
            told = compaction_admin.compactions(services)["compactions"]
            assert told[PAUSE_ID]["until_ms"] == clock.now_ms() + 1, "in the time of day"
            assert phase_of_cleaner(services) is Phase.PAUSED
            assert compaction_admin.renew(services, PAUSE_ID, {"seconds": 60})
            for each in (clock, steady_clock):
                each.advance(60_000)
            assert compaction_admin.compactions(services) == {"compactions": {}}
            assert not compaction_admin.renew(services, PAUSE_ID, {"seconds": 60})
            assert phase_of_cleaner(services) is Phase.NONE

    asyncio.run(act())


def test_a_pause_that_nobody_asks_about_ends_though_the_clock_was_set_back(tmp_path: Path) -> None:
    async def act() -> None:
        async with broker_parts(tmp_path) as services:
            clock = services.clock = ManualClock(SystemClock().now_ms())
            services.steady_clock = SteadyClock()
            await pause_cleaner(services, 0.01)
            clock.set(clock.now_ms() - 1_000)
            async with asyncio.timeout(10):
                while phase_of_cleaner(services) is not Phase.NONE:  # noqa: ASYNC110 - soon
                    await asyncio.sleep(0)

    asyncio.run(act())
