"""Commits and staging over the admin port, as values for JSON with the status they are sent with.

A manifest comes from somebody who has the token, and is trusted no further: it is bounded while it
is read, and parsed beside the loop.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stratalog.broker.commit_answers import REFUSED, RUNNING, UNDECIDED, refusal_to_json
from stratalog.broker.services import Services
from stratalog.broker.staging_facts import staging_facts
from stratalog.errors import InvalidRequestError
from stratalog.storage.commits.errors import ManifestError, StagedFileError
from stratalog.storage.commits.manifest import CONTENT_BYTES_MAX, AppVersion, decode_manifest
from stratalog.storage.layout import TopicPartition

COMMIT_BODY_BYTES_MAX = CONTENT_BYTES_MAX
# After so long whoever asked is told that it runs, and asks again.
ANSWER_SECONDS = 20.0

Json = dict[str, Any]
_UNUSABLE = {ManifestError.__name__, StagedFileError.__name__}


async def commit(services: Services, content: bytes) -> tuple[Json, int]:
    try:
        manifest = await services.loop.run_in_executor(None, decode_manifest, content)
    except ManifestError as error:
        return refusal_to_json(error), 422
    answer = await services.commits.commit(manifest, ANSWER_SECONDS)
    return answer, _http_status(answer)


def _http_status(answer: Json) -> int:
    if answer["status"] == REFUSED:
        return 422 if answer["kind"] in _UNUSABLE else 409
    if answer["status"] == UNDECIDED:
        return 503
    return 202 if answer["status"] == RUNNING else 200


def status(services: Services, manifest_id: str, query: Mapping[str, str]) -> Json:
    app = None
    if "app" in query:
        version = query.get("version", "")
        if not version.isdecimal() or len(version) > len(str(2**63)):
            raise InvalidRequestError('"version" is not a number, as it is needed beside "app"')
        app = AppVersion(name=query["app"], version=int(version))
    return services.commits.status(manifest_id, app, path_or_none(query.get("log_dir")))


def path_or_none(log_dir: object) -> str | None:
    """The log directory that somebody names, checked to be a path; None if none is named."""
    if log_dir is None:
        return None
    if isinstance(log_dir, str) and "\0" not in log_dir:
        with suppress(UnicodeEncodeError):  # half of a pair, which JSON can say
            os.fsencode(log_dir)
            return log_dir
    raise InvalidRequestError('"log_dir" is not a path')


def facts(services: Services, names: Sequence[str]) -> Iterator[Json]:
    def directory_of(key: TopicPartition) -> str | None:
        partition = services.replicas.find(key)
        if partition is None or partition.log.failure is not None or partition.log.is_closed:
            return None
        return partition.log.directory

    return staging_facts(services.store.image, services.store.broker, directory_of, names)
