"""What a shell completes besides options and files: names of topics and of consumer groups.

Asked of whoever the command line so far is about: the log directory that it names, else its broker.
A shell wants an answer at once or none, so a broker that does not answer quickly completes nothing,
and nothing here may fail.
"""

from typing import Any

import typer

from stratalog.errors import StratalogError

_SECONDS = 1.0
# Versions that every broker of today speaks.
_METADATA_VERSION = 9
_LIST_GROUPS_VERSION = 3


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topics whose name begins so."""
    try:
        names = _topics_in(ctx.params.get("log_dir") or ctx.params.get("path"))
        if names is None:
            names = _topics_of(ctx.params.get("bootstrap_server"))
    except (StratalogError, OSError):
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    """Consumer groups whose id begins so."""
    try:
        names = _groups_of(ctx.params.get("bootstrap_server"))
    except (StratalogError, OSError):
        return []
    return sorted(name for name in names if name.startswith(incomplete))


def _topics_in(log_dir: str | None) -> set[str] | None:
    """None if no directory was named."""
    from pathlib import Path

    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.layout import parse_replica_directory

    if not log_dir:
        return None
    found = (Path(each).name for each in find_replicas(OsFileSystem(), log_dir).replicas)
    return {parse_replica_directory(name).topic_partition.topic for name in found}


def _topics_of(bootstrap_server: str | None) -> set[str]:
    from stratalog.protocol.api import ApiKey
    from stratalog.protocol.messages.metadata import MetadataRequest

    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = _ask(bootstrap_server, ApiKey.METADATA, _METADATA_VERSION, request)
    return {topic.name for topic in answer.topics}


def _groups_of(bootstrap_server: str | None) -> set[str]:
    from stratalog.protocol.api import ApiKey
    from stratalog.protocol.messages.list_groups import ListGroupsRequest

    answer = _ask(bootstrap_server, ApiKey.LIST_GROUPS, _LIST_GROUPS_VERSION, ListGroupsRequest())
    return {group.group_id for group in answer.groups}


def _ask(bootstrap_server: str | None, api_key: int, version: int, request: Any) -> Any:
    from stratalog.cli.client import DEFAULT_BOOTSTRAP_SERVER, addresses
    from stratalog.cli.client_wire import Wire

    host, port = addresses(bootstrap_server or DEFAULT_BOOTSTRAP_SERVER)[0]
    with Wire.open(host, port, wait_seconds=_SECONDS) as wire:
        return wire.ask(api_key, version, request)
