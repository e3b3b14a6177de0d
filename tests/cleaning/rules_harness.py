"""Short names for the steps of a history and for what is left of it, for tests of one rule."""

from typing import Any

from cleaning_model import Described, describe_stored
from cleaning_reading import stored_batches
from cleaning_steps import Append, Roll, RowSpec, Step
from cleaning_world import CONFIG, START_MS, World

from stratalog.config import TopicConfig
from stratalog.records import Record, build_batch
from stratalog.storage.cleaning.rounds import RoundResult, clean_now

BIG = CONFIG.altered(internal_segment_bytes=100_000, segment_index_bytes=10_000)

DELETE_HORIZON = 1 << 6
FOREVER_MS = 2**40


def row(key: int | None = 1, *, tombstone: bool = False, **options: Any) -> RowSpec:
    return RowSpec(key, tombstone, **options)


def put(*keys: int | None, **options: Any) -> Append:
    return Append(tuple(row(key) for key in keys), **options)


def delete(*keys: int, **options: Any) -> Append:
    return Append(tuple(row(key, tombstone=True) for key in keys), **options)


# A batch that is the last of its round stays; this one is, so that the rule is out of the way.
END = (put(99), Roll())


def run(*steps: Step, config: TopicConfig = BIG) -> World:
    return World(config).run(steps)


def batches(world: World) -> list[Described]:
    return [describe_stored(content) for _, content in stored_batches(world.log)]


def offsets(world: World) -> list[int]:
    return [each.offset for batch in batches(world) for each in batch.rows]


def at(world: World, base_offset: int) -> Described:
    return next(batch for batch in batches(world) if batch.base_offset == base_offset)


def has_horizon(batch: Described) -> bool:
    return bool(batch.attributes & DELETE_HORIZON)


def clean_all(world: World, *, now_ms: int = START_MS, **options: Any) -> RoundResult:
    """A round without the model, for what only the log has."""
    return clean_now(world.log, first_dirty_offset=0, now_ms=now_ms, map_bytes=1 << 16, **options)


def put_raw(world: World, batch: bytes) -> None:
    """A batch that the model knows nothing of; rounds over it are ``clean_all``'s."""
    world.log.append_as_follower(batch)
    world.log.update_high_watermark(world.log.log_end_offset)


def raw(rows: list[Record], base_offset: int = 0, **options: Any) -> bytes:
    return build_batch(rows, base_offset=base_offset, leader_epoch=0, **options)
