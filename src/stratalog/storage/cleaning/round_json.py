"""A round that is worked at elsewhere, and its way there as JSON.

Whoever reads it may be in another process and of another release: what is missing or makes no
sense is one error, and no path is taken that does not lie in the partition's directory.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from stratalog.config import TopicConfig
from stratalog.errors import StorageError, StratalogError
from stratalog.storage.cleaning.rewriting import RoundPlan, Source
from stratalog.storage.commits.manifest import PartitionManifest, Replacement, SourceSegment
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import LOG_SUFFIX, TopicPartition, segment_file
from stratalog.storage.transactions import AbortedTransaction


class RoundPlanError(StorageError):
    """What somebody sent as the plan of a round is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideRound:
    """``segments`` are the plan's sources, in the same order, by what tells them apart."""

    plan: RoundPlan
    segments: tuple[SourceSegment, ...]
    topic_id: str
    hash_name: str
    load_factor: float

    @property
    def topic_partition(self) -> TopicPartition:
        return self.plan.topic_partition

    def replacement(self, files: "list[tuple[list[Source], Any]]") -> PartitionManifest:
        """The groups that were rewritten, each with its staged file, as a manifest has them."""
        known = {each.base_offset: each for each in self.segments}
        key = self.topic_partition
        return PartitionManifest(
            topic=key.topic,
            partition=key.partition,
            topic_id=self.topic_id,
            groups=tuple(
                Replacement(sources=tuple(known[each.base_offset] for each in group), file=file)
                for group, file in files
            ),
            cleaned_to=self.plan.upper_bound_offset,
        )

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "topic": plan.topic_partition.topic,
            "partition": plan.topic_partition.partition,
            "topic_id": self.topic_id,
            "directory": plan.directory,
            "config": plan.config.to_properties(every=True),
            "first_dirty_offset": plan.first_dirty_offset,
            "upper_bound_offset": plan.upper_bound_offset,
            "now_ms": plan.now_ms,
            "truncation_count": plan.truncation_count,
            "producers": [list(each) for each in plan.producers],
            "hash_name": self.hash_name,
            "load_factor": self.load_factor,
            "sources": [
                {**_source_json(source), **asdict(segment)}
                for source, segment in zip(plan.sources, self.segments, strict=True)
            ],
        }


def _source_json(source: Source) -> dict[str, Any]:
    return {
        "end_offset": source.end_offset,
        "offset_index_bytes": source.offset_index_bytes,
        "time_index_bytes": source.time_index_bytes,
        "modified_ms": source.modified_ms,
        "first_dirty_position": source.first_dirty_position,
        "aborted": [
            [each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset]
            for each in source.aborted
        ],
    }


def read_round(value: Mapping[str, Any], files: FileSystem) -> OutsideRound:
    try:
        return _read_round(value, files)
    except (KeyError, TypeError, ValueError, StratalogError) as error:
        raise RoundPlanError(
            f"the plan of a round is not understood: {error!r}; is its owner of another release "
            "of stratalog?"
        ) from error


def _read_round(value: Mapping[str, Any], files: FileSystem) -> OutsideRound:
    directory = str(value["directory"])
    sources = tuple(_read_source(directory, each) for each in value["sources"])
    plan = RoundPlan(
        TopicPartition(str(value["topic"]), int(value["partition"])),
        directory,
        files,
        TopicConfig.from_properties(value["config"]),
        int(value["first_dirty_offset"]),
        int(value["upper_bound_offset"]),
        int(value["now_ms"]),
        int(value["truncation_count"]),
        sources,
        tuple((int(a), int(b), int(c)) for a, b, c in value["producers"]),
    )
    return OutsideRound(
        plan=plan,
        segments=tuple(
            SourceSegment(
                base_offset=int(each["base_offset"]),
                size_bytes=int(each["size_bytes"]),
                last_offset=int(each["last_offset"]),
                last_crc=int(each["last_crc"]),
            )
            for each in value["sources"]
        ),
        topic_id=str(value["topic_id"]),
        hash_name=str(value["hash_name"]),
        load_factor=float(value["load_factor"]),
    )


def _read_source(directory: str, value: Mapping[str, Any]) -> Source:
    base_offset = int(value["base_offset"])
    return Source(
        base_offset,
        segment_file(directory, base_offset, LOG_SUFFIX),
        int(value["size_bytes"]),
        int(value["offset_index_bytes"]),
        int(value["time_index_bytes"]),
        int(value["modified_ms"]),
        int(value["end_offset"]),
        int(value["first_dirty_position"]),
        tuple(
            AbortedTransaction(int(a), int(b), int(c), int(d)) for a, b, c, d in value["aborted"]
        ),
    )
