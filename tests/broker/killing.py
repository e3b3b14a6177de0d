"""``stratalog serve`` in a process of its own, to be killed and started again on the same port."""

import os
import subprocess
import sys
from pathlib import Path

from free_ports import free_port

SECONDS = 120

_COMMAND = "from stratalog.cli.main import main\nmain()"


class KilledBroker:
    """A broker on ``log_dir``. What it says to the operator is kept in ``errors``."""

    def __init__(self, log_dir: Path, **settings: str) -> None:
        self._log_dir = log_dir
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._process: subprocess.Popen[str] | None = None
        self.errors = log_dir.with_name(f"{log_dir.name}.stderr")
        self.port = free_port()
        # Compiling the sources at each start would take longer than the rest of it.
        self._environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        self._environment["PYTHONPYCACHEPREFIX"] = str(log_dir.with_name("bytecode"))

    @property
    def bootstrap_server(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """It may not accept yet when this returns: see ``wait_until_ready``."""
        assert self._process is None, "it runs"
        arguments = ["--log-dir", str(self._log_dir), "--listen", self.bootstrap_server]
        for name, value in self._settings.items():
            arguments += ["--set", f"{name}={value}"]
        with self.errors.open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, "serve", *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._environment,
            )

    def wait_until_ready(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("stratalog is ready on"), self.errors.read_text()

    def lives_for(self, seconds: float) -> bool:
        """Whether it still runs after that time."""
        assert self._process is not None, "it does not run"
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill(self) -> None:
        """SIGKILL: it has no chance to do anything any more."""
        process = self._end()
        assert process.poll() is None, f"it had ended by itself: {self.errors.read_text()}"
        process.kill()
        process.communicate(timeout=SECONDS)

    def stop(self) -> None:
        """SIGTERM, and a clean end."""
        process = self._end()
        process.terminate()
        process.communicate(timeout=SECONDS)
        assert process.returncode == 0, self.errors.read_text()

    def make_sure_it_is_gone(self) -> None:
        if self._process is not None:
            process = self._end()
            process.kill()
            process.communicate(timeout=SECONDS)

    def _end(self) -> "subprocess.Popen[str]":
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        return process
