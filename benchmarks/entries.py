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

    @property
    def module(self) -> str:
        return f"benchmarks.{self.name.replace('-', '_')}"

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}.py"


STORAGE, CLEANING, BROKER, SPARK = (
    "The log on disk",
    "Cleaning",
    "The broker",
    "Scans and Spark",
)
CHAPTERS = (BROKER, SPARK, CLEANING, STORAGE)

ENTRIES = (
    Entry("append", STORAGE, 10),
    Entry("recovery", STORAGE, 20),
    Entry("decode", STORAGE, 10),
    Entry("encode", STORAGE, 25),
    Entry("lookup", STORAGE, 15),
    Entry("opening", STORAGE, 20),
    Entry("memory", STORAGE, 20),
    Entry("cleaning", CLEANING, 175),
    Entry("cleaning-load", CLEANING, 50),
    Entry("scan", SPARK, 30),
    Entry("planning", SPARK, 15),
    Entry("pruning", SPARK, 10),
    Entry("broker-cost", BROKER, 380),
    Entry("broker-sizes", BROKER, 100),
    Entry("broker-latency", BROKER, 160),
    Entry("durable", BROKER, 190),
    Entry("broker-start", BROKER, 80),
    Entry("broker-growth", BROKER, 165),
    Entry("many-partitions", BROKER, 300),
    Entry("broker-idle", BROKER, 100),
    Entry("broker-stalls", BROKER, 65),
    Entry("broker-java", BROKER, 115),
    Entry("fixture", BROKER, 10),
    Entry("commit-load", BROKER, 70),
    Entry("spark-scan", SPARK, 250),
    Entry("spark-load", SPARK, 220),
    Entry("spark-jobs", SPARK, 140),
    Entry("spark-compact", SPARK, 105),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
