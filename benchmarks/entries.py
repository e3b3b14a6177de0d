"""What there is to measure, in the order it is measured, and about how long each part takes.

Times are of two cores at full size. An entry is the module of its name, whose ``run(root, effort)``
yields rows and series.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    chapter: str
    expected_s: int
    is_optional: bool = False  # has no bar of its own, and is measured when it is asked for

    @property
    def module(self) -> str:
        return f"benchmarks.{self.name.replace('-', '_')}"


STORAGE, CLEANING, BROKER, SPARK = (
    "The log on disk",
    "Cleaning",
    "The broker",
    "Scans and Spark",
)
CHAPTERS = (BROKER, SPARK, CLEANING, STORAGE)

ENTRIES = (
    Entry("append", STORAGE, 10),
    Entry("recovery", STORAGE, 40),
    Entry("decode", STORAGE, 10),
    Entry("encode", STORAGE, 25),
    Entry("lookup", STORAGE, 15),
    Entry("opening", STORAGE, 45),
    Entry("memory", STORAGE, 90),
    Entry("cleaning", CLEANING, 175),
    Entry("cleaning-load", CLEANING, 50),
    Entry("scan", SPARK, 40),
    Entry("planning", SPARK, 25),
    Entry("pruning", SPARK, 25),
    Entry("broker-cost", BROKER, 310),
    Entry("broker-sizes", BROKER, 80),
    Entry("broker-latency", BROKER, 70),
    Entry("broker-start", BROKER, 105),
    Entry("broker-growth", BROKER, 125),
    Entry("broker-idle", BROKER, 100),
    Entry("broker-stalls", BROKER, 65),
    Entry("broker-java", BROKER, 190, is_optional=True),
    Entry("fixture", BROKER, 25),
    Entry("commit-load", BROKER, 70),
    Entry("spark-scan", SPARK, 220),
    Entry("spark-load", SPARK, 210),
    Entry("spark-jobs", SPARK, 110),
    Entry("spark-compact", SPARK, 105),
)
DEFAULT = tuple(entry for entry in ENTRIES if not entry.is_optional)
BY_NAME = {entry.name: entry for entry in ENTRIES}
