"""``stratalog log repair``: put a damaged log right, after a person has decided what to give up."""

from typing import TYPE_CHECKING, Annotated

import typer

from stratalog.cli.directories import (
    NamedDirOption,
    OnePartitionOption,
    PartitionDirArgument,
    PartitionTopicOption,
    partition_of,
)
from stratalog.cli.failures import UsageError
from stratalog.cli.output import OutputFormat, OutputOption, write_json, write_line
from stratalog.cli.progress import waiting

if TYPE_CHECKING:
    from stratalog.storage.repair import RepairPlan


def repair(
    directory: PartitionDirArgument = None,
    log_dir: NamedDirOption = None,
    topic: PartitionTopicOption = None,
    partition: OnePartitionOption = None,
    reindex: Annotated[
        bool, typer.Option("--reindex", help="Build all indexes again from the log.")
    ] = False,
    truncate_at: Annotated[
        int | None,
        typer.Option("--truncate-at", metavar="OFFSET", help="Give up this offset and all later."),
    ] = None,
    drop_batch: Annotated[
        int | None,
        typer.Option("--drop-batch", metavar="OFFSET", help="Give up the batch that holds it."),
    ] = None,
    index_interval_bytes: Annotated[
        int, typer.Option("--index-interval-bytes", help="Of indexes that are built again.")
    ] = 4096,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Put a damaged log right; give up only what you name.

    Cuts what an interrupted write left, and rebuilds what is wrong. Bytes that are cut are kept in
    the partition's .stratalog/cut directory.

    \b
    Examples:
      stratalog log repair --dry-run data/orders-0
      stratalog log repair data/orders-0 --drop-batch 4711
    """
    from stratalog.config import TopicConfig
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import one_replica
    from stratalog.storage.repair import RepairRequest
    from stratalog.storage.repairing import Repair

    for name, offset in (("--truncate-at", truncate_at), ("--drop-batch", drop_batch)):
        if offset is not None and offset < 0:
            raise UsageError(f"{name} {offset} is negative; offsets begin at 0.")
    if truncate_at is not None and drop_batch is not None:
        raise UsageError("Give --truncate-at or --drop-batch, one after the other.")
    files = OsFileSystem()
    replica = one_replica(files, partition_of(directory, log_dir, topic, partition))
    config = TopicConfig(index_interval_bytes=index_interval_bytes)
    repairing = Repair(files, replica.directory, config=config)
    request = RepairRequest(reindex, truncate_at, drop_batch)
    told = _Told(output)
    if dry_run:
        with waiting("reading"):
            plan = repairing.plan(request)
        for action in plan.actions:
            told.action(f"would {action}")
        left = []
    else:
        # Once before the lock: a request that cannot be met leaves no lock file behind.
        with waiting("reading"):
            repairing.plan(request)
        with repairing.owned():
            with waiting("reading again, as the owner"):
                plan = repairing.plan(request)
            repairing.run(plan, lambda action: told.action(str(action)))
            with waiting("checking"):
                findings = repairing.look().findings if plan.actions else ()
            left = [str(finding) for finding in findings]
    told.finish(plan, left)
    if plan.decisions or left:
        raise typer.Exit(1)


class _Told:
    """What was done is told when it is done; JSON waits for the whole."""

    def __init__(self, output: OutputFormat) -> None:
        self._is_text = output is OutputFormat.TABLE
        self._actions: list[str] = []

    def action(self, sentence: str) -> None:
        self._actions.append(sentence)
        if self._is_text:
            write_line(sentence)

    def finish(self, plan: "RepairPlan", left: list[str]) -> None:
        if not self._is_text:
            write_json(
                {
                    "directory": plan.directory,
                    "actions": self._actions,
                    "decisions": plan.decisions,
                    "still_wrong": left,
                }
            )
            return
        for decision in plan.decisions:
            write_line(f"for you to decide: {decision}")
        for sentence in left:
            write_line(f"still wrong: {sentence}")
        if not plan.actions and not plan.decisions:
            write_line("nothing to repair")
