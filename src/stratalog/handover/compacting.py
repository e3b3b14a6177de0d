"""Asking the owner of a log directory for rounds to be worked at elsewhere; or planning them here,
where nobody owns it.

While an owner runs, its own cleaner leaves those logs alone, for as long as is asked for and
renewed. Where nobody owns the directory there is nobody to keep away; should somebody come, the
commit finds out whether a source has changed.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratalog.clock import Clock, SystemClock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.directories.owners import find_owner
from stratalog.errors import DirectoryLockedError
from stratalog.handover.asking import ask_compaction
from stratalog.handover.errors import HandoverError
from stratalog.handover.handover import SECONDS, is_java
from stratalog.handover.owning import owned, owner_config
from stratalog.metadata.dynamic_configs import effective_broker
from stratalog.metadata.removal_limits import looser_limits
from stratalog.metadata.server_configs import known_server_configs
from stratalog.metadata.sqlite_store import SqliteMetadataStore
from stratalog.storage.cleaning.outside import (
    LeftOut,
    OutsideRounds,
    is_same_directory,
    wanted_keys,
)
from stratalog.storage.cleaning.round_json import OutsideRound, read_round
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import TopicPartition

_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class PlannedRounds:
    """``is_paused``: an owner keeps its cleaner away, and has to be asked again in time.
    ``reserve_bytes`` stay free in the directory, or the owner takes no appends."""

    rounds: list[OutsideRound]
    left_out: list[LeftOut]
    is_paused: bool
    reserve_bytes: int


class Compactions:
    """Of one log directory, under one id: that of the staging that the rounds will fill."""

    def __init__(
        self,
        log_dir: str,
        lease_id: str,
        *,
        config: dict[str, str] | None = None,
        files: FileSystem | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.log_dir = log_dir
        self.lease_id = lease_id
        self._config = owner_config(log_dir, config or {})
        self._files = files or OsFileSystem()
        self._clock = clock or SystemClock()

    def plan(
        self,
        topics: Sequence[str],
        partitions: Sequence[int] | None,
        *,
        seconds: float,
        is_forced: bool,
    ) -> PlannedRounds:
        until = time.monotonic() + SECONDS
        while True:
            ownership, owner = find_owner(self.log_dir)
            if owner is not None:
                body = {
                    "id": self.lease_id,
                    "log_dir": os.path.realpath(self.log_dir),
                    "topics": list(topics),
                    "partitions": None if partitions is None else list(partitions),
                    "force": is_forced,
                    "seconds": seconds,
                }
                answer = ask_compaction(owner, "", json.dumps(body).encode())
                if answer.status == 200:
                    return read_plan(answer.body, self.log_dir, self._files)
                reason = f"process {owner.pid}: {answer.reason}"
                if 400 <= answer.status < 500:
                    raise HandoverError(reason)
            elif ownership.kind == "none":
                try:
                    return self._plan_here(topics, partitions, is_forced=is_forced)
                except DirectoryLockedError as error:  # somebody else was first
                    reason = str(error)
            elif ownership.is_here or is_java(ownership.pid):
                raise HandoverError(
                    f"process {ownership.pid} owns {self.log_dir} and takes no staged segments: "
                    "stop it, or let it clean by itself"
                )
            else:
                reason = f"process {ownership.pid} owns it and cannot be asked"
            if time.monotonic() >= until:
                raise HandoverError(f"{self.log_dir}: {reason}")
            time.sleep(_PAUSE_SECONDS)

    def _plan_here(
        self, topics: Sequence[str], partitions: Sequence[int] | None, *, is_forced: bool
    ) -> PlannedRounds:
        with owned(self._config, self._files, self._clock) as opened:
            logs = opened.logs
            outside = OutsideRounds(lambda: logs.config, logs.directories, lambda: None)
            now_ms = self._clock.now_ms()
            found = [
                outside.add(self.lease_id, key, now_ms=now_ms, is_forced=is_forced)
                for key in wanted_keys((log.topic_partition for log in logs), topics, partitions)
            ]
            for name in sorted({each.topic_partition.topic for each in found}):
                _refuse_beyond(opened.store, name)
        rounds = [each for each in found if isinstance(each, OutsideRound)]
        left_out = [each for each in found if isinstance(each, LeftOut)]
        reserve_bytes = self._config.broker.log_dir_reserve_bytes
        return PlannedRounds(rounds, left_out, is_paused=False, reserve_bytes=reserve_bytes)

    def renew(self, seconds: float) -> bool:
        """False if the owner has no such pause any more: then the commit will tell."""
        body = json.dumps({"seconds": seconds}).encode()
        _, owner = find_owner(self.log_dir)
        return owner is not None and (
            ask_compaction(owner, f"/{self.lease_id}/renew", body).status == 200
        )

    def release(self) -> None:
        """Best effort: it ends by itself."""
        _, owner = find_owner(self.log_dir)
        if owner is not None:
            ask_compaction(owner, f"/{self.lease_id}/release", b"{}")


def _refuse_beyond(store: SqliteMetadataStore, name: str) -> None:
    """Settings that are given for the broker may not remove more than those that it had."""
    image = store.image
    if image.server_configs is None or name not in image.topics:
        return
    server = BrokerConfig.from_properties(known_server_configs(image.server_configs))
    known = effective_broker(server, image.broker_overrides(image.node_id))
    configs = image.topics[name].configs
    looser = looser_limits(
        TopicConfig.from_properties(configs, broker=known),
        TopicConfig.from_properties(configs, broker=store.broker),
        "compact",
    )
    if looser:
        limit = looser[0]
        raise HandoverError(
            f"topic {name} has {limit.name}={limit.known} of its broker; with {limit.name}="
            f"{limit.given} more would be removed than that allows: alter the topic's configs"
        )


def read_plan(body: dict[str, Any], log_dir: str, files: FileSystem) -> PlannedRounds:
    """What an owner has answered about ``log_dir``."""
    try:
        rounds = [read_round(each, files) for each in body["rounds"]]
        left_out = [
            LeftOut(
                TopicPartition(str(each["topic"]), int(each["partition"])),
                str(each["reason"]),
                # Older brokers do not say.
                is_damaged=each.get("is_damaged") is True,
            )
            for each in body["left_out"]
        ]
        # Older brokers do not tell theirs.
        reserve_bytes = int(body.get("reserve_bytes", BrokerConfig().log_dir_reserve_bytes))
    except (KeyError, TypeError, ValueError) as error:
        raise HandoverError(f"the owner's plan is not understood: {error!r}") from error
    here = []
    for each in rounds:  # of a broker that knows nothing of "log_dir", from all its directories
        where = str(Path(each.plan.directory).parent)
        if is_same_directory(where, log_dir):
            here.append(each)
        else:
            left_out.append(LeftOut.elsewhere(each.topic_partition, where))
    return PlannedRounds(here, left_out, is_paused=True, reserve_bytes=reserve_bytes)
