"""Commits as they cross the admin port: results and refusals, to JSON and back.

    {"status": "committed", "id": "3f2a…", "partitions": [["orders", 0, 1200, 1300]]}
    {"status": "already committed", …}   of each partition its first and end offset
    {"status": "running"}  {"status": "unknown"}  {"status": "undecided"}
    {"status": "refused", "kind": "StagedFileError", "error": sentence, "arguments": [...]}

Both ends are of this module, so that a refusal raises in the driver what was raised in the broker.
"""

from typing import Any

from stratalog.storage.commits.committing import CommitResult
from stratalog.storage.commits.errors import (
    CommitBusyError,
    CommitError,
    CommitRefusedError,
    ManifestError,
    SourceChangedError,
    StagedFileError,
)
from stratalog.storage.layout import TopicPartition

Json = dict[str, Any]

REFUSED = "refused"
RUNNING = "running"
UNKNOWN = "unknown"
# Its record may have been written, and only the next start can tell.
UNDECIDED = "undecided"

_KINDS: dict[str, type[CommitError]] = {
    kind.__name__: kind
    for kind in (
        ManifestError,
        StagedFileError,
        CommitRefusedError,
        CommitBusyError,
        SourceChangedError,
    )
}


def result_to_json(result: CommitResult) -> Json:
    return {
        "status": result.status,
        "id": result.manifest_id,
        "partitions": [
            [key.topic, key.partition, *offsets] for key, offsets in result.partitions.items()
        ],
    }


def result_from_json(body: Json) -> CommitResult:
    """Raises KeyError, TypeError or ValueError if it is none."""
    return CommitResult(
        status=str(body["status"]),
        manifest_id=str(body["id"]),
        partitions={
            TopicPartition(str(topic), int(partition)): (int(first), int(end))
            for topic, partition, first, end in body["partitions"]
        },
    )


def refusal_to_json(error: Exception) -> Json:
    arguments = [each for each in error.args if isinstance(each, str | int)]
    is_told = type(error).__name__ in _KINDS and len(arguments) == len(error.args)
    return {
        "status": REFUSED,
        "kind": type(error).__name__ if is_told else CommitRefusedError.__name__,
        "error": str(error) or repr(error),
        "arguments": arguments if is_told else [str(error) or repr(error)],
    }


def refusal_from_json(body: Json) -> CommitError:
    kind = _KINDS.get(str(body.get("kind")), CommitRefusedError)
    sentence = str(body.get("error", "the owner refuses it and does not say why"))
    try:
        return kind(*body["arguments"])
    except (KeyError, TypeError):
        return CommitRefusedError(sentence)
