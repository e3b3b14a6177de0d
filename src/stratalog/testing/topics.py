"""Makes topics over the wire: one request to one broker of a test, without a client library."""

import socket
from collections.abc import Mapping
from typing import Any

from stratalog.errors import StratalogError
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import decode_response, encode_request
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

_ANSWER_SECONDS = 60.0


class TopicNotMadeError(StratalogError):
    """The broker of a test refused a topic; the sentence is the broker's."""


def create_topics(
    bootstrap_servers: str, topics: Mapping[str, int], configs: Mapping[str, str]
) -> None:
    """Make ``topics``, by name with their numbers of partitions, all with the same ``configs``."""
    wanted = [CreatableTopicConfig(name, value) for name, value in configs.items()]
    request = CreateTopicsRequest(
        [CreatableTopic(name, count, 1, (), wanted) for name, count in topics.items()]
    )
    for made in _ask(bootstrap_servers, request).topics:
        if made.error_code:
            why = made.error_message or ErrorCode(made.error_code).name
            raise TopicNotMadeError(f"topic {made.name} was not made: {why}")


def _ask(bootstrap_servers: str, request: CreateTopicsRequest) -> Any:
    host, _, port = bootstrap_servers.rpartition(":")
    version = SUPPORTED[ApiKey.CREATE_TOPICS].highest
    frame = encode_request(ApiKey.CREATE_TOPICS, version, 1, "stratalog.testing", request)
    address = (host.strip("[]"), int(port))
    try:
        with socket.create_connection(address, _ANSWER_SECONDS) as connection:
            connection.sendall(b"".join(frame))  # type: ignore[arg-type]
            with connection.makefile("rb") as answers:
                answer = answers.read(int.from_bytes(answers.read(4)))
    except OSError as error:
        raise TopicNotMadeError(
            f"the broker at {bootstrap_servers} gave no answer: {error}"
        ) from None
    if not answer:
        raise TopicNotMadeError(f"the broker at {bootstrap_servers} ended the connection")
    return decode_response(ApiKey.CREATE_TOPICS, version, answer)[1]
