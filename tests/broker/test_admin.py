"""The admin port: who is answered, what, and that nobody keeps it busy."""

import asyncio
import errno
import gc
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from broker_parts import append, broker_parts, create_topic
from hypothesis import given
from hypothesis import strategies as st

from stratalog.broker import admin, admin_app, admin_http
from stratalog.broker.admin import AdminServer
from stratalog.broker.admin_guard import AdminGuard
from stratalog.broker.services import Endpoint, Services
from stratalog.metadata.image import Update
from stratalog.storage.layout import TopicPartition
from stratalog.testing import ManualClock

TOKEN = "a-token"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Answer:
    status: int
    content_type: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Admin:
    """The port of a broker, as a client sees it."""

    services: Services
    endpoint: Endpoint
    stopped: int = 0

    async def ask(
        self,
        path: str,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        def exchange() -> Answer:
            with closing(
                http.client.HTTPConnection(self.endpoint.host, self.endpoint.port, timeout=60)
            ) as connection:
                connection.request(method, path, body=body, headers=headers or {})
                response = connection.getresponse()
                content = response.read()
                return Answer(response.status, response.getheader("content-type", ""), content)

        return await asyncio.to_thread(exchange)

    async def say(self, *contents: bytes) -> bytes:
        """Send bytes as they are, each after an answer to those before; what comes after the last,
        until the other side closes."""
        reader, writer = await asyncio.open_connection(self.endpoint.host, self.endpoint.port)
        try:
            for number, content in enumerate(contents):
                if number:
                    await reader.readuntil(b"damaged_logs")
                writer.write(content)
            return await asyncio.wait_for(reader.read(), 60)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    def shutdown(self) -> None:
        self.stopped += 1


@asynccontextmanager
async def admin_port(
    directory: Path, *, token: str | None = TOKEN, is_ready: bool = True, **settings: Any
) -> AsyncIterator[Admin]:
    async with broker_parts(directory, **settings) as services:
        port = Admin(services, Endpoint(host="", port=0))
        server = AdminServer(
            services, token=token, is_ready=lambda: is_ready, shutdown=port.shutdown
        )
        port.endpoint = await server.start()
        try:
            yield port
        finally:
            await server.stop()


# --- who is answered --------------------------------------------------------------------------

GUARD = AdminGuard("127.0.0.1", TOKEN)
HOST = (b"host", b"127.0.0.1:8080")
RIGHT = (b"authorization", b"Bearer a-token")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:9", "[::1]", "10.0.0.5:1"]
)
def test_the_names_and_addresses_of_this_machine_are_answered(host: str) -> None:
    assert GUARD.refusal("GET", [(b"host", host.encode())]) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.",
        "",
        "[x]",
        "[::1]evil",
        "[::1]evil:80",
        "[::1]:80.evil",
        "127.0.0.1:evil",
        "[127.0.0.1]x",
        "[::1",
        "[]",
        "localhost:80:80",
        "x[::1]",
        "[::1%evil]",
        ":80",
    ],
)
def test_a_name_that_somebody_else_could_point_here_is_refused(host: str) -> None:
    refused = GUARD.refusal("GET", [(b"host", host.encode())])
    assert refused is not None
    assert refused.status == 403


def test_a_body_that_two_could_read_differently_is_refused() -> None:
    both = [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")]
    refused = GUARD.refusal("POST", [HOST, RIGHT, *both])
    assert refused is not None
    assert refused.status == 400
    assert GUARD.refusal("POST", [HOST, RIGHT, both[0]]) is None


def test_two_hosts_or_none_are_refused() -> None:
    assert GUARD.refusal("GET", []) is not None
    assert GUARD.refusal("GET", [HOST, HOST]) is not None


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_web_pages_are_refused_even_with_the_token(method: str) -> None:
    refused = GUARD.refusal(method, [HOST, RIGHT, (b"origin", b"http://127.0.0.1:8080")])
    assert refused is not None
    assert refused.status == 403


@given(st.binary(max_size=30))
def test_a_change_needs_exactly_the_token(given: bytes) -> None:
    refused = GUARD.refusal("POST", [HOST, (b"authorization", given)])
    assert (refused is None) == (given == b"Bearer a-token")
    assert GUARD.refusal("POST", [HOST, RIGHT]) is None


@given(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1, max_size=10))
def test_every_method_but_those_that_read_needs_the_token(method: str) -> None:
    refused = GUARD.refusal(method, [HOST])
    assert (refused is None) == (method in ("GET", "HEAD"))


def test_without_a_token_nothing_can_be_changed() -> None:
    for value in (b"Bearer ", b"Bearer None", b""):
        refused = AdminGuard("127.0.0.1", None).refusal("POST", [HOST, (b"authorization", value)])
        assert refused is not None


# --- what is answered -------------------------------------------------------------------------


def test_a_healthy_broker_says_so(tmp_path: Path) -> None:
    async def act() -> Answer:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "orders")
            return await port.ask("/health")

    answer = asyncio.run(act())
    assert answer.status == 200
    assert answer.json["status"] == "ok"
    assert answer.json["directories"] == [
        {"path": str(tmp_path), "state": "online", "reason": "", "logs": 1}
    ]


def test_a_full_directory_degrades_and_no_directory_is_unavailable(tmp_path: Path) -> None:
    async def act() -> list[Answer]:
        async with admin_port(tmp_path) as port:
            directory = port.services.logs.directories[0]
            directory.check_space(1 << 62)
            full = await port.ask("/health")
            directory.fail("broken")
            return [full, await port.ask("/health")]

    full, offline = asyncio.run(act())
    assert (full.status, full.json["status"]) == (200, "degraded")
    assert (offline.status, offline.json["status"]) == (503, "unavailable")
    assert offline.json["directories"][0]["reason"] == "broken"


def test_a_log_that_is_damaged_or_not_open_degrades(tmp_path: Path) -> None:
    async def act() -> list[Answer]:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "orders")
            log = port.services.replicas.get(TopicPartition("orders", 0)).log
            log.is_damaged = True
            damaged = await port.ask("/health")
            log.is_damaged = False
            port.services.logs.directories[0].offline_logs[TopicPartition("x", 1)] = "unreadable"
            return [damaged, await port.ask("/health")]

    damaged, offline = asyncio.run(act())
    assert (damaged.json["status"], damaged.json["damaged_logs"]) == ("degraded", ["orders-0"])
    assert (offline.status, offline.json["status"]) == (200, "degraded")
    assert offline.json["offline_logs"] == {"x-1": "unreadable"}


def test_a_broker_that_is_not_ready_is_unavailable(tmp_path: Path) -> None:
    async def act() -> Answer:
        async with admin_port(tmp_path, is_ready=False) as port:
            return await port.ask("/health")

    assert asyncio.run(act()).status == 503


def test_metrics_are_text_that_prometheus_reads(tmp_path: Path) -> None:
    async def act() -> Answer:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "orders", 120)
            return await port.ask("/metrics")

    answer = asyncio.run(act())
    assert answer.status == 200
    assert answer.content_type.startswith("text/plain; version=")
    assert answer.body.count(b"stratalog_log_end_offset{") == 120


def test_topics_partitions_and_groups_are_listed(tmp_path: Path) -> None:
    commits = {"g": {TopicPartition("orders", 200): 1, TopicPartition("gone", 0): 5}}

    async def act() -> list[Answer]:
        async with admin_port(tmp_path, commits=commits) as port:
            await create_topic(port.services, "orders", 201, cleanup_policy="compact")
            append(port.services, "orders", 200, count=3)
            paths = ["/v1/topics", "/v1/topics/orders", "/v1/groups", "/v1/topics/none"]
            return [await port.ask(path) for path in paths]

    topics, partitions, groups, none = asyncio.run(act())
    assert [each["name"] for each in topics.json["topics"]] == ["orders"]
    assert topics.json["topics"][0]["configs"] == {"cleanup.policy": "compact"}
    rows = partitions.json["partitions"]
    assert [each["partition"] for each in rows] == list(range(201))
    assert (rows[200]["log_end_offset"], rows[200]["high_watermark"]) == (3, 3)
    assert groups.json["groups"] == [
        {"group_id": "g", "state": "Empty", "members": 0, "committed_partitions": 2, "lag": 2}
    ]
    assert (none.status, none.json["error"]) == (404, "there is no topic 'none'")


def test_the_offsets_of_the_named_topics_are_told_or_of_all(tmp_path: Path) -> None:
    async def act() -> list[Answer]:
        async with admin_port(tmp_path) as port:
            for name in ("a", "b", "c"):
                await create_topic(port.services, name, 2)
            append(port.services, "b", 1, count=3)
            queries = ["?topic=b&topic=c", "", "?topic=b&topic=none"]
            return [await port.ask(f"/v1/offsets{query}") for query in queries]

    named, every, none = asyncio.run(act())
    rows = {(each["topic"], each["partition"]): each for each in named.json["partitions"]}
    assert list(rows) == [("b", 0), ("b", 1), ("c", 0), ("c", 1)]
    assert rows["b", 1] == {
        "topic": "b",
        "partition": 1,
        "log_start_offset": 0,
        "high_watermark": 3,
        "last_stable_offset": 3,
        "log_end_offset": 3,
    }
    assert len(every.json["partitions"]) == 6
    assert (none.status, none.json["error"]) == (404, "there is no topic 'none'")


def test_what_the_next_check_of_retention_deletes_is_told_and_what_holds_the_rest(
    tmp_path: Path,
) -> None:
    async def act() -> list[Answer]:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "old", retention_ms="1")
            await create_topic(port.services, "kept", retention_ms="-1")
            for name in ("old", "kept"):
                append(port.services, name, 0, count=3)
            assert isinstance(port.services.logs.clock, ManualClock)
            port.services.logs.clock.advance(86_400_000)
            paths = ["/v1/retention", "/v1/retention?topic=none"]
            return [await port.ask(path) for path in paths]

    every, none = asyncio.run(act())
    kept, old = every.json["partitions"]
    assert (kept["topic"], kept["deletes"], kept["stays"]["hold"]) == ("kept", [], "no limit")
    (going,) = old["deletes"]
    assert (going["base_offset"], going["breach"], old["stays"]) == (0, "time", None)
    assert old["freed_bytes"] == going["size_bytes"]
    assert none.status == 404


def test_the_status_tells_what_needs_a_person(tmp_path: Path) -> None:
    async def act() -> Answer:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "orders")
            key = TopicPartition("orders", 0)
            port.services.logs.retention_failures[key] = "no room"
            assert port.services.logs.cleaner is not None
            port.services.logs.cleaner.uncleanable.mark(key, "a bad batch", 7)
            return await port.ask("/v1/status")

    found = asyncio.run(act()).json
    assert found["retention_failures"] == {"orders-0": "no room"}
    assert found["cleaner"]["uncleanable"]["orders-0"]["reason"] == "a bad batch"
    assert (found["topics"], found["partitions"], found["held_topics"]) == (1, 1, [])


# --- what can be changed ----------------------------------------------------------------------


def hold(services: Services, name: str) -> None:
    """As adoption leaves a topic whose configs it could not find."""
    topic = replace(services.store.image.topic(name), is_held=True)
    services.store._commit(services.store.image, Update(topics=(topic,)))
    for log in services.logs:
        log.is_held = True


def test_a_held_topic_is_adopted_with_its_configs(tmp_path: Path) -> None:
    async def act() -> tuple[Answer, bool, bool]:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "orders")
            hold(port.services, "orders")
            body = json.dumps({"configs": {"cleanup.policy": "compact"}}).encode()
            answer = await port.ask("/v1/topics/orders/adopt", "POST", WITH_TOKEN, body)
            log = port.services.replicas.get(TopicPartition("orders", 0)).log
            return answer, log.is_held, log.config.compact

    answer, is_held, is_compacted = asyncio.run(act())
    assert (answer.status, is_held, is_compacted) == (200, False, True)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"nonsense", 400),
        (b"[]", 400),
        (b"[" * 50_000, 400),
        (b'{"configs": ["cleanup.policy"]}', 400),
        (b'{"configs": {"cleanup.policy": 7}}', 400),
        (b'{"configs": {"cleanup.policy": "nonsense"}}', 400),
        (b'{"configs": {"no.such.setting": "1"}}', 400),
        (b"x" * (admin_app.BODY_BYTES_MAX + 1), 413),
    ],
)
def test_a_bad_adoption_is_refused_with_a_sentence(
    tmp_path: Path, body: bytes, status: int
) -> None:
    async def act() -> tuple[Answer, bool]:
        async with admin_port(tmp_path) as port:
            await create_topic(port.services, "orders")
            hold(port.services, "orders")
            answer = await port.ask("/v1/topics/orders/adopt", "POST", WITH_TOKEN, body)
            return answer, port.services.store.image.topic("orders").is_held

    answer, is_held = asyncio.run(act())
    assert (answer.status, is_held) == (status, True)
    assert len(answer.json["error"]) > 10


def test_a_change_without_the_token_changes_nothing(tmp_path: Path) -> None:
    async def act() -> tuple[list[int], int]:
        async with admin_port(tmp_path) as port:
            wrong = {"Authorization": "Bearer other"}
            page = {**WITH_TOKEN, "Origin": "http://localhost"}
            answers = [
                await port.ask("/v1/shutdown", "POST", headers)
                for headers in ({}, wrong, page, {**WITH_TOKEN, "Host": "evil.example"})
            ]
            return [each.status for each in answers], port.stopped

    assert asyncio.run(act()) == ([401, 401, 403, 403], 0)


def test_the_broker_can_be_asked_to_stop(tmp_path: Path) -> None:
    async def act() -> tuple[int, int]:
        async with admin_port(tmp_path) as port:
            answer = await port.ask("/v1/shutdown", "POST", WITH_TOKEN)
            return answer.status, port.stopped

    assert asyncio.run(act()) == (202, 1)


# --- hostile clients, and the cost of none ----------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x00\x00\x10\x00\x12\x00\x03nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * admin_http.HEADER_BYTES_MAX + b"\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /v1/topics/%ff%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_by_4xx_and_the_next_client_is_served(
    tmp_path: Path, content: bytes
) -> None:
    async def act() -> tuple[bytes, int]:
        async with admin_port(tmp_path) as port:
            said = await port.say(content)
            return said, (await port.ask("/health")).status

    said, status = asyncio.run(act())
    assert said.startswith(b"HTTP/1.1 4")
    assert status == 200


def test_who_says_nothing_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_http, "SILENCE_SECONDS_MAX", 0.4)
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"

    async def act() -> list[bytes]:
        async with admin_port(tmp_path) as port:
            return [await port.say(b""), await port.say(head + b"\r\n", head)]

    nothing, half = asyncio.run(act())
    assert nothing == b""
    assert b"HTTP" not in half


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def test_whoever_asks_is_answered_while_silent_connections_have_taken_all_places(
    tmp_path: Path,
) -> None:
    async def act() -> list[bytes]:
        async with admin_port(tmp_path) as port, asyncio.timeout(admin_http.SILENCE_SECONDS_MAX):
            address = (port.endpoint.host, port.endpoint.port)
            with ExitStack() as stack:
                for _ in range(admin_http.CONNECTIONS_MAX):
                    silent = stack.enter_context(socket.create_connection(address))
                    silent.sendall(HEALTH[:20])
                    await asyncio.sleep(0)
                return [await port.say(HEALTH) for _ in range(3)]

    assert all(each.startswith(b"HTTP/1.1 200") for each in asyncio.run(act()))


def test_connections_that_are_being_answered_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_http, "CONNECTIONS_MAX", 2)
    waiting = (
        b"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        b"Authorization: Bearer a-token\r\n\r\n{"
    )

    async def act() -> tuple[bytes, int]:
        async with admin_port(tmp_path) as port:
            await port.ask("/health")  # from now on there is somebody to answer
            address = (port.endpoint.host, port.endpoint.port)
            with socket.create_connection(address) as one, socket.create_connection(address) as two:
                one.sendall(waiting)
                two.sendall(waiting)
                for _ in range(20):  # turns of the loop, in which the server hears of both
                    await asyncio.sleep(0)
                one_too_many = await port.say(HEALTH)
            for _ in range(20):
                await asyncio.sleep(0)
            return one_too_many, (await port.ask("/health")).status

    assert asyncio.run(act()) == (b"", 200)


def test_a_mistake_of_ours_is_a_500_without_details(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act() -> Answer:
        async with admin_port(tmp_path) as port:
            port.services.store = None  # type: ignore[assignment]
            return await port.ask("/v1/status")

    answer = asyncio.run(act())
    assert answer.status == 500
    assert b"NoneType" not in answer.body
    assert "handler_failed" in caplog.text


def test_a_port_that_is_taken_is_said_at_the_start(tmp_path: Path) -> None:
    async def act() -> None:
        async with broker_parts(tmp_path) as services:
            first = AdminServer(services)
            endpoint = await first.start()
            try:
                with pytest.raises(OSError, match="in use"):
                    await AdminServer(services, listen=(endpoint.host, endpoint.port)).start()
            finally:
                await first.stop()
        gc.collect()  # a socket left open would be noticed now

    asyncio.run(act())


def test_a_port_that_cannot_be_served_is_told_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def not_installed() -> None:
        raise ModuleNotFoundError("no module named starlette")

    monkeypatch.setattr(admin, "_import_http", not_installed)

    async def act() -> bytes:
        async with admin_port(tmp_path) as port:
            return await port.say(b"GET /health HTTP/1.1\r\n\r\n")

    assert asyncio.run(act()) == b""
    assert "admin_unavailable" in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        ImportError("h11.so: cannot open shared object file: Too many open files"),
        RuntimeError("can't start new thread"),
    ],
)
def test_who_asks_a_port_that_cannot_be_served_yet_is_answered_later(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "_RETRY_SECONDS", 0)
    import_http = admin._import_http
    errors = [error, error]

    def starved() -> Any:
        if errors:
            raise errors.pop()
        return import_http()

    monkeypatch.setattr(admin, "_import_http", starved)

    async def act() -> Answer:
        async with admin_port(tmp_path) as port:
            return await port.ask("/health")

    assert asyncio.run(act()).status == 200
    assert errors == []


def test_a_port_that_waits_to_be_served_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(admin, "_import_http", starved)

    async def act() -> None:
        told = asyncio.Event()
        monkeypatch.setattr(admin, "log_event", lambda *_, **_named: told.set())
        async with admin_port(tmp_path) as port:
            address = port.endpoint.host, port.endpoint.port
            _, writer = await asyncio.open_connection(*address)
            await told.wait()
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)

    asyncio.run(act())


def test_a_port_nobody_asked_can_be_stopped_at_once(tmp_path: Path) -> None:
    async def act() -> None:
        async with admin_port(tmp_path) as port:
            number = port.endpoint.port
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", number)

    asyncio.run(act())


def test_a_broker_that_nobody_watches_has_not_imported_the_web() -> None:
    code = (
        "import sys, stratalog.broker.admin, stratalog.broker.state_events\n"
        "heavy = {'starlette', 'uvicorn', 'prometheus_client', 'anyio', 'h11', 'http.server'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
