"""The texts of a backup's manifest: those of files may hold any name, the others are characters."""

import json
from typing import Any

import pytest

from stratalog.storage.backup.errors import BackupDamagedError
from stratalog.storage.backup.manifest import (
    BackupManifest,
    BackupSource,
    TopicBackup,
    decode_manifest,
)
from stratalog.storage.json_fields import digest_of


def manifest(**source: str) -> BackupManifest:
    return BackupManifest(
        backup_id="20261116T094500123Z-3fa2c1d0",
        created_ms=1,
        source=BackupSource(**{"path": "/data", **source}),  # type: ignore[arg-type]
        topics=(
            TopicBackup(name="t", topic_id="", partition_count=1, configs=None, partitions=()),
        ),
        notes=("a note of /data/\udcff",),
    )


def changed(**change: Any) -> bytes:
    """Sealed again: whoever changed it knew how."""
    body = {**json.loads(manifest().encode()), **change}
    del body["digest"]
    return json.dumps({**body, "digest": digest_of(body)}).encode()


def test_a_directory_whose_name_is_not_utf_8_can_be_backed_up_and_restored() -> None:
    given = manifest(path="/data/\udcff")  # as Python has the byte FF

    assert decode_manifest("m.json", given.encode()) == given


@pytest.mark.parametrize("field", ["cluster_id", "directory_id", "owner"])
def test_half_a_character_elsewhere_is_refused_in_a_sentence_that_can_be_told(field: str) -> None:
    with pytest.raises(BackupDamagedError, match=field) as raised:
        decode_manifest("m.json", manifest(**{field: "\ud800"}).encode())
    assert str(raised.value).encode()


def test_brackets_in_brackets_of_any_depth_are_refused() -> None:
    for depth in range(800, 1_001):
        with pytest.raises(BackupDamagedError):
            decode_manifest("m.json", b'{"version": 1, "x": %s}' % (b"[" * depth + b"]" * depth))


def test_a_note_that_is_no_text_is_none() -> None:
    assert decode_manifest("m.json", changed(notes=["a", [[1]], 2])).notes == ("a",)


def test_a_manifest_of_a_version_that_did_not_note_configs_of_brokers_or_apps_is_read() -> None:
    body = json.loads(manifest().encode())
    del body["digest"], body["broker_configs"], body["app_versions"]
    content = json.dumps({**body, "digest": digest_of(body)}).encode()

    assert decode_manifest("m.json", content) == manifest()
