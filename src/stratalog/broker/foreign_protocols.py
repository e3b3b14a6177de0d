"""Other protocols that are spoken to the port of Kafka's by mistake, by their first bytes.

    protocol   first bytes            as Kafka's size of a frame
    TLS        16 03 00..04           369 million: a record of a handshake
    HTTP       a method and a blank   1 to 1.3 thousand million

Both are far beyond the size of any request, so that no request is taken for one of them.
"""

from stratalog.errors import ForeignProtocolError

_TLS_HANDSHAKE = (
    b"\x16\x03\x00",
    b"\x16\x03\x01",
    b"\x16\x03\x02",
    b"\x16\x03\x03",
    b"\x16\x03\x04",
)
# A record with an alert of two bytes: fatal, and the one for a handshake that cannot be.
_TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
_METHODS = frozenset(
    (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")
)
_SENTENCE = b"This is the port of Kafka's protocol, which is not HTTP.\n"
_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_SENTENCE), _SENTENCE)
)


def foreign_protocol(size_bytes: int) -> ForeignProtocolError | None:
    """What four bytes are that claim to be the size of a frame; None if that is what they are."""
    start = size_bytes.to_bytes(4, "big", signed=True)
    if start.startswith(_TLS_HANDSHAKE):
        advice = "there is no TLS on this port: give the client security.protocol=PLAINTEXT"
        return ForeignProtocolError("TLS", advice, _TLS_ALERT)
    if start in _METHODS:
        advice = "health and metrics are at the admin port (admin.listener)"
        return ForeignProtocolError("HTTP", advice, _BAD_REQUEST)
    return None
