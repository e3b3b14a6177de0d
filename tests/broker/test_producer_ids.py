"""InitProducerId: an id for whoever asks, and none for two."""

import asyncio
from pathlib import Path

import pytest
from asking_later import Asking, with_data

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

VERSIONS = range(
    SUPPORTED[ApiKey.INIT_PRODUCER_ID].lowest, SUPPORTED[ApiKey.INIT_PRODUCER_ID].highest + 1
)


async def given(
    asking: Asking, body: InitProducerIdRequest | None = None, version: int | None = None
) -> InitProducerIdResponse:
    body = body or InitProducerIdRequest(transactional_id=None)
    answer: InitProducerIdResponse = await asking.ask(ApiKey.INIT_PRODUCER_ID, body, version)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_an_id_is_given_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await given(asking, version=version)

        assert answer.error_code == 0
        assert answer.producer_id >= 0
        assert answer.producer_epoch == 0

    with_data(tmp_path, scenario)


def test_no_id_is_given_twice_within_a_block_or_beyond_it_or_after_a_restart(
    tmp_path: Path,
) -> None:
    ids: list[int] = []

    async def scenario(asking: Asking) -> None:
        ids.extend([(await given(asking)).producer_id for _ in range(1_500)])

    for _ in range(2):
        with_data(tmp_path, scenario)

    assert len(set(ids)) == len(ids) == 3_000


def test_no_id_is_given_twice_to_those_who_ask_at_the_same_time(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        answers = await asyncio.gather(*[given(asking) for _ in range(20)])

        assert len({each.producer_id for each in answers}) == 20

    with_data(tmp_path, scenario)


def test_the_operator_is_told_of_a_producer_that_wants_transactions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(asking: Asking) -> None:
        await given(asking, InitProducerIdRequest(transactional_id="mine"))

    with_data(tmp_path, scenario)
    (event,) = [each for each in caplog.records if each.message == "transaction_refused"]
    assert event.__dict__["fields"]["transactional_id"] == "mine"
    assert "leave transactional.id out" in event.__dict__["fields"]["advice"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            InitProducerIdRequest(transactional_id="mine"),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (InitProducerIdRequest(transactional_id=""), ErrorCode.INVALID_REQUEST),
        (
            InitProducerIdRequest(transactional_id=None, producer_id=5),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            InitProducerIdRequest(transactional_id=None, producer_epoch=5),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_what_is_not_served_is_refused_without_an_id(
    tmp_path: Path, body: InitProducerIdRequest, code: ErrorCode
) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await given(asking, body)

        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)

    with_data(tmp_path, scenario)


def test_a_store_that_cannot_give_ids_is_not_the_end_of_the_client(tmp_path: Path) -> None:
    async def scenario(asking: Asking) -> None:
        asking.services.store.close()

        answer = await given(asking)

        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    with_data(tmp_path, scenario)
