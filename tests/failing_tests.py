"""A test that fails is named when it fails: a long run need not end to say which it was."""

import pytest

_REASON_MAX = 300


def tell(
    config: pytest.Config, what: str, report: pytest.TestReport | pytest.CollectReport
) -> None:
    """One line on the terminal: what failed, and the first line of why."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or terminal.verbosity > 0:
        # A worker of xdist, which reports to the process that has the terminal; or a run that
        # names each test anyway.
        return
    terminal.ensure_newline()
    terminal.line("")
    terminal.line(f"{what} {report.nodeid} - {reason(report)}", red=True)
    terminal.flush()


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first line of what was raised, or the last of what there is instead."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        told = str(crash.message).partition("\n")[0]
    else:
        # A module that cannot be imported has a text, in which pytest marks the last line.
        told = str(report.longrepr).rstrip().rpartition("\n")[2].removeprefix("E  ").strip()
    return told[:_REASON_MAX]


class FailingTests:
    """The hooks of pytest that hear of a failure, also of one in another process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)  # after the letter of this test
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            tell(self._config, "FAILED" if report.when == "call" else "ERROR", report)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            tell(self._config, "ERROR", report)
