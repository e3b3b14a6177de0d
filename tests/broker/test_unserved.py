"""Who cannot be served is told why, in words of his own, and so is the operator; once a minute."""

import http.client
import ssl
from contextlib import closing
from pathlib import Path

import pytest
from asking import Asking, versions, with_broker
from hypothesis import given
from hypothesis import strategies as st

from broker_fixture import running_broker
from stratalog.broker.client_notices import INTERVAL_MS, ClientNotices
from stratalog.broker.foreign_protocols import foreign_protocol
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from stratalog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from stratalog.protocol.messages.sasl_handshake import SaslHandshakeRequest
from stratalog.testing import ManualClock

LARGEST_REQUEST = 1 << 28


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, object]]:
    return [each.__dict__["fields"] for each in caplog.records if each.message == name]


@pytest.mark.parametrize(
    ("key", "body", "code"),
    [
        (ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), ErrorCode.ILLEGAL_SASL_STATE),
        (ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(b"x"), ErrorCode.ILLEGAL_SASL_STATE),
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ConsumerGroupHeartbeatRequest("g", "member"),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_what_is_not_here_is_refused_by_an_error_that_ends_the_client(
    tmp_path: Path, key: ApiKey, body: object, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(client: Asking) -> None:
        for version in versions(key):
            answer = await client.ask(key, body, version)
            assert answer.error_code == code
            sentence = getattr(answer, "error_message", "")
            assert sentence == "" or "security.protocol" in sentence or "classic" in sentence

    with_broker(tmp_path, scenario)
    told = events(caplog, "foreign_protocol") + events(caplog, "consumer_refused")
    assert [each["client"] for each in told] == ["127.0.0.1"]


def test_an_operator_is_told_once_a_minute_of_each_address_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    notices = ClientNotices(clock)
    for _ in range(3):
        notices.say("foreign_protocol", "/10.0.0.1", advice="a")
        notices.say("foreign_protocol", "/10.0.0.1", advice="b")
        notices.say("foreign_protocol", "/10.0.0.2", advice="a")
        clock.advance(INTERVAL_MS - 1)
    assert len(events(caplog, "foreign_protocol")) == 6


@given(st.integers(0, LARGEST_REQUEST))
def test_no_request_that_is_read_is_taken_for_another_protocol(size_bytes: int) -> None:
    assert foreign_protocol(size_bytes) is None


def test_a_tls_client_gets_an_alert_and_an_http_client_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_broker(tmp_path) as broker:
        host, port = broker.broker.endpoint.host, broker.broker.endpoint.port
        with pytest.raises(ssl.SSLError, match=r"(?i)handshake failure"):
            ssl.get_server_certificate((host, port))
        with closing(http.client.HTTPConnection(host, port, timeout=30)) as web:
            web.request("GET", "/metrics")
            answer = web.getresponse()
            assert (answer.status, b"Kafka" in answer.read()) == (400, True)
        told = events(caplog, "foreign_protocol")
        assert [each["protocol"] for each in told] == ["TLS", "HTTP"]
        assert events(caplog, "client_disconnected") == []
