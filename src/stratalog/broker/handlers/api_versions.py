"""ApiVersions: what this broker can be asked."""

import re
from collections.abc import Iterable

from stratalog.broker.requests import Handler, Request
from stratalog.protocol.api import ApiKey
from stratalog.protocol.api_versions import advertised
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_FIRST_WITH_CLIENT_SOFTWARE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionsHandlers:
    """``served`` are the keys of all handlers there are, this one's included."""

    def __init__(self, served: Iterable[ApiKey]) -> None:
        versions = advertised({*served, ApiKey.API_VERSIONS})
        self._response = ApiVersionsResponse(api_keys=versions)

    def table(self) -> dict[ApiKey, Handler]:
        return {ApiKey.API_VERSIONS: self.api_versions}

    def api_versions(self, request: Request) -> ApiVersionsResponse:
        body: ApiVersionsRequest = request.body
        if request.api_version >= _FIRST_WITH_CLIENT_SOFTWARE and not (
            _SOFTWARE.fullmatch(body.client_software_name)
            and _SOFTWARE.fullmatch(body.client_software_version)
        ):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return self._response
