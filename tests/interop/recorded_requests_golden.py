"""Apache Kafka's answers, kept in the repository, and how ours are held against them.

``python tests/interop/recorded_requests_golden.py`` asks Apache Kafka again and writes the file.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import recorded_requests_changes
import recorded_requests_configs
import recorded_requests_data
import recorded_requests_fetch
import recorded_requests_frames
import recorded_requests_groups
import recorded_requests_offsets
import recorded_requests_rebalances
import recorded_requests_small
import recorded_requests_topics
from apache_kafka import KafkaBroker, KafkaDistribution
from recorded_requests import BROKER_CONFIGS, Scenario, replay
from recorded_requests_plain import Plain

GOLDEN = Path(__file__).resolve().parent / "golden" / "answers.json"

SCENARIOS: dict[str, Scenario] = {
    "no-coordinator": recorded_requests_groups.no_coordinator,  # before any other looks for one
    **recorded_requests_frames.SCENARIOS,
    **recorded_requests_topics.SCENARIOS,
    **recorded_requests_configs.SCENARIOS,
    **recorded_requests_data.SCENARIOS,
    **recorded_requests_fetch.SCENARIOS,
    **recorded_requests_groups.SCENARIOS,
    **recorded_requests_rebalances.SCENARIOS,
    **recorded_requests_offsets.SCENARIOS,
    **recorded_requests_changes.SCENARIOS,
    **recorded_requests_small.SCENARIOS,
}

ABSENT = "<absent>"

Answers = dict[str, dict[str, Plain]]

_SHARED_FIELDS = 15
_VERSION = re.compile(r"(\w+) v(\d+)( .*)")


class Disagreement(NamedTuple):
    """A field of an answer that is not the same in both."""

    step: str
    path: str
    kafka: Plain
    ours: Plain

    def __str__(self) -> str:
        return f"{self.step}: {self.path}: Kafka {_short(self.kafka)}, we {_short(self.ours)}"


def _short(value: Plain) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 160 else f"{text[:150]}…"


def load() -> Answers:
    """Apache Kafka's answers, by scenario and step."""
    kept = json.loads(GOLDEN.read_text())
    answers: Answers = {}
    for scenario, steps in kept["answers"].items():
        answers[scenario] = {}
        for step, by_version in steps.items():
            for versions, answer in by_version.items():
                for version in versions.split(","):
                    name = step.replace(" v*", f" v{version}")
                    answers[scenario][name] = _unshared(answer, kept["shared"])
    return answers


def save(answers: Answers) -> None:
    """Versions with the same answer share a line, so that a changed answer is a changed line.

    The long lists of configs, which many answers have in common, are kept once.
    """
    shared: dict[str, Plain] = {}
    names: dict[str, str] = {}
    scenarios = []
    for scenario, steps in answers.items():
        lines = []
        for step, by_version in _by_version(steps).items():
            kept = {
                versions: _shared(answer, shared, names) for versions, answer in by_version.items()
            }
            lines.append(f"{_text(step)}: {_lines(kept, 4)}")
        scenarios.append(f"{_text(scenario)}: {{\n  " + ",\n  ".join(lines) + "\n}")
    everything = "{\n" + ",\n".join(scenarios) + "\n}"
    GOLDEN.write_text(f'{{\n"shared": {_lines(shared, 2)},\n"answers": {everything}\n}}\n')


def _text(value: Plain) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(entries: dict[str, Plain], indent: int) -> str:
    """An object, an entry a line."""
    space = " " * indent
    lines = [f"{space}{_text(name)}: {_text(entry)}" for name, entry in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n" + space[2:] + "}"


def _shared(value: Plain, shared: dict[str, Plain], names: dict[str, str]) -> Plain:
    if isinstance(value, list):
        return [_shared(item, shared, names) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) < _SHARED_FIELDS:
        return {name: _shared(item, shared, names) for name, item in value.items()}
    text = _text(value)
    if text not in names:
        names[text] = f"@{len(names) + 1}"
        shared[names[text]] = value
    return names[text]


def _unshared(value: Plain, shared: dict[str, Plain]) -> Plain:
    if isinstance(value, list):
        return [_unshared(item, shared) for item in value]
    if isinstance(value, dict):
        return {name: _unshared(item, shared) for name, item in value.items()}
    return shared.get(value, value) if isinstance(value, str) else value


def _by_version(steps: dict[str, Plain]) -> dict[str, dict[str, Plain]]:
    """By step without its version: the answers, each with the versions that had it."""
    found: dict[str, list[tuple[list[str], Plain]]] = {}
    for step, answer in steps.items():
        match = _VERSION.match(step)
        name = f"{match[1]} v*{match[3]}" if match else step
        version = match[2] if match else ""
        runs = found.setdefault(name, [])
        for versions, known in runs:
            if known == answer:
                versions.append(version)
                break
        else:
            runs.append(([version], answer))
    return {
        name: {",".join(versions): answer for versions, answer in runs}
        for name, runs in found.items()
    }


def compare(kafka: Answers, ours: Answers) -> list[Disagreement]:
    """Every field that differs, and every step that only one of them has."""
    found: list[Disagreement] = []
    for scenario in kafka | ours:
        theirs, mine = kafka.get(scenario, {}), ours.get(scenario, {})
        for step in theirs | mine:
            name = f"{scenario}/{step}"
            if step not in theirs or step not in mine:
                found.append(Disagreement(name, "", theirs.get(step), mine.get(step)))
            else:
                found += _compare(name, "", theirs[step], mine[step])
    return found


def _compare(step: str, path: str, kafka: Plain, ours: Plain) -> list[Disagreement]:
    if kafka == ours:
        return []
    found: list[Disagreement] = []
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in kafka | ours:
            inner = f"{path}.{name}" if path else name
            found += _compare(step, inner, kafka.get(name, ABSENT), ours.get(name, ABSENT))
        return found
    if isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for index, (theirs, mine) in enumerate(zip(kafka, ours, strict=True)):
            found += _compare(step, f"{path}[{index}]", theirs, mine)
        return found
    return [Disagreement(step, path, kafka, ours)]


def ask_kafka(
    distribution: KafkaDistribution, directory: Path, scenarios: dict[str, Scenario]
) -> Answers:
    """Apache Kafka's answers, of a new cluster of one broker."""
    with KafkaBroker(distribution, directory, BROKER_CONFIGS) as broker:
        return replay(scenarios, "127.0.0.1", broker.port)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work_dir:
        save(ask_kafka(KafkaDistribution.resolve(), Path(work_dir), SCENARIOS))
    sys.stdout.write(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes\n")
