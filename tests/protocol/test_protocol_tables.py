"""Keys, versions and error codes, and the generated modules, against where they come from."""

import subprocess
import sys
from pathlib import Path

import pytest

from stratalog.protocol.api import ADVERTISED, FIRST_FLEXIBLE, ApiKey
from stratalog.protocol.error_codes import ErrorCode

ROOT = Path(__file__).parents[2]


def test_what_is_committed_is_what_the_generator_makes() -> None:
    pytest.importorskip("kio")
    command = [sys.executable, "-m", "protocol_generator", "--check"]

    done = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_keys_and_error_codes_have_kafkas_numbers() -> None:
    pytest.importorskip("kio")
    from kio.schema.errors import ErrorCode as KioErrorCode
    from kio.schema.index import api_key_map

    errors = {error.name: int(error) for error in ErrorCode}
    assert errors.items() >= {error.name.upper(): int(error) for error in KioErrorCode}.items()
    keys = {key.name.lower(): int(key) for key in ApiKey}
    assert keys.items() >= {name: key for key, name in api_key_map.items()}.items()


def test_the_newest_codes_are_there() -> None:
    assert list(ErrorCode) == list(range(-1, 134))


def test_flexible_versions_begin_where_kafkas_do() -> None:
    names = ("PRODUCE", "FETCH", "LIST_OFFSETS", "METADATA", "JOIN_GROUP", "API_VERSIONS")

    assert [FIRST_FLEXIBLE[ApiKey[name]] for name in names] == [9, 12, 6, 9, 6, 3]
    for never in (ApiKey.SASL_HANDSHAKE, ApiKey.OFFSET_DELETE):
        assert FIRST_FLEXIBLE[never] > ADVERTISED[never].highest


def test_what_old_clients_ask_for_is_advertised() -> None:
    oldest = {
        ApiKey.PRODUCE: 0,
        ApiKey.METADATA: 0,
        ApiKey.FIND_COORDINATOR: 0,
        ApiKey.JOIN_GROUP: 0,
        ApiKey.INIT_PRODUCER_ID: 0,
        ApiKey.ALTER_CONFIGS: 0,
    }

    assert {key: ADVERTISED[key].lowest for key in oldest} == oldest
    assert ADVERTISED[ApiKey.FETCH].highest >= 17
    assert ADVERTISED[ApiKey.INIT_PRODUCER_ID].highest == 5
    assert not {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY} & ADVERTISED.keys()
