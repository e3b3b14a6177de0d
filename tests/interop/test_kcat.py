"""kcat, over the librdkafka of its Debian package, which is years older than confluent-kafka's."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from tools_brokers import ours
from tools_fetched import Command, ToolUnavailableError, kcat

pytestmark = pytest.mark.interop

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


class Kcat:
    """The program, for one broker."""

    def __init__(self, command: Command, bootstrap_server: str) -> None:
        self._command = command
        self.bootstrap_server = bootstrap_server

    def run(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._command.words, "-b", self.bootstrap_server, *arguments],
            env=dict(self._command.environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    def produce(self, topic: str, lines: list[str], *arguments: str) -> None:
        text = "".join(f"{line}\n" for line in lines)
        self.run("-P", "-t", topic, *arguments, stdin=text)

    def consume(self, topic: str, *arguments: str) -> list[str]:
        """All that is there, to the end."""
        # Told at once that there is no more: half a second's wait each would be most of the test.
        quick = ["-X", "fetch.wait.max.ms=10"]
        return self.run("-C", "-t", topic, "-e", "-q", *quick, *arguments).splitlines()


@pytest.fixture(scope="module")
def program() -> Command:
    try:
        return kcat()
    except ToolUnavailableError as error:
        pytest.skip(f"kcat cannot be had here: {error}")


@pytest.fixture(scope="module")
def client(program: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kcat]:
    with ours(tmp_path_factory.mktemp("kcat"), auto_create_topics_enable="true") as address:
        yield Kcat(program, address)


@pytest.mark.parametrize("codec", CODECS)
def test_lines_pass_in_every_codec(client: Kcat, codec: str) -> None:
    lines = [f"{number} {'x' * 50}" for number in range(1000)]
    client.produce(f"codec-{codec}", lines, "-z", codec, "-p", "0")
    assert client.consume(f"codec-{codec}") == lines


def test_an_idempotent_producer_is_served(client: Kcat) -> None:
    lines = [str(number) for number in range(1000)]
    client.produce("idempotent", lines, "-X", "enable.idempotence=true", "-X", "linger.ms=1")
    assert client.consume("idempotent") == lines


def test_keys_headers_and_tombstones_come_back(client: Kcat) -> None:
    client.produce("rich", ["k:v", "empty:"], "-K:", "-Z", "-H", "h=1", "-H", "g=two")
    shown = [json.loads(line) for line in client.consume("rich", "-J")]
    assert [(each["offset"], each["key"], each["payload"]) for each in shown] == [
        (0, "k", "v"),
        (1, "empty", None),
    ]
    assert all(each["headers"] == ["h", "1", "g", "two"] for each in shown)


def test_the_words_for_offsets_are_understood(client: Kcat) -> None:
    client.produce("places", list("abcdefgh"), "-p", "0")
    stamps = client.consume("places", "-f", "%T\n")
    assert client.consume("places", "-o", "beginning") == list("abcdefgh")
    assert client.consume("places", "-o", "end") == []
    assert client.consume("places", "-o", "5") == list("fgh")
    assert client.consume("places", "-p", "0", "-o", "-2") == list("gh")
    assert client.consume("places", "-o", f"s@{stamps[0]}") == list("abcdefgh")
    assert client.consume("places", "-o", f"s@{int(stamps[-1]) + 1}") == []
    assert client.consume("places", "-p", "0", "-o", "2", "-c", "3") == list("cde")


def test_metadata_and_offsets_by_time_are_asked_for(client: Kcat) -> None:
    client.produce("asked", ["a", "b"], "-p", "0")
    told = json.loads(client.run("-L", "-J", "-t", "asked"))
    (stamp, *_) = client.consume("asked", "-f", "%T\n")
    found = [client.run("-Q", "-t", f"asked:0:{time}") for time in (stamp, "-1", "-2")]
    assert [topic["topic"] for topic in told["topics"]] == ["asked"]
    assert told["brokers"][0]["name"] == client.bootstrap_server
    assert found == ["asked [0] offset 0\n", "asked [0] offset 2\n", "asked [0] offset 0\n"]


def test_a_group_reads_on_from_what_it_committed(client: Kcat) -> None:
    client.produce("grouped", [str(number) for number in range(10)])
    options = ["-X", "auto.offset.reset=earliest", "-q", "-G", "readers", "grouped"]
    first = client.run("-c", "6", *options).split()
    second = client.run("-e", *options).split()
    assert first == [str(number) for number in range(6)]
    assert second == [str(number) for number in range(6, 10)]
