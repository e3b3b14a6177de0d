"""The admin port's pages: what can be asked and changed over HTTP, as a Starlette application.

    GET  /health                     200 or 503, with the state of every log directory
    GET  /metrics                    Prometheus
    GET  /v1/status                  the cleaner, held topics, failures of retention
    GET  /v1/topics  /v1/groups
    GET  /v1/topics/{name}           its partitions
    GET  /v1/offsets?topic=a&topic=b where the partitions begin and end; of all topics if none
    GET  /v1/usage                   what takes the disk, by topic and kind, and why it stays
    GET  /v1/retention?topic=a       what the next check of retention would delete, and why
    POST /v1/topics/{name}/adopt     {"configs": {name: value}}: a held topic is held no more
    GET  /v1/leases                  what readers of the files hold
    POST /v1/leases                  {"holder": text, "seconds": 600,
                                      "ranges": {"orders": {"0": [from_offset, end_offset]}}}
    POST /v1/leases/{id}/renew       {"seconds": 600}
    POST /v1/leases/{id}/release
    GET  /v1/staging?topic=a         where to stage files for topics, and by which rules
    POST /v1/commits                 a manifest: what was staged becomes part of the logs
    GET  /v1/commits/{id}            committed, running, refused or unknown; ?app=name&version=7
    GET  /v1/compactions             where others compact, and the broker's own cleaner waits
    POST /v1/compactions             {"id": 32 hex, "log_dir": path, "topics": [name],
                                      "seconds": 120}: rounds
    POST /v1/compactions/{id}/renew  {"seconds": 120}
    POST /v1/compactions/{id}/release
    POST /v1/shutdown                as SIGTERM

Answers are JSON, errors {"error": sentence}. Imported when the port is first asked for something.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from stratalog.broker import (
    commit_admin,
    compaction_admin,
    lease_admin,
    overview,
    retention_admin,
    usage_admin,
)
from stratalog.broker.admin_guard import AdminGuard
from stratalog.broker.commit_admin import COMMIT_BODY_BYTES_MAX
from stratalog.broker.committing import BrokerStoppingError
from stratalog.broker.event_log import log_event
from stratalog.broker.exposition import CONTENT_TYPE, expose
from stratalog.broker.lease_admin import LEASE_BODY_BYTES_MAX
from stratalog.broker.services import Services
from stratalog.errors import (
    InvalidRequestError,
    LeaseError,
    MetadataStoreError,
    StorageError,
    StratalogError,
    UnknownTopicError,
)
from stratalog.metadata.image import configs_by_broker
from stratalog.metadata.server_configs import server_configs

BODY_BYTES_MAX = 64 << 10
REQUEST_SECONDS_MAX = 60
# Behind it there is still time for an answer.
BODY_SECONDS_MAX = 30
_ROWS_A_SLICE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPages:
    """What the pages are made from. ``shutdown`` asks the broker to stop, and returns at once."""

    services: Services
    is_ready: Callable[[], bool]
    shutdown: Callable[[], None] | None

    async def health(self, _request: Request) -> Response:
        found, body = overview.health(self.services, is_ready=self.is_ready())
        return JSONResponse(body, 503 if found is overview.Health.UNAVAILABLE else 200)

    async def metrics(self, _request: Request) -> Response:
        return Sliced(expose(self.services), media_type=CONTENT_TYPE)

    async def status(self, _request: Request) -> Response:
        return JSONResponse(overview.status(self.services))

    async def topics(self, _request: Request) -> Response:
        image = self.services.store.image
        head = {
            "node_id": image.node_id,
            "next_producer_id": image.next_producer_id,
            "server_configs": server_configs(self.services.store.static_broker),
            "broker_configs": configs_by_broker(image.broker_configs),
        }
        return _json_rows(head, "topics", overview.topics(self.services))

    async def topic(self, request: Request) -> Response:
        name = request.path_params["name"]
        return _json_rows({"name": name}, "partitions", overview.partitions(self.services, name))

    async def offsets(self, request: Request) -> Response:
        names = request.query_params.getlist("topic")
        return _json_rows({}, "partitions", overview.offsets(self.services, names))

    async def retention(self, request: Request) -> Response:
        names = request.query_params.getlist("topic")
        rows = retention_admin.next_deletions(self.services, names)
        return _json_rows({}, "partitions", rows)

    async def groups(self, _request: Request) -> Response:
        return _json_rows({}, "groups", overview.groups(self.services))

    async def usage(self, _request: Request) -> Response:
        content = await usage_admin.usage(self.services)
        return Response(content, media_type="application/json")

    async def adopt(self, request: Request) -> Response:
        name = request.path_params["name"]
        configs = (await _body(request)).get("configs")
        if not isinstance(configs, dict) or not all(
            isinstance(value, str) for value in configs.values()
        ):
            raise InvalidRequestError('the body is not {"configs": {name: value, ...}} of strings')
        topic = await self.services.topics.adopt(name, configs)
        log_event("topic_adopted", topic=name, configs=len(topic.configs))
        return JSONResponse({"topic": name, "configs": dict(topic.configs)})

    async def leases(self, _request: Request) -> Response:
        return _json_rows({}, "leases", lease_admin.leases(self.services))

    async def grant_lease(self, request: Request) -> Response:
        body = await _body(request, LEASE_BODY_BYTES_MAX)
        return JSONResponse(await lease_admin.grant(self.services, body), 201)

    async def renew_lease(self, request: Request) -> Response:
        lease_id = request.path_params["id"]
        renewed = await lease_admin.renew(self.services, lease_id, await _body(request))
        if renewed is None:
            raise _no_lease(lease_id)
        return JSONResponse(renewed)

    async def release_lease(self, request: Request) -> Response:
        lease_id = request.path_params["id"]
        if not lease_admin.release(self.services, lease_id):
            raise _no_lease(lease_id)
        return JSONResponse({"id": lease_id})

    async def staging(self, request: Request) -> Response:
        names = request.query_params.getlist("topic")
        return _json_rows({}, "topics", commit_admin.facts(self.services, names))

    async def commit(self, request: Request) -> Response:
        content = await _content(request, COMMIT_BODY_BYTES_MAX)
        return JSONResponse(*await commit_admin.commit(self.services, bytes(content)))

    async def commit_status(self, request: Request) -> Response:
        manifest_id = request.path_params["id"]
        return JSONResponse(commit_admin.status(self.services, manifest_id, request.query_params))

    async def compactions(self, _request: Request) -> Response:
        return JSONResponse(compaction_admin.compactions(self.services))

    async def plan_compaction(self, request: Request) -> Response:
        body = await _body(request, LEASE_BODY_BYTES_MAX)
        return JSONResponse(await compaction_admin.plan(self.services, body))

    async def renew_compaction(self, request: Request) -> Response:
        lease_id = request.path_params["id"]
        if not compaction_admin.renew(self.services, lease_id, await _body(request)):
            raise _no_compaction(lease_id)
        return JSONResponse({"id": lease_id})

    async def release_compaction(self, request: Request) -> Response:
        lease_id = request.path_params["id"]
        if not compaction_admin.release(self.services, lease_id):
            raise _no_compaction(lease_id)
        return JSONResponse({"id": lease_id})

    async def stop(self, _request: Request) -> Response:
        if self.shutdown is None:
            raise HTTPException(404, "this broker is stopped by whoever started it")
        log_event("shutdown_asked", by="admin")
        self.shutdown()
        return JSONResponse({"status": "stopping"}, 202)


def admin_app(pages: AdminPages, guard: AdminGuard) -> ASGIApp:
    app = Starlette(
        routes=[
            Route("/health", pages.health),
            Route("/metrics", pages.metrics),
            Route("/v1/status", pages.status),
            Route("/v1/topics", pages.topics),
            Route("/v1/topics/{name}", pages.topic),
            Route("/v1/offsets", pages.offsets),
            Route("/v1/groups", pages.groups),
            Route("/v1/usage", pages.usage),
            Route("/v1/retention", pages.retention),
            Route("/v1/topics/{name}/adopt", pages.adopt, methods=["POST"]),
            Route("/v1/leases", pages.leases),
            Route("/v1/leases", pages.grant_lease, methods=["POST"]),
            Route("/v1/leases/{id}/renew", pages.renew_lease, methods=["POST"]),
            Route("/v1/leases/{id}/release", pages.release_lease, methods=["POST"]),
            Route("/v1/staging", pages.staging),
            Route("/v1/commits", pages.commit, methods=["POST"]),
            Route("/v1/commits/{id}", pages.commit_status),
            Route("/v1/compactions", pages.compactions),
            Route("/v1/compactions", pages.plan_compaction, methods=["POST"]),
            Route("/v1/compactions/{id}/renew", pages.renew_compaction, methods=["POST"]),
            Route("/v1/compactions/{id}/release", pages.release_compaction, methods=["POST"]),
            Route("/v1/shutdown", pages.stop, methods=["POST"]),
        ],
        exception_handlers={
            StratalogError: _say_why,
            HTTPException: _say_status,
            Exception: _say_nothing,
        },
    )

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = guard.refusal(scope["method"], scope["headers"])
        answer: ASGIApp = app
        if refusal is not None:
            # The body of who is refused is not read: the connection ends with the answer.
            headers = {"Connection": "close"}
            answer = JSONResponse({"error": refusal.reason}, refusal.status, headers=headers)
        try:
            # Whoever sends or reads too slowly holds a connection, and there are few of them.
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                await answer(scope, receive, send)
        except TimeoutError:
            log_event("admin_timeout", path=scope["path"])
            raise

    return guarded


# --- bodies and answers -----------------------------------------------------------------------


class Sliced(StreamingResponse):
    """Sent slice by slice and nothing beside it: Starlette's own also listens for the client to
    leave, with a task group that costs an import of 15 ms on the loop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.stream_response(send)


async def _content(request: Request, bytes_max: int) -> bytearray:
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            async for piece in request.stream():
                content += piece
                if len(content) > bytes_max:
                    raise HTTPException(413, f"a body has at most {bytes_max} bytes")
    except TimeoutError as error:
        reason = f"the body did not come to its end in {BODY_SECONDS_MAX:g} s"
        # What comes yet of it is not read.
        raise HTTPException(408, reason, headers={"Connection": "close"}) from error
    return content


async def _body(request: Request, bytes_max: int = BODY_BYTES_MAX) -> dict[str, Any]:
    content = await _content(request, bytes_max)
    try:
        # RecursionError: brackets in brackets, thousands deep.
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise InvalidRequestError("the body is not a JSON object")
    return body


def _no_lease(lease_id: str) -> HTTPException:
    return HTTPException(404, f"there is no lease {lease_id!r}: it has ended, or never was")


def _no_compaction(lease_id: str) -> HTTPException:
    return HTTPException(404, f"there is no compaction {lease_id!r}: it has ended, or never was")


def _json_rows(head: dict[str, Any], name: str, rows: Iterator[dict[str, Any]]) -> Response:
    """One JSON object whose field ``name`` is a long list, written in slices."""
    return Sliced(_in_slices(head, name, rows), media_type="application/json")


async def _in_slices(
    head: dict[str, Any], name: str, rows: Iterator[dict[str, Any]]
) -> AsyncIterator[bytes]:
    text = json.dumps({**head, name: []}, separators=(",", ":")).removesuffix("]}")
    for count, row in enumerate(rows):
        text += ("," if count else "") + json.dumps(row, separators=(",", ":"))
        if count % _ROWS_A_SLICE == _ROWS_A_SLICE - 1:
            yield text.encode()
            text = ""
            await asyncio.sleep(0)
    yield (text + "]}").encode()


async def _say_why(_request: Request, error: Exception) -> Response:
    if isinstance(error, UnknownTopicError):
        status = 404
    elif isinstance(error, LeaseError):
        status = 400
    elif isinstance(error, StorageError | MetadataStoreError | BrokerStoppingError):
        status = 503
    else:
        status = 400
    return JSONResponse({"error": str(error)}, status)


async def _say_status(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


async def _say_nothing(request: Request, error: Exception) -> Response:
    """A mistake of ours: the client hears that there was one, the log which."""
    log_event("handler_failed", path=request.url.path, error=f"{type(error).__name__}: {error}")
    return JSONResponse({"error": "the broker failed to answer; see its log"}, 500)
