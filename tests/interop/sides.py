"""One history, cleaned or retained by Apache Kafka and by us.

Both sides start from copies of one directory and are asked under the same clock, so every byte that
they leave can be compared.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from batches import HEADER, Header, walk
from histories import History, Round, append_steps, opened, write_history
from log_oracle import Answer, KafkaLogs
from replaying import contents, difference

from stratalog.errors import StratalogError
from stratalog.records import Codec
from stratalog.records.compression import decompress
from stratalog.storage.cleaning.planning import CleaningPlan, plan_cleaning
from stratalog.storage.cleaning.rounds import CleanerStats, RoundResult, clean_now
from stratalog.storage.log import Log
from stratalog.storage.retention import delete_old_segments

BODY_LIMIT_BYTES = 1 << 26
PLANNED = (
    "first_dirty_offset",
    "first_uncleanable_offset",
    "clean_bytes",
    "cleanable_bytes",
    "compaction_delay_ms",
)
# What Kafka throws when nothing is left of a message of magic 0 or 1 that ends the cleaned range.
EMPTY_LEGACY_BATCH = "IllegalStateException"
COUNTED = ("bytes_read", "messages_written", "invalid_messages_read")


class UncleanableError(Exception):
    """Neither side can clean this log."""


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory for one of many examples: in memory if it can be, since all of it is synced."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as root:
        yield Path(root)


@dataclass(slots=True)
class Sides:
    """Two copies of one history, one for each cleaner, and how far each has cleaned."""

    history: History
    kafkas: Path
    ours: Path
    end_offset: int | None = None
    log_start_offset: int = 0

    @classmethod
    def of(cls, history: History, root: Path) -> "Sides":
        kafkas, ours = root / "kafka" / "history-0", root / "ours" / "history-0"
        write_history(history, ours)
        _copy(ours, kafkas)
        return cls(history, kafkas, ours)

    def clean(self, kafka_logs: KafkaLogs, cleaning: Round) -> Answer:
        """One round on both sides, if there is anything to clean; they have to agree on that, and
        on where the round ends."""
        configs, now_ms = self.history.cleaned_with, cleaning.now_ms
        if cleaning.steps:
            for side in (self.ours, self.kafkas):
                append_steps(self.history, cleaning.steps, side, now_ms, self.log_start_offset)
        checkpoint = None if cleaning.forgets else self.end_offset
        asked: dict[str, object] = {
            "last_clean_offset": checkpoint,
            "map_bytes": cleaning.map_bytes,
            "checkpointed_start_offset": self.log_start_offset,
        }
        if cleaning.high_watermark is not None:
            asked["high_watermark"] = cleaning.high_watermark
        with opened(
            self.ours, configs, now_ms, cleaning.high_watermark, self.log_start_offset
        ) as log:
            log.raise_log_start_offset(min(cleaning.log_start_offset, log.high_watermark))
            self.log_start_offset = asked["log_start_offset"] = log.log_start_offset
            plan = plan_for(log, checkpoint, now_ms)
            answer = kafka_logs.ask("clean", self.kafkas, configs, now_ms=now_ms, **asked)
            assert planned(plan) == {name: answer.get(name) for name in PLANNED}, answer
            if not plan.cleanable_bytes:
                return answer
            if answer.get("error") == EMPTY_LEGACY_BATCH:
                with pytest.raises(StratalogError):
                    _clean_ours(log, plan, cleaning)
                raise UncleanableError
            assert "error" not in answer, answer
            result = _clean_ours(log, plan, cleaning)
        assert result.end_offset == answer["end_offset"]
        assert counted(result.stats) == {name: answer[name] for name in COUNTED}
        self.end_offset = answer["end_offset"]
        return answer

    def level(self, cleaning: int) -> None:
        """Go on from the same bytes, where recompression has made them unlike: from Kafka's after
        even cleanings and from ours after odd ones, so that each cleans what the other wrote."""
        source, target = (self.ours, self.kafkas) if cleaning % 2 else (self.kafkas, self.ours)
        if _files(source) != _files(target):
            shutil.rmtree(target)
            _copy(source, target)

    def retain(
        self,
        kafka_logs: KafkaLogs,
        configs: Mapping[str, str],
        *,
        now_ms: int,
        high_watermark: int | None = None,
        log_start_offset: int = 0,
    ) -> Answer:
        """One pass of retention on both sides; they have to agree on what went."""
        chosen = {**self.history.written_with, **configs}
        asked: dict[str, object] = {"log_start_offset": log_start_offset}
        if high_watermark is not None:
            asked["high_watermark"] = high_watermark
        answer = kafka_logs.ask("retain", self.kafkas, chosen, now_ms=now_ms, **asked)
        assert "error" not in answer, answer
        with opened(self.ours, chosen, now_ms, high_watermark) as log:
            log.raise_log_start_offset(log_start_offset)
            plan = delete_old_segments(log, now_ms)
            assert len(plan.segments) == answer["deleted_segments"]
            assert log.log_start_offset == answer["log_start_offset"]
            assert log.log_end_offset == answer["log_end_offset"]
        return answer

    def differences(self, *, ignoring: tuple[str, ...] = ()) -> list[str]:
        """What the two directories do not have in common, as far as it has to be common: files
        whose names end with one of ``ignoring`` need not."""
        ours, kafkas = (
            {name: data for name, data in _files(side).items() if not name.endswith(ignoring)}
            for side in (self.ours, self.kafkas)
        )
        return compare(ours, kafkas) + _modified_differences(self.ours, self.kafkas)


def _copy(source: Path, target: Path) -> None:
    """Without what is ours alone, which tells of files as we left them."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".stratalog"))


def _files(directory: Path) -> dict[str, bytes]:
    """All files but empty indexes: Kafka makes those of an empty segment when they are first used,
    we make them when the segment is closed."""
    files = contents(directory)
    return {
        name: data
        for name, data in files.items()
        if data or not name.endswith(("index", "timeindex"))
    }


def _clean_ours(log: Log, plan: CleaningPlan, cleaning: Round) -> RoundResult:
    return clean_now(
        log,
        first_dirty_offset=plan.first_dirty_offset,
        now_ms=cleaning.now_ms,
        map_bytes=cleaning.map_bytes,
    )


def plan_for(log: Log, checkpoint: int | None, now_ms: int) -> CleaningPlan:
    """What we would clean."""
    return plan_cleaning(
        list(log.segments),
        config=log.config,
        checkpoint=checkpoint,
        log_start_offset=log.log_start_offset,
        last_stable_offset=log.last_stable_offset,
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
    )


def planned(plan: CleaningPlan) -> dict[str, int]:
    """The numbers of a plan that Kafka tells of its own."""
    return {name: getattr(plan, name) for name in PLANNED}


def counted(stats: CleanerStats) -> dict[str, int]:
    """What both count alike while they clean, by Kafka's names. Of records that need not be looked
    at one by one, ours are not counted as read."""
    return {
        "bytes_read": stats.bytes_read,
        "messages_written": stats.messages_kept,
        "invalid_messages_read": stats.null_keys,
    }


def compare(ours: dict[str, bytes], kafkas: dict[str, bytes]) -> list[str]:
    """Differences of two partitions; batches that were compressed again may differ in the bytes
    that the codec made, and then the indexes of that segment in their positions."""
    problems: list[str] = []
    recompressed = set()
    for name in sorted(name for name in ours.keys() & kafkas.keys() if name.endswith(".log")):
        if ours[name] != kafkas[name]:
            found = batch_differences(name, ours[name], kafkas[name])
            problems += found
            if not found:
                recompressed |= {name, f"{name[:-4]}.index", f"{name[:-4]}.timeindex"}
    return problems + difference(_without(ours, recompressed), _without(kafkas, recompressed))


def _without(files: dict[str, bytes], names: set[str]) -> dict[str, bytes]:
    return {name: b"" if name in names else data for name, data in files.items()}


def batch_differences(name: str, ours: bytes, kafkas: bytes) -> list[str]:
    """What differs batch by batch, beyond another way to compress the same records."""
    left, right = list(walk(ours)), list(walk(kafkas))
    if len(left) != len(right):
        return [f"{name}: {len(left)} batches, Kafka's {len(right)}"]
    return [
        f"{name}: {mine} is not {theirs}"
        for (mine, my_bytes), (theirs, their_bytes) in zip(left, right, strict=True)
        if my_bytes != their_bytes and not _only_recompressed(mine, my_bytes, theirs, their_bytes)
    ]


def _only_recompressed(mine: Header, my_bytes: bytes, theirs: Header, their_bytes: bytes) -> bool:
    codec = mine.attributes & 7
    if mine.magic != 2 or codec == Codec.NONE:
        return False
    if mine._replace(length=0, crc=0) != theirs._replace(length=0, crc=0):
        return False
    return _body(codec, my_bytes) == _body(codec, their_bytes)


def _body(codec: int, batch: bytes) -> bytes:
    return bytes(decompress(codec, batch[HEADER.size :], limit_bytes=BODY_LIMIT_BYTES))


def _modified_differences(ours: Path, kafkas: Path) -> list[str]:
    """When a segment without timestamps was last written decides over its life. Not that of the
    active one, which the machine's clock tells as soon as it is opened."""
    names = sorted(file.name for file in ours.glob("*.log"))[:-1]
    return [
        f"{name}: last modified at another millisecond"
        for name in names
        if _modified_ms(ours / name) != _modified_ms(kafkas / name)
    ]


def _modified_ms(file: Path) -> int:
    return file.stat().st_mtime_ns // 1_000_000
