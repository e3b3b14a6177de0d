"""One question to the broker that owns a log directory, over its admin port, and its answer.

Asking never raises: an answer that is none, because the owner stops, starts or is somebody else by
now, has the status 0, and says nothing but why.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from stratalog.storage.owner_file import Owner

# A broker that is busy is still one that answers.
ANSWER_SECONDS = 30.0
_ANSWER_BYTES_MAX = 256 << 20
# More names would not fit a request line; the answer for all topics is not much longer.
_NAMES_MAX = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """``body`` may be of an error too; ``reason`` is what a refusal says of itself."""

    status: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


def topics_query(names: Collection[str]) -> str:
    """What follows a path, to ask about these topics; empty, which is about all, for many."""
    if len(names) > _NAMES_MAX:
        return ""
    return "?" + urlencode([("topic", name) for name in names])


def ask(
    owner: Owner,
    path: str,
    content: bytes | None = None,
    *,
    seconds: float = ANSWER_SECONDS,
    connect_seconds: float | None = None,
) -> Answer:
    """POST ``content``, or GET if there is none."""
    parts = urlsplit(owner.admin)
    if not parts.hostname:
        return Answer(reason="it has no admin port")
    channel = HTTPConnection(parts.hostname, parts.port, timeout=connect_seconds or seconds)
    headers = {"Authorization": f"Bearer {owner.token}", "Content-Type": "application/json"}
    try:
        channel.connect()
        channel.sock.settimeout(seconds)
        channel.request("GET" if content is None else "POST", path, content, headers)
        response = channel.getresponse()
        found = json.loads(response.read(_ANSWER_BYTES_MAX))
    except (OSError, HTTPException, ValueError) as error:
        return Answer(reason=f"it does not answer: {error or type(error).__name__}")
    finally:
        channel.close()
    if not isinstance(found, dict):
        return Answer(reason="its answer is not understood")
    reason = str(found.get("error", f"it answers {response.status}"))
    # 401: another process has the address now.
    return Answer(0 if response.status == 401 else response.status, found, reason)
