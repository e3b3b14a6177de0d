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
            # A client would try again for ever if it were told to look for a coordinator.
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if body.transactional_id == "":
                code = ErrorCode.INVALID_REQUEST
            return _refusal(code)
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
