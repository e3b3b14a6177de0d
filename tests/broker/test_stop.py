"""A broker that is told to stop ends within half a minute, whatever it is busy with."""

import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

from test_serve import ready, serving

from stratalog.broker.process import STOP_SECONDS
from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import encode_request
from stratalog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

BOUND_SECONDS = 30


def metadata_of(client: int, count: int) -> bytes:
    names = [MetadataRequestTopic(name=f"asked-{client}-{number}") for number in range(count)]
    request = MetadataRequest(names, allow_auto_topic_creation=True)
    return b"".join(bytes(part) for part in encode_request(ApiKey.METADATA, 9, 1, "x", request))


def creation_of(client: int, partitions: int) -> bytes:
    topic = CreatableTopic(f"ordered-{client}", partitions, 1)
    request = CreateTopicsRequest([topic], timeout_ms=30_000)
    return b"".join(
        bytes(part) for part in encode_request(ApiKey.CREATE_TOPICS, 5, 1, "x", request)
    )


def test_it_ends_in_time_while_clients_ask_for_more_topics_than_can_be_made(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        process = stack.enter_context(
            serving("--log-dir", str(tmp_path), "--listen", "127.0.0.1:0")
        )
        address = ready(process)
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(20)]
        for number, client in enumerate(clients):
            client.sendall(metadata_of(number, 1_000) + creation_of(number, 500))
        assert all(client.recv(4) for client in clients)  # all names have been heard
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND_SECONDS) == 0
        assert time.monotonic() - began < STOP_SECONDS


def test_it_ends_when_its_time_is_over_though_something_never_ends(tmp_path: Path) -> None:
    code = """
        import asyncio, threading
        from stratalog.broker import process, server
        process.STOP_SECONDS = 0.5
        stop = server.Broker.stop

        async def stop_and_hang(self):
            await stop(self)
            threading.Event().wait()

        server.Broker.stop = stop_and_hang
    """
    with serving("--log-dir", str(tmp_path), "--listen", "127.0.0.1:0", code=code) as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND_SECONDS) == 128 + signal.SIGTERM
        _, told = process.communicate()
    assert "ERROR stop_cut_short seconds=0.5" in told
