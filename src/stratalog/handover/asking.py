"""Asking the broker that owns a log directory, over its admin port. An answer that is none, because
it stops, starts or is somebody else by now, has the status 0: it says nothing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.owner_file import Owner

# Longer than a broker takes to say that it is not done yet.
_ANSWER_SECONDS = 45
_ANSWER_BYTES_MAX = 256 << 20
# More names would not fit a request line; the answer for all of them is not much longer.
_NAMES_MAX = 50


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


def ask_topics(owner: Owner, names: Sequence[str]) -> Answer:
    query = urlencode([("topic", name) for name in names]) if len(names) <= _NAMES_MAX else ""
    return _ask(owner, "GET", f"/v1/staging?{query}")


def ask_endpoint(owner: Owner) -> str:
    """Where its clients connect; empty if it does not say."""
    return str(_ask(owner, "GET", "/v1/status").body.get("endpoint", ""))


def ask_overview(owner: Owner) -> Answer:
    """Every topic with its id, its configs and its number of partitions."""
    return _ask(owner, "GET", "/v1/topics")


def ask_commit(owner: Owner, content: bytes) -> Answer:
    return _ask(owner, "POST", "/v1/commits", content)


def ask_status(owner: Owner, manifest_id: str, app: AppVersion | None) -> Answer:
    named = {} if app is None else {"app": app.name, "version": str(app.version)}
    return _ask(owner, "GET", f"/v1/commits/{quote(manifest_id, safe='')}?{urlencode(named)}")


def ask_compaction(owner: Owner, what: str, content: bytes) -> Answer:
    """For rounds to be worked at elsewhere; ``what`` is empty, or of one that was given."""
    return _ask(owner, "POST", f"/v1/compactions{what}", content)


def _ask(owner: Owner, method: str, path: str, content: bytes | None = None) -> Answer:
    parts = urlsplit(owner.admin)
    if not parts.hostname:
        return Answer(reason="it has no admin port")
    channel = HTTPConnection(parts.hostname, parts.port, timeout=_ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {owner.token}", "Content-Type": "application/json"}
    try:
        channel.request(method, path, content, headers)
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
