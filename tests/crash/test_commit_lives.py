"""Random lives of an owner: commits, appends and stops, with the power cut again and again.

Each start goes by what the crash before it left, sometimes on a full disk, and the next commit goes
on from there: every record that was acknowledged is there, once, and so is all or nothing of what
was being done.
"""

import errno
import random

import pytest
from commit_scenario import (
    EMPTY,
    ORDERS,
    PAYMENTS,
    Owner,
    State,
    check_logs,
    check_swept,
    started,
    state_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from commit_harness import LOG_DIR
from stratalog.storage.commits.errors import CommitError
from stratalog.storage.commits.manifest import AppVersion, Manifest
from stratalog.testing import CrashMode, PowerLoss

KEYS = (ORDERS, PAYMENTS, EMPTY)


class Life:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.owner = Owner()
        self.owner.create(*KEYS)
        self.version = 0
        self.last: tuple[Manifest, State] | None = None  # what was last to be committed

    def run(self, crashes: int) -> None:
        for _ in range(crashes):
            owner = self.owner
            owner.files.crash_at(
                owner.files.operations + self.chance.randint(1, 250),
                inside=self.chance.random() < 0.5,
            )
            try:
                while True:
                    self.chance.choice(
                        (self.produce, self.commit, self.commit, self.checkpoint, self.restart)
                    )()
            except PowerLoss:
                self.recover()
        self.owner.manager.shutdown()
        check_swept_again(self.owner)

    def produce(self) -> None:
        self.owner.produce(self.chance.choice(KEYS), self.chance.randint(1, 3))

    def commit(self) -> None:
        chance = self.chance
        shape = {
            key: [
                [chance.randint(1, 3) for _ in range(chance.randint(1, 4))]
                for _ in range(chance.randint(1, 3))
            ]
            for key in chance.sample(KEYS, chance.randint(1, 3))
        }
        self.version += 1
        app = AppVersion(name="query", version=self.version) if chance.random() < 0.5 else None
        self.last = None
        manifest = self.owner.stage(
            shape,
            manifest_id=f"load-{self.version}",
            size_bytes=chance.choice((8, 150)),
            app=app,
        )
        self.last = manifest, dict(self.owner.coming)
        self.owner.commit(manifest)

    def checkpoint(self) -> None:
        self.owner.step = "checkpoint"
        self.owner.manager.checkpoint_recovery_points()
        self.owner.manager.checkpoint_high_watermarks()

    def restart(self) -> None:
        self.owner.stop()
        self.owner.start()

    def recover(self) -> None:
        owner = self.owner
        mode = self.chance.choice(list(CrashMode))
        owner.files = owner.files.after_crash(mode, self.chance.randint(0, 1 << 30))
        if self.chance.random() < 0.3:  # no room to note what is rolled forward, for a moment
            owner.files.fail(
                lambda each: each.kind == "write" and each.path.endswith("commits"), errno.ENOSPC
            )
        owner.manager = started(owner.files, owner.clock)
        owner.files.heal()
        found = state_of(owner.manager)
        assert found in (owner.state, owner.after), f"all or nothing of {owner.step}"
        check_logs(owner.manager, owner.files)
        owner.state = owner.after = found
        for _ in range(self.chance.randint(0, 3)):
            self.produce()
        owner.manager.commits.sweep(owner.clock.now_ms())
        if self.last is not None:
            self.commit_again(*self.last)

    def commit_again(self, manifest: Manifest, coming: State) -> None:
        """What was being committed, or was the last that was, once more."""
        owner = self.owner
        held = all(set(values) <= set(owner.state[key]) for key, values in coming.items() if values)
        try:
            result = owner.manager.commits.run(manifest)
        except CommitError:
            assert not held
            return
        assert (result.status == "already committed") == held
        if not held:
            owner.state = owner.after = {
                key: (*values, *coming.get(key, ())) for key, values in owner.state.items()
            }
        assert state_of(owner.manager) == owner.state


def check_swept_again(owner: Owner) -> None:
    owner.start()
    assert state_of(owner.manager) == owner.state
    check_swept(owner.manager, owner.files, owner.clock)
    assert owner.files.exists(f"{LOG_DIR}/.stratalog-commits") or not owner.returned
    owner.manager.shutdown()


@given(st.integers(min_value=0, max_value=1 << 30))
@settings(max_examples=25)
def test_an_owner_that_crashes_again_and_again_keeps_every_promise(seed: int) -> None:
    Life(seed).run(crashes=4)


@pytest.mark.deep
@given(st.integers(min_value=0, max_value=1 << 60))
def test_so_it_does_in_long_lives(seed: int) -> None:
    Life(seed).run(crashes=15)
