"""``stratalog log dump``: what is in the files of a segment, as kafka-dump-log prints it.

Same flags, same lines, same exit codes. Where Kafka's tool ends in a stack trace, this ends in one
sentence, also with exit code 1. Nothing is created or changed.
"""

import re
from dataclasses import dataclass
from typing import Annotated

import typer

from stratalog.cli.failures import UsageError
from stratalog.cli.output import OutputFormat, OutputOption, write_line

MAX_BYTES = 2**31 - 1


def _show_version(asked: bool) -> None:
    if asked:
        from stratalog import __version__

        write_line(f"stratalog {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
]


@dataclass(frozen=True, slots=True)
class DumpOptions:
    print_data_log: bool = False
    deep_iteration: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    skip_record_metadata: bool = False
    max_message_size: int = 5 * 1024 * 1024
    max_bytes: int = MAX_BYTES

    @property
    def is_deep(self) -> bool:
        return self.deep_iteration or self.print_data_log


def dump(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="The files to print.")
    ] = None,
    files: Annotated[
        str, typer.Option("--files", metavar="FILE,FILE", help="The same, as a comma list.")
    ] = "",
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Show keys and values.")
    ] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Show records, not only batches.")
    ] = False,
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check index entries, do not show them.")
    ] = False,
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="Only what Kafka checks of an index.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Show contents of records only.")
    ] = False,
    max_message_size: Annotated[
        int, typer.Option("--max-message-size", help="Of the batch an index entry points to.")
    ] = 5 * 1024 * 1024,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", help="Read only this much of each .log.")
    ] = MAX_BYTES,
    key_decoder_class: Annotated[
        str, typer.Option("--key-decoder-class", help="String, Integer or LongDecoder.")
    ] = "",
    value_decoder_class: Annotated[
        str, typer.Option("--value-decoder-class", help="String, Integer or LongDecoder.")
    ] = "",
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="Records of __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Records of __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Records of __cluster_metadata.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool,
        typer.Option("--remote-log-metadata-decoder", help="Records of __remote_log_metadata."),
    ] = False,
    share_group_state_decoder: Annotated[
        bool, typer.Option("--share-group-state-decoder", help="Records of __share_group_state.")
    ] = False,
    version: VersionOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print what is in segment, index and snapshot files.

    The flags, lines and exit codes of kafka-dump-log, for .log, .index, .timeindex, .txnindex,
    .snapshot and .checkpoint files.

    \b
    Examples:
      stratalog log dump data/orders-0/00000000000000000000.log
      stratalog log dump --print-data-log data/orders-0/00000000000000000000.log
      stratalog log dump --offsets-decoder data/__consumer_offsets-0/00000000000000000000.log
    """
    from stratalog.cli import dump_decoders as decoders
    from stratalog.cli.dump_output import JsonOutput, TextOutput

    targets = [path for path in (*(paths or []), *files.split(",")) if path]
    if not targets:
        raise UsageError("No files were named: give them as arguments or as --files a,b.")
    if max_bytes < 0 or max_message_size < 0:
        raise UsageError("--max-bytes and --max-message-size cannot be negative.")
    chosen = [
        decoder
        for is_given, decoder in (
            (offsets_decoder, decoders.offsets_decoder),
            (transaction_log_decoder, decoders.transaction_decoder),
            (cluster_metadata_decoder, decoders.cluster_metadata_decoder),
            (remote_log_metadata_decoder, decoders.remote_log_metadata_decoder),
            (share_group_state_decoder, decoders.share_group_decoder),
        )
        if is_given
    ]
    options = DumpOptions(
        print_data_log=bool(print_data_log or chosen or key_decoder_class or value_decoder_class),
        deep_iteration=deep_iteration,
        verify_index_only=verify_index_only,
        index_sanity_check=index_sanity_check,
        skip_record_metadata=skip_record_metadata,
        max_message_size=max_message_size,
        max_bytes=min(max_bytes, MAX_BYTES),
    )
    from stratalog.cli.dump_files import Dumper

    # Kafka's tool takes the first of several decoders, too.
    decoder = (
        chosen[0]
        if chosen
        else decoders.class_decoder(
            key_decoder_class or decoders.STRING_DECODER,
            value_decoder_class or decoders.STRING_DECODER,
        )
    )
    sink = JsonOutput() if output is OutputFormat.JSON else TextOutput()
    Dumper(options, decoder, sink).run([_normal(path) for path in targets])


def _normal(path: str) -> str:
    """A path as Java prints it: without doubled or trailing slashes."""
    return re.sub("/+", "/", path).rstrip("/") or "/"
