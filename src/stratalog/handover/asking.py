"""What is asked of the broker that owns a log directory, to hand files over to it."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from stratalog.directories.owner_client import Answer, ask, topics_query
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.owner_file import Owner

# Longer than a broker takes to say that it is not done yet.
_ANSWER_SECONDS = 45


def ask_topics(owner: Owner, names: Sequence[str]) -> Answer:
    return _ask(owner, f"/v1/staging{topics_query(names)}")


def ask_endpoint(owner: Owner) -> str:
    """Where its clients connect; empty if it does not say."""
    return str(_ask(owner, "/v1/status").body.get("endpoint", ""))


def ask_commit(owner: Owner, content: bytes) -> Answer:
    return _ask(owner, "/v1/commits", content)


def ask_status(owner: Owner, manifest_id: str, app: AppVersion | None, log_dir: str) -> Answer:
    # As bytes: names of files need not be text.
    named: dict[str, str | bytes] = {"log_dir": os.fsencode(Path(log_dir).absolute())}
    if app is not None:
        named |= {"app": app.name, "version": str(app.version)}
    return _ask(owner, f"/v1/commits/{quote(manifest_id, safe='')}?{urlencode(named)}")


def ask_compaction(owner: Owner, what: str, content: bytes) -> Answer:
    """For rounds to be worked at elsewhere; ``what`` is empty, or of one that was given."""
    return _ask(owner, f"/v1/compactions{what}", content)


def _ask(owner: Owner, path: str, content: bytes | None = None) -> Answer:
    return ask(owner, path, content, seconds=_ANSWER_SECONDS)
