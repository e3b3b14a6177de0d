"""A streaming query that is killed again and again, its JVM with it: every row comes once."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker_fixture import running_broker

PROGRAM = Path(__file__).with_name("killed_stream.py")
RUN_SECONDS = 300

pytestmark = pytest.mark.xdist_group("spark")


class Appending:
    """Appends to a topic of three partitions, and counts what was acknowledged."""

    def __init__(self, bootstrap_server):
        self._producer = Producer({"bootstrap.servers": bootstrap_server, "linger.ms": 0})
        self.acknowledged = Counter()

    def append(self, records):
        for number in range(records):
            self._producer.produce(
                "orders", b"value", partition=number % 3, on_delivery=self._delivered
            )
        assert self._producer.flush(60) == 0

    def _delivered(self, error, message):
        assert error is None, error
        self.acknowledged[message.partition()] += 1


def run(home, log_dir, appending, *told):
    """The program's exit code and what it printed. While it is to be killed, rows go on coming."""
    with (
        (home / "stderr").open("ab") as errors,
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(home), str(log_dir), *map(str, told)],
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as program,
    ):
        try:
            while told and program.returncode is None:
                appending.append(12)
                with suppress(subprocess.TimeoutExpired):
                    program.wait(0.2)
            output, _ = program.communicate(timeout=RUN_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    return program.returncode, output


def kill_and_resume(tmp_path, kills, seed):
    choice = random.Random(seed)
    log_dir = tmp_path / "logs"
    with running_broker(log_dir, num_partitions="3") as broker:
        appending = Appending(broker.bootstrap_server)
        appending.append(300)
        for number in range(kills):
            # Also before the first batch is finished, and anywhere in the middle of another.
            batches = number if number < 3 else choice.choice([0, 1, 2])
            code, _ = run(tmp_path, log_dir, appending, batches, choice.random())
            assert code == -signal.SIGKILL, (tmp_path / "stderr").read_text()[-3000:]
        appending.append(30)
        code, output = run(tmp_path, log_dir, appending)
        assert code == 0, (tmp_path / "stderr").read_text()[-3000:]
    return json.loads(output), appending.acknowledged


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.deep)])
def test_a_query_that_is_killed_and_resumed_returns_every_row_once(tmp_path, kills):
    found, acknowledged = kill_and_resume(tmp_path, kills, seed=kills)

    assert found == [[each, offset] for each in range(3) for offset in range(acknowledged[each])]
    batches = [int(each.name) for each in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")]
    assert max(batches) >= max(3, kills // 2), "the query made no progress between the kills"
