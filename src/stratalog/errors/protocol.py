"""Messages of the wire that cannot be read or written."""

from stratalog.errors.base import StratalogError


class ProtocolError(StratalogError):
    """Bytes that are not the message they should be, or a value that no message can carry."""

    def __init__(self, api: str, version: int, position: int, reason: str) -> None:
        super().__init__(api, version, position, reason)
        self.api = api
        self.version = version
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        where = f" at position {self.position}" if self.position >= 0 else ""
        return f"{self.api} version {self.version}{where}: {self.reason}"


class UnsupportedVersionError(ProtocolError):
    """A message of an API or version that is not spoken here."""

    def __init__(self, api: str, version: int) -> None:
        super().__init__(api, version, -1, "is not supported")
        self.args = (api, version)


class ForeignProtocolError(ProtocolError):
    """Bytes of another protocol than Kafka's. ``farewell`` is what that protocol has for a refusal:
    the only thing that the other side understands."""

    def __init__(self, protocol: str, advice: str, farewell: bytes) -> None:
        super().__init__(protocol, -1, -1, advice)
        self.args = (protocol, advice, farewell)
        self.protocol = protocol
        self.advice = advice
        self.farewell = farewell

    def __str__(self) -> str:
        return f"these are the bytes of {self.protocol}; {self.advice}"
