"""Requests of what a broker here does not have, answered so that client and operator learn why.

    SaslHandshake, SaslAuthenticate   as Kafka answers them on a plain listener
    ConsumerGroupHeartbeat            as Kafka answers it with the feature group.version at 0
    Describe-, Create-, DeleteAcls    as Kafka answers them without an authorizer

Not to advertise these would leave some clients (librdkafka) asking in silence.
"""

from typing import TYPE_CHECKING

from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from stratalog.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatResponse,
    )
    from stratalog.protocol.messages.create_acls import CreateAclsResponse
    from stratalog.protocol.messages.delete_acls import DeleteAclsResponse
    from stratalog.protocol.messages.describe_acls import DescribeAclsResponse
    from stratalog.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
    from stratalog.protocol.messages.sasl_handshake import SaslHandshakeResponse

NO_SASL = "there is no SASL on this port: give the client security.protocol=PLAINTEXT"
NO_AUTHORIZER = "there is no authorizer here: who can connect may do everything"
NO_CONSUMER_PROTOCOL = (
    "stratalog does not have the consumer group protocol; set group.protocol=classic"
)


class UnservedHandlers:
    def __init__(self, services: Services) -> None:
        self._notices = services.notices

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.SASL_HANDSHAKE: self.sasl_handshake,
            ApiKey.SASL_AUTHENTICATE: self.sasl_authenticate,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self.consumer_group_heartbeat,
            ApiKey.DESCRIBE_ACLS: self.describe_acls,
            ApiKey.CREATE_ACLS: self.create_acls,
            ApiKey.DELETE_ACLS: self.delete_acls,
        }

    def sasl_handshake(self, request: Request) -> "SaslHandshakeResponse":
        from stratalog.protocol.messages.sasl_handshake import SaslHandshakeResponse

        self._notices.say("foreign_protocol", request.client_host, protocol="SASL", advice=NO_SASL)
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

    def sasl_authenticate(self, request: Request) -> "SaslAuthenticateResponse":
        from stratalog.protocol.messages.sasl_authenticate import SaslAuthenticateResponse

        self._notices.say("foreign_protocol", request.client_host, protocol="SASL", advice=NO_SASL)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=NO_SASL
        )

    def consumer_group_heartbeat(self, request: Request) -> "ConsumerGroupHeartbeatResponse":
        from stratalog.protocol.messages.consumer_group_heartbeat import (
            ConsumerGroupHeartbeatResponse,
        )

        self._notices.say(
            "consumer_refused",
            request.client_host,
            client_id=request.client_id,
            group=request.body.group_id,
            advice=NO_CONSUMER_PROTOCOL,
        )
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NO_CONSUMER_PROTOCOL
        )

    def describe_acls(self, request: Request) -> "DescribeAclsResponse":
        from stratalog.protocol.messages.describe_acls import DescribeAclsResponse

        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
        )

    def create_acls(self, request: Request) -> "CreateAclsResponse":
        from stratalog.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse

        refused = AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return CreateAclsResponse(results=[refused] * len(request.body.creations))

    def delete_acls(self, request: Request) -> "DeleteAclsResponse":
        from stratalog.protocol.messages.delete_acls import (
            DeleteAclsFilterResult,
            DeleteAclsResponse,
        )

        refused = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[refused] * len(request.body.filters))
