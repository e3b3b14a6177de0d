"""Who may ask the admin port for what.

The port listens on loopback, where every user of the machine and every page in a browser on it can
reach it. So a page is kept out (it sends Origin, or a Host that its own name server made up), and
whatever changes something needs the token that only the broker's own user can read.
"""

import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_READING: Final = frozenset(("GET", "HEAD"))
_HOST: Final = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+))(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class AdminGuard:
    """``token`` None: nothing can be changed through this port. ``host`` is where it listens."""

    host: str
    token: str | None

    def refusal(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
        """Why a request is not answered; None if it is. Names of headers are in lower case."""
        found: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            found.setdefault(name, []).append(value)
        if b"content-length" in found and b"transfer-encoding" in found:
            # A proxy may go by the one and we by the other: what is a body to it is a request here.
            return Refusal(400, "there are both Content-Length and Transfer-Encoding")
        if b"origin" in found:
            return Refusal(403, "requests of web pages are refused: there is an Origin header")
        hosts = found.get(b"host", [])
        if len(hosts) != 1 or not self._is_own(hosts[0].decode("latin-1")):
            return Refusal(403, "the Host header must be localhost or an address, not a name")
        if method in _READING:
            return None
        return self._refusal_of_change(found.get(b"authorization", []))

    def _refusal_of_change(self, authorization: list[bytes]) -> Refusal | None:
        if self.token is None:
            return Refusal(403, "nothing can be changed here: this broker has no admin token")
        expected = b"Bearer " + self.token.encode()
        if len(authorization) != 1 or not hmac.compare_digest(authorization[0], expected):
            return Refusal(
                401, "changes need 'Authorization: Bearer' with the token in .stratalog-owner"
            )
        return None

    def _is_own(self, host: str) -> bool:
        """Only names can be made to point here by somebody else; an address says what it is."""
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found["name"]
        if name in ("localhost", self.host.lower()):
            return True
        try:
            ipaddress.ip_address(name or found["ipv6"])
        except ValueError:
            return False
        return True
