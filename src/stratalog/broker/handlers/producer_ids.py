"""InitProducerId of producers without transactions: an id that nobody was ever given before."""

from collections.abc import Coroutine, Iterator
from typing import Any

from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.errors import StratalogError
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NO_TRANSACTIONS = (
    "stratalog has no transactions: leave transactional.id out, for an idempotent producer"
)
_FIRST_WITH_BATCHES = 4


def refuse_transaction(services: Services, request: Request, transactional_id: str) -> ErrorCode:
    """Tell the operator of a producer with a transactional id; the code for its FindCoordinator.

    Clients that ask for several coordinators in one request (Java, franz-go) give up at any error
    and show the sentence that comes with it. Older versions of the request are those of clients
    (librdkafka, kafka-python) that go on looking for ever unless they are not allowed to.
    """
    services.notices.say(
        "transaction_refused",
        request.client_host,
        client_id=request.client_id,
        transactional_id=transactional_id,
        advice=NO_TRANSACTIONS,
    )
    if request.api_version >= _FIRST_WITH_BATCHES:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class ProducerIdHandlers:
    """Ids come from blocks that the store has given away for good: what is left of a block when
    the broker stops is lost, and none is given twice."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._block: Iterator[int] = iter(())

    def table(self) -> dict[ApiKey, Handler]:
        return {ApiKey.INIT_PRODUCER_ID: self.init_producer_id}

    def init_producer_id(
        self, request: Request
    ) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
        body: InitProducerIdRequest = request.body
        if body.transactional_id is not None:
            if body.transactional_id == "":
                return _refusal(ErrorCode.INVALID_REQUEST)
            # There is no room for a sentence. A client would try again for ever if it were told
            # to look for a coordinator.
            refuse_transaction(self._services, request, body.transactional_id)
            return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if (body.producer_id < 0) != (body.producer_epoch < 0):
            return _refusal(ErrorCode.INVALID_REQUEST)
        for producer_id in self._block:
            return InitProducerIdResponse(producer_id=producer_id)
        return self._from_next_block()

    async def _from_next_block(self) -> InitProducerIdResponse:
        services = self._services
        try:
            block = await services.run_blocking(services.store.allocate_producer_ids)
        except StratalogError:
            return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._block = iter(block[1:])
        return InitProducerIdResponse(producer_id=block[0])


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
