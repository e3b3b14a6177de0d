"""Write src/stratalog/protocol/messages from Kafka's message schemas, as kio ships them.

    PYTHONPATH=tools python -m protocol_generator [--check]

With ``--check`` nothing is written; the exit status says whether what is there is what would be
written.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from protocol_generator.modules import Api, module_source, read_api, read_data

ROOT = Path(__file__).resolve().parents[2]

# The APIs that are spoken, with the versions that have a codec. What is advertised is decided
# where it is served; these are Kafka 4.3's ranges, except that InitProducerId 6 is not final
# there and AddPartitionsToTxn 4 and later is only spoken between brokers.
APIS = {
    0: (3, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 3),
    25: (0, 4),
    26: (0, 5),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    50: (0, 0),
    55: (0, 2),
    60: (0, 2),
    61: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
}

# What consumers put into JoinGroup and SyncGroup, of which a broker passes on the bytes but reads
# the topics. A newer client may append fields to it, so bytes may follow what is known.
DATA = {
    "consumer_protocol_assignment": (0, 3),
    "consumer_protocol_subscription": (0, 3),
}

INDEX_HEAD = '''"""Which module has an API's codecs, for which versions, flexible from which on.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from typing import Final, NamedTuple


class CodecRange(NamedTuple):
    module: str
    lowest_version: int
    highest_version: int
    first_flexible_version: int | None


CODECS: Final[dict[int, CodecRange]] = {
'''


def write(target: Path) -> None:
    apis = [read_api(key, *versions) for key, versions in APIS.items()]
    data = [read_data(name, *versions) for name, versions in DATA.items()]
    for api in [*apis, *data]:
        (target / f"{api.name}.py").write_text(module_source(api))
    (target / "index.py").write_text(index_source(apis))
    (target / "__init__.py").write_text(
        '"""Generated: one module an API, imported when first needed; see index.py."""\n'
    )
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(ROOT / "pyproject.toml")]
    for step in (["check", "--fix", "--select", "I", "--quiet"], ["format", "--quiet"]):
        subprocess.run([*ruff, *step, *config, "--no-cache", str(target)], check=True)


def index_source(apis: list[Api]) -> str:
    lines = []
    for api in apis:
        versions = api.messages["request"]
        values = f'"{api.name}", {min(versions)}, {max(versions)}, {api.first_flexible}'
        lines.append(f"    {api.api_key}: CodecRange({values}),\n")
    return INDEX_HEAD + "".join(lines) + "}\n"


def differences(made: Path, kept: Path) -> list[str]:
    names = {path.name for folder in (made, kept) for path in folder.glob("*.py")}
    return sorted(name for name in names if _text(made / name) != _text(kept / name))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def main() -> int:
    kept = ROOT / "src/stratalog/protocol/messages"
    if "--check" not in sys.argv[1:]:
        write(kept)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        stale = differences(Path(folder), kept)
    for name in stale:
        sys.stderr.write(f"{name} is not what the generator makes: run make protocol\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
