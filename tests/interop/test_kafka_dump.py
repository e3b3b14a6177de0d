"""kafka-dump-log and ``stratalog log dump`` print the same lines, each on the other's files."""

import shutil
from pathlib import Path

import pytest
from apache_kafka import KafkaDistribution, ToolRun
from dumping import ALL_KINDS, DUMPS, INDEXES, dump_files, our_dump
from kafka_runs import KafkaRun, copy_tree
from replaying import replay_clean
from scenarios import SCENARIOS

pytestmark = pytest.mark.interop

TOPICS = [scenario.name for scenario in SCENARIOS]


@pytest.fixture(scope="module")
def our_log_dir(kafka_run: KafkaRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    log_dir = tmp_path_factory.mktemp("ours")
    for topic in TOPICS:
        replay_clean(kafka_run.partition(topic), log_dir / f"{topic}-0")
    return log_dir


def lines_to_stderr(run: ToolRun, log_dir: Path) -> list[str]:
    """Which file comes first among the findings is a hash map's choice, and paths are absolute."""
    return sorted(run.stderr.replace(str(log_dir), "").splitlines())


@pytest.mark.parametrize("kind", DUMPS)
def test_our_dump_of_kafkas_files_is_kafkas_dump_of_ours(
    kind: str, kafka: KafkaDistribution, kafka_run: KafkaRun, our_log_dir: Path
) -> None:
    dump = DUMPS[kind]
    files = dump_files(kafka_run.clean, TOPICS, dump.suffixes)

    ours = our_dump(files, *dump.flags, cwd=kafka_run.clean)
    kafkas = kafka.dump_log(files, *dump.flags, cwd=our_log_dir)

    assert kafkas.stdout.count("Dumping ") == len(files)
    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()
    assert lines_to_stderr(ours, kafka_run.clean) == lines_to_stderr(kafkas, our_log_dir)
    assert (ours.exit_code, kafkas.exit_code) == (0, 0)


def test_what_a_transaction_coordinator_wrote_is_dumped_alike(
    kafka: KafkaDistribution, kafka_run: KafkaRun
) -> None:
    files = dump_files(kafka_run.clean, ["__transaction_state"], ALL_KINDS)

    ours = our_dump(files, "--deep-iteration", cwd=kafka_run.clean)
    kafkas = kafka.dump_log(files, "--deep-iteration", cwd=kafka_run.clean)

    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()


@pytest.mark.parametrize("topic", ["torn-tail", "garbled-tail"])
def test_a_log_that_ends_badly_is_dumped_alike(
    topic: str, kafka: KafkaDistribution, kafka_run: KafkaRun
) -> None:
    files = dump_files(kafka_run.damaged, [topic], (".log",))

    ours = our_dump(files, "--deep-iteration", cwd=kafka_run.damaged)
    kafkas = kafka.dump_log(files, "--deep-iteration", cwd=kafka_run.damaged)

    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()
    assert (ours.exit_code, kafkas.exit_code) == (0, 0)


def test_a_log_that_ends_in_zeros_stops_both_dumps_at_the_same_line(
    kafka: KafkaDistribution, kafka_run: KafkaRun
) -> None:
    files = dump_files(kafka_run.damaged, ["zero-tail"], (".log",))

    ours = our_dump(files, cwd=kafka_run.damaged)
    kafkas = kafka.dump_log(files, cwd=kafka_run.damaged)

    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()
    assert "size 0" in kafkas.stderr
    assert ours.stderr
    assert (ours.exit_code, kafkas.exit_code) == (1, 1)


def test_indexes_that_a_crash_left_preallocated_are_dumped_alike(
    kafka: KafkaDistribution, kafka_run: KafkaRun
) -> None:
    files = dump_files(kafka_run.crashed, ["plain", "rolled-by-size", "transactions"], INDEXES)

    ours = our_dump(files, cwd=kafka_run.crashed)
    kafkas = kafka.dump_log(files, cwd=kafka_run.crashed)

    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()
    assert (ours.exit_code, kafkas.exit_code) == (0, 0)


def swap_entries(file: Path, size: int) -> None:
    data = file.read_bytes()
    file.write_bytes(data[size : 2 * size] + data[:size] + data[2 * size :])


def point_elsewhere(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[3] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("suffix", "harm"),
    [
        (".timeindex", lambda file: swap_entries(file, 12)),
        (".index", lambda file: swap_entries(file, 8)),
        (".index", point_elsewhere),
        (".timeindex", point_elsewhere),
        (".snapshot", point_elsewhere),
        (".snapshot", lambda file: file.write_bytes(b"\0\7")),
        (".index", lambda file: file.write_bytes(file.read_bytes() + b"odd")),
    ],
)
def test_a_wrong_index_or_snapshot_is_reported_alike(
    suffix: str, harm, kafka: KafkaDistribution, kafka_run: KafkaRun, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    copy_tree(kafka_run.clean / "disordered-0", tmp_path / "disordered-0")
    harm(max((tmp_path / "disordered-0").glob(f"*{suffix}")))
    files = dump_files(tmp_path, ["disordered"], (suffix,))

    ours = our_dump(files, cwd=tmp_path)
    kafkas = kafka.dump_log(files, cwd=tmp_path)

    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()
    assert ours.exit_code == kafkas.exit_code == 0
    assert sorted(ours.stderr.splitlines()) == sorted(kafkas.stderr.splitlines())


def test_files_of_no_known_kind_are_passed_over_alike(
    kafka: KafkaDistribution, kafka_run: KafkaRun, tmp_path: Path
) -> None:
    shutil.copy(kafka_run.clean / "plain-0" / "partition.metadata", tmp_path)
    shutil.copy(kafka_run.clean / "plain-0" / "leader-epoch-checkpoint", tmp_path)
    files = ["partition.metadata", "leader-epoch-checkpoint"]

    ours = our_dump(files, cwd=tmp_path)
    kafkas = kafka.dump_log(files, cwd=tmp_path)

    assert (ours.stdout, ours.stderr) == (kafkas.stdout, kafkas.stderr)
    assert ours.exit_code == kafkas.exit_code == 0
