"""``stratalog produce`` against a broker of our own."""

import base64
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

# Without waiting for a producer id, which takes the client half a second.
QUICK = ("--acks", "1")


def written(commands: CommandLine, topic: str) -> list[Any]:
    return commands.ok("consume", topic, "--from-beginning", "-e", "-o", "json").json_lines


def test_every_line_is_a_record_and_success_is_silent(commands: CommandLine) -> None:
    commands.ok("topic", "create", "lines")

    ran = commands.ok("produce", "lines", *QUICK, stdin=b"one\ntwo\n\nfour")

    assert (ran.stdout, ran.stderr) == (b"", "")
    assert [each["value"] for each in written(commands, "lines")] == ["one", "two", "", "four"]


def test_keys_headers_and_nulls_are_parsed(commands: CommandLine) -> None:
    commands.ok("topic", "create", "parsed")
    flags = ["--key-separator", "=", "--headers", "--property", "null.marker=-", "-H", "by=test"]

    commands.ok("produce", "--topic", "parsed", *QUICK, *flags, stdin=b"h:1\tk=v=w\nh:-\tk=-\n")

    first, second = written(commands, "parsed")
    assert (first["key"], first["value"]) == ("k", "v=w")
    assert first["headers"] == [{"name": "by", "value": "test"}, {"name": "h", "value": "1"}]
    assert (second["value"], second["headers"][1]) == (None, {"name": "h", "value": None})


def test_a_header_may_be_repeated_as_kafka_has_it(commands: CommandLine) -> None:
    commands.ok("topic", "create", "repeated")

    commands.ok(
        "produce", "repeated", *QUICK, "-H", "h=1", "-H", "i=2", "--header", "h=3=4", stdin=b"v\n"
    )

    (record,) = written(commands, "repeated")
    assert [(each["name"], each["value"]) for each in record["headers"]] == [
        ("h", "1"), ("i", "2"), ("h", "3=4"),
    ]  # fmt: skip


def test_bytes_that_are_no_text_arrive_as_they_are(commands: CommandLine) -> None:
    commands.ok("topic", "create", "binary")
    raw = bytes(byte for byte in range(256) if byte not in b"\n\t")

    commands.ok(
        "produce", "binary", *QUICK, "--key-separator", "\t", stdin=raw + b"\t" + raw + b"\n"
    )
    printed = commands.ok(
        "consume", "binary", "--from-beginning", "-e", "--property", "print.key=true"
    )

    assert printed.stdout == raw + b"\t" + raw + b"\n"
    (record,) = written(commands, "binary")
    assert base64.b64decode(record["value_base64"]) == raw
    assert "value" not in record


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written(commands: CommandLine, codec: str) -> None:
    commands.ok("topic", "create", f"codec-{codec}")

    commands.ok(
        "produce", f"codec-{codec}", *QUICK, "--compression-codec", codec, stdin=b"value\n" * 50
    )

    assert len(written(commands, f"codec-{codec}")) == 50


def test_a_codec_without_a_name_is_gzip(commands: CommandLine) -> None:
    commands.ok("topic", "create", "codec-left-out")

    summary = commands.json(
        "produce", "codec-left-out", "--compression-codec", *QUICK, stdin=b"value\n"
    )

    assert (summary["written"], summary["failed"]) == (1, 0)


@pytest.mark.parametrize("acks", ["0", "1", "-1", "all"])
def test_every_acks_is_written(commands: CommandLine, acks: str) -> None:
    commands.ok("topic", "create", f"acks{acks}")

    commands.ok("produce", f"acks{acks}", "--request-required-acks", acks, stdin=b"a\nb\n")

    assert [each["value"] for each in written(commands, f"acks{acks}")] == ["a", "b"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--command-property", "acks=1"),
        ("--producer-property", "request.required.acks=0"),
        ("--command-property", "retries=0"),
        # What a flag says goes before it, as in Kafka's tool.
        ("--acks", "all", "--command-property", "acks=17"),
        ("--acks", "1", "--command-property", "request.required.acks=all"),
        ("--max-partition-memory-bytes", "1000", "--socket-buffer-size", "65536"),
        ("--metadata-expiry-ms", "60000", "--command-property", "metadata.max.age.ms=none"),
    ],
)
def test_settings_of_the_client_need_not_be_set_twice_to_agree(
    commands: CommandLine, flags: tuple[str, ...]
) -> None:
    commands.ok("topic", "create", "settings", "--if-not-exists")
    before = len(written(commands, "settings"))

    commands.ok("produce", "settings", *flags, stdin=b"a\n")

    assert len(written(commands, "settings")) == before + 1


def test_a_partition_and_a_file_can_be_named(commands: CommandLine, tmp_path: Path) -> None:
    commands.ok("topic", "create", "placed", "--partitions", "3")
    (tmp_path / "lines.txt").write_bytes(b"a\nb\n")

    commands.ok(
        "produce", "placed", *QUICK, "--partition", "2", "--file", str(tmp_path / "lines.txt")
    )

    assert {each["partition"] for each in written(commands, "placed")} == {2}


def test_what_is_refused_is_counted_and_the_rest_is_written(commands: CommandLine) -> None:
    commands.ok("topic", "create", "small", "--config", "max.message.bytes=200")

    ran = commands.run("produce", "small", "--sync", stdin=b"a\n" + b"x" * 500 + b"\nb\n")

    assert (ran.exit_code, ran.stdout) == (1, b"")
    assert "(MSG_SIZE_TOO_LARGE). (1 record)" in ran.stderr
    assert ran.stderr.endswith("1 of 3 records were not written.\n")
    assert [each["value"] for each in written(commands, "small")] == ["a", "b"]


def test_a_partition_that_is_not_there_is_an_error(commands: CommandLine) -> None:
    commands.ok("topic", "create", "narrow")

    ran = commands.run("produce", "narrow", *QUICK, "--partition", "7", "-o", "json", stdin=b"a\n")

    assert (ran.exit_code, ran.json["written"], ran.json["failed"]) == (1, 0, 1)


def test_a_wrong_line_is_told_and_those_before_it_are_written(commands: CommandLine) -> None:
    commands.ok("topic", "create", "half")

    ran = commands.run(
        "produce", "half", *QUICK, "--key-separator", ":", stdin=b"k:v\nwrong\nk:w\n"
    )

    assert (ran.exit_code, ran.stderr) == (1, "Line 2 has no key separator: 'wrong'.\n")
    assert [each["value"] for each in written(commands, "half")] == ["v"]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([], "Which topic?"),
        (["t", "--topic", "t"], "not both"),
        (["t", "--compression-codec", "rar"], "--compression-codec is one of"),
        (["t", "--file", "/nowhere/at/all"], "No such file"),
        (["t", "--producer-property", "linger.ms"], "NAME=VALUE"),
        (["t", "--producer-property", "no.such.setting=1"], "No such configuration property"),
        (["t", "--reader-property", "no.such=1"], "no property no.such"),
    ],
)
def test_options_that_cannot_be_meant_are_one_sentence(
    commands: CommandLine, flags: list[str], reason: str
) -> None:
    said = commands.refused("produce", *flags)

    assert reason in said
    assert "\n" not in said
