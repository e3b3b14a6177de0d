"""A broker that is killed at a step of its first commit.

python dying_broker.py LOG_DIR STEP TOPIC PARTITIONS
"""

import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sink_topics import create_topics

from broker_fixture import running_broker
from stratalog.storage.commits.committing import Commit


def die(_commit: Commit) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(log_dir: str, step: str, topic: str, partitions: str) -> None:
    setattr(Commit, step, die)
    with running_broker(Path(log_dir)) as broker:
        create_topics(broker.bootstrap_server, {topic: int(partitions)})
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
