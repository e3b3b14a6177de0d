"""The files of a ``spark-pipelines`` project, as text: what ``stratalog pipeline init`` writes.

``$name`` is filled in, with what is a literal where it stands: of Python in ``.py``, of YAML in the
specification (JSON is YAML).
"""

SPEC = """\
# A declarative pipeline of Apache Spark. To look at it, and to run it (again, for what is new):
#   $command dry-run --spec spark-pipeline.yml
#   $command run --spec spark-pipeline.yml
name: $name
# Where it keeps how far it has come. Without it, the next run begins from the start.
storage: $storage
# One sink after the other. Two streams of a Python source that begin at the same moment can break
# each other, and all that come after them: PySpark 4.3 changes a map they share, without a lock.
configuration:
  spark.sql.pipelines.execution.maxConcurrentFlows: "1"
libraries:
  - glob:
      include: transformations/**
"""

SOURCE = '''\
"""Where the records come from: a topic, read from its files."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

LOG_DIR = $log_dir
TOPIC = $topic


@dp.temporary_view
def records() -> DataFrame:
    """key, value, topic, partition, offset, timestamp, timestampType."""
    return (
        SparkSession.active()
        .readStream.format("stratalog")
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load(LOG_DIR)
    )
'''

TRANSFORM = """\
-- What becomes of the records. `records` is what transformations/source.py reads; what is written
-- is `transformed`. A topic takes key, value and timestamp; files take whatever is here.
CREATE TEMPORARY VIEW transformed AS
SELECT
  CAST(key AS STRING) AS key,
  CAST(value AS STRING) AS value,
  topic AS source_topic,
  partition AS source_partition,
  offset AS source_offset,
  timestamp
FROM STREAM(records)
WHERE value IS NOT NULL;
"""

TO_TOPIC = '''\
"""Where the rows go: to a topic, exactly once, by the owner of the log directory."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

LOG_DIR = $log_dir
TOPIC = $to_topic

dp.create_sink("to_topic", "stratalog", {"path": LOG_DIR, "topic": TOPIC})


@dp.append_flow(target="to_topic")
def write_to_topic() -> DataFrame:
    rows = SparkSession.active().readStream.table("transformed")
    return rows.select("key", "value", "timestamp")
'''

TO_PARQUET = '''\
"""Where the rows go: to Parquet files. Who reads the directory with Spark sees each row once,
by the metadata that Spark keeps in it.

Remove the directory before `run --full-refresh`, and whenever `storage` is removed: Spark skips
the batches whose number is in that metadata, and their rows would be lost.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

PLACE = $landing

dp.create_sink("to_parquet", "parquet", {"path": PLACE})


@dp.append_flow(target="to_parquet")
def write_to_parquet() -> DataFrame:
    return SparkSession.active().readStream.table("transformed")
'''
