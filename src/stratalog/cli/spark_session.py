"""What the commands of ``stratalog spark`` share: Spark's own options, a session for one command,
the package sent along, a bar while tasks run, and failures told as one sentence.

Spark takes seconds to start: whatever can be said without it is said before.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from stratalog.cli.failures import CommandError, refused_as_usage
from stratalog.cli.output import OutputFormat, write_error, write_json
from stratalog.cli.progress import tasks_bar, waiting
from stratalog.cli.values import pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stratalog.cli.java_errors import JavaErrors
    from stratalog.spark.jobs.progress import TaskCounts


# A command's output is its rows; all of this can be set otherwise with --conf.
QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LAST_WORDS_SECONDS = 5.0
# Our own sentence in what Spark tells of a failed Python source or task.
_OUR_ERROR = re.compile(r"^(?:\w*: )?stratalog\.[\w.]+: (?P<sentence>.+)$", re.M)

MasterOption = Annotated[
    str | None,
    typer.Option("--master", help="Spark's master URL, or sc://…; local[*] unless configured."),
]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark.")
]
PackagesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--packages", metavar="MAVEN", help="Jars for the session, as spark-submit takes them."
    ),
]
ShipOption = Annotated[
    bool, typer.Option("--ship", help="Send this package to workers that do not have it.")
]

SourceOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the source."),
]


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Which Spark a command is to run on, as its options said."""

    master: str | None
    configs: Mapping[str, str]
    is_shipped: bool = False

    @classmethod
    def of(
        cls,
        master: str | None,
        conf: Iterable[str] | None,
        ship: bool = False,
        packages: Sequence[str] | None = None,
    ) -> "SparkChoice":
        jars = {"spark.jars.packages": ",".join(packages)} if packages else {}
        return cls(master, {**QUIET, **jars, **pairs(conf, "--conf")}, ship)

    @property
    def is_quiet(self) -> bool:
        """Whether nobody asked to hear what Spark logs."""
        return self.configs.get("spark.log.level") == QUIET["spark.log.level"]

    @property
    def is_remote(self) -> bool:
        """A server runs it, which sees other files than this process and has Java for itself."""
        return (self.master or "").startswith("sc://")


class JobResult(Protocol):
    """What every job returns can be told as JSON."""

    def to_json(self) -> dict[str, Any]: ...


Result = TypeVar("Result", bound=JobResult)


def run_job(
    choice: SparkChoice,
    name: str,
    log_dirs: Iterable[str],
    job: "Callable[[SparkSession, Callable[[TaskCounts], None] | None], Result]",
    write: Callable[[Result], None],
    output: OutputFormat,
    *,
    check: Callable[[], None] = lambda: None,
) -> Result:
    """Run one job of ``stratalog.spark.jobs`` with a bar, and tell its result. ``check`` refuses
    what can be seen without Spark, where this process sees the directories."""
    from stratalog.scans.errors import ScanOptionError
    from stratalog.spark.jobs.errors import JobOptionError

    check_before(choice, log_dirs, check)
    with spark_for(choice, name) as spark:
        with tasks_bar(name) as progress, refused_as_usage(JobOptionError, ScanOptionError):
            result = job(spark, progress)
        if output is OutputFormat.JSON:
            write_json(result.to_json())
        else:
            write(result)
    return result


def check_before(choice: SparkChoice, log_dirs: Iterable[str], check: Callable[[], None]) -> None:
    """All that is looked at before Spark starts."""
    from stratalog.scans.errors import ScanOptionError
    from stratalog.spark.jobs.errors import JobOptionError
    from stratalog.spark.session import check_available

    if not choice.is_remote:
        check_log_directories(log_dirs)
    check_available(needs_java=not choice.is_remote)
    if not choice.is_remote:
        with refused_as_usage(JobOptionError, ScanOptionError):
            check()


def check_log_directories(log_dirs: Iterable[str]) -> None:
    """Paths of which none is one are refused at once, not when Spark has started."""
    from stratalog.storage.check_looks import find_each
    from stratalog.storage.files import OsFileSystem

    find_each(OsFileSystem(), log_dirs)


@contextmanager
def spark_for(choice: SparkChoice, command: str) -> Iterator["SparkSession"]:
    """A session for one command; what Spark says of a failure becomes one sentence."""
    from stratalog.cli.java_errors import JavaErrors
    from stratalog.spark.session import check_available

    check_available(needs_java=not choice.is_remote)
    errors = JavaErrors() if choice.is_quiet and not choice.is_remote else None
    with (
        _interrupts_stay(),
        _gone_is_told(errors),
        _shipped(dict(choice.configs), choice.is_shipped) as settings,
        _session(choice.master, settings, f"stratalog spark {command}", errors) as spark,
        clear_failures(),
    ):
        yield spark


@contextmanager
def _interrupts_stay() -> Iterator[None]:
    """Of a command that waits for Spark, Ctrl-C also shuts Py4J's connection, which may raise an
    error of its own in the interrupt's place; so may all that asks the JVM on the way out."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        yield
    except (Py4JError, CommandError, OSError) as error:
        before: BaseException | None = error
        while before is not None:
            before = before.__context__
            if isinstance(before, KeyboardInterrupt):
                raise KeyboardInterrupt from error
        raise


@contextmanager
def _gone_is_told(errors: "JavaErrors | None") -> Iterator[None]:
    """Around the session, whose end fails as well where nobody is there any more."""
    from py4j.protocol import Py4JNetworkError
    from pyspark.errors import PySparkRuntimeError

    try:
        yield
    except (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError) as error:
        _tell_last_lines(errors)
        raise CommandError("Spark's Java process went away while it was needed") from error
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        _tell_last_lines(errors)
        raise CommandError("Spark's Java process did not start") from error


def _tell_last_lines(errors: "JavaErrors | None") -> None:
    """Whatever the process had to say of its own end."""
    for line in [] if errors is None else errors.last_lines(wait_seconds=_LAST_WORDS_SECONDS):
        write_error(line)


@contextmanager
def _shipped(configs: dict[str, str], is_shipped: bool) -> Iterator[dict[str, str]]:
    if not is_shipped:
        yield configs
        return
    from stratalog.spark.shipping import package_archive, shipping_configs

    with TemporaryDirectory(prefix="stratalog-") as place:
        yield shipping_configs(package_archive(Path(place) / "stratalog.zip"), configs)


@contextmanager
def _session(
    master: str | None, configs: Mapping[str, str], app_name: str, errors: "JavaErrors | None"
) -> Iterator["SparkSession"]:
    from pyspark.sql import SparkSession

    from stratalog.spark.session import session

    logging.getLogger().addFilter(_is_told_once)
    was_running = SparkSession.getActiveSession() is not None
    try:
        with waiting("starting Spark"):
            spark = session(
                master,
                app_name=app_name,
                configs=configs,
                java_stderr=None if errors is None else errors.descriptor,
            )
    finally:
        if errors is not None:
            errors.close()
    try:
        yield spark
    finally:
        if not was_running:
            spark.stop()


@contextmanager
def clear_failures() -> Iterator[None]:
    """Spark's errors as one sentence: ours, if it was our code that failed."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import ParseException, PySparkException

    # It would print each error a second time, as JSON with the whole stack of the JVM.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield
    except Py4JJavaError as error:
        said = str(error.java_exception)
        raise CommandError(_our_sentence(said) or said.partition("\n")[0]) from error
    except PySparkException as error:
        said = str(error).strip()
        if ours := _our_sentence(said):
            raise CommandError(ours) from error
        # A syntax error shows the place below its first line; what others show is a plan.
        is_whole = isinstance(error, ParseException)
        raise CommandError(said if is_whole else said.partition("\n")[0].rstrip(";")) from error


def _is_told_once(record: logging.LogRecord) -> bool:
    """Py4J logs what it raises, and a Ctrl-C several times over, with all its stacks."""
    return not (record.name == "root" and str(record.msg).endswith("while sending command."))


def _our_sentence(said: str) -> str | None:
    found = _OUR_ERROR.findall(said)
    return found[-1] if found else None
