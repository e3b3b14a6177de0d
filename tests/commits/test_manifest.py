"""Manifests: what was made is what is read, and nothing else is believed."""

import copy
import hashlib
import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from staging_harness import DIRECTORY, LOG_DIR, NOW_MS, batch, manifest_of, new_disk, stage, topic

from stratalog.storage.commits.checking import check_partition
from stratalog.storage.commits.errors import CommitError, ManifestError, StagedFileError
from stratalog.storage.commits.manifest import (
    CONTENT_BYTES_MAX,
    EPOCH_MAX,
    OFFSET_MAX,
    AppVersion,
    CommitKind,
    Manifest,
    PartitionManifest,
    Replacement,
    SourceSegment,
    StagedFile,
    decode_manifest,
    parse_manifest,
    stream_id,
)

numbers = st.integers(0, 2**63 - 1)
offsets = st.integers(0, OFFSET_MAX)
epochs = st.integers(0, EPOCH_MAX)
texts = st.text(max_size=20)
staged_files = st.builds(
    StagedFile,
    name=st.from_regex(r"[0-9a-z][0-9a-z-]{0,20}\.log", fullmatch=True),
    size_bytes=numbers,
    record_count=numbers,
    digest=st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
    base_offset=offsets,
    has_aborts=st.booleans(),
)
sources = st.builds(
    SourceSegment,
    base_offset=offsets,
    size_bytes=offsets,
    last_offset=st.integers(-1, 2**63 - 1),
    last_crc=st.integers(0, 2**32 - 1),
)
replacements = st.builds(
    Replacement, sources=st.lists(sources, min_size=1, max_size=3).map(tuple), file=staged_files
)


@st.composite
def partitions(draw: st.DrawFn, kind: CommitKind, number: int) -> PartitionManifest:
    names: set[str] = set()

    def once(files: list[Any]) -> tuple[Any, ...]:
        kept = []
        for each in files:
            name = each.file.name if isinstance(each, Replacement) else each.name
            if name not in names:
                names.add(name)
                kept.append(each)
        return tuple(kept)

    is_replacing = kind is CommitKind.REPLACE
    some = st.lists(replacements if is_replacing else staged_files, min_size=1, max_size=3)
    found = once(draw(some))
    return PartitionManifest(
        topic=draw(st.from_regex(r"[a-zA-Z0-9_-]{1,249}", fullmatch=True)),
        partition=number,
        topic_id=draw(texts),
        files=() if is_replacing else found,
        groups=found if is_replacing else (),
        cleaned_to=draw(st.integers(-1, OFFSET_MAX)),
        log_start_offset=draw(offsets),
        epochs=draw(st.lists(st.tuples(epochs, offsets), max_size=3).map(tuple)),
    )


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    kind = draw(st.sampled_from(CommitKind))
    apps = st.builds(AppVersion, name=st.text(min_size=1, max_size=20), version=numbers)
    return Manifest(
        manifest_id=draw(st.from_regex(r"[0-9A-Za-z._:-]{1,200}", fullmatch=True)),
        kind=kind,
        staging_id=draw(st.from_regex(r"[0-9a-f]{32}", fullmatch=True)),
        partitions=tuple(draw(partitions(kind, n)) for n in range(draw(st.integers(1, 3)))),
        app=draw(st.none() | apps),
        holder=draw(texts),
        directory_id=draw(texts),
    )


@given(manifests())
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest) -> None:
    assert decode_manifest(manifest.encode()) == manifest
    assert parse_manifest(json.loads(json.dumps(manifest.to_json()))) == manifest


# --- changed ----------------------------------------------------------------------------------

Place = tuple[str | int, ...]
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from((-1, 0, 1, 2**31, 2**63 - 1, 2**63, 10**40))
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(
        ("..", "../x.log", "/etc/passwd", "x/y.log", "a\0.log", ".log", "\ud800", "x.log")
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
# What names a commit says nothing about its files: another value is another manifest.
NAMES = {"id", "holder", "directory_id", "app", "topic_id"}


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Of everything in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*place, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*place, key))


def put(value: Any, place: Place, new: Any) -> Any:
    """A copy with another value there; or without it, if that is ``put`` itself."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if new is put:
        del inner[place[-1]]
    else:
        inner[place[-1]] = new
    return changed


def sealed(body: dict[str, Any]) -> dict[str, Any]:
    """With the digest that whoever tampers with a manifest can make as well."""
    rest = {name: each for name, each in body.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return {**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}


FILES = new_disk("/logs/orders-1")
STAGED = stage(FILES, [batch(2), batch(3)], [batch(1)])
GOOD = json.loads(manifest_of(STAGED).encode())


def check_all(value: Any) -> None:
    manifest = parse_manifest(value)
    for part in manifest:
        check_partition(
            FILES.clone(),
            f"{LOG_DIR}/{part.topic_partition}",
            part,
            topic(),
            staging_id=manifest.staging_id,
            now_ms=NOW_MS,
            append_max_bytes=1 << 20,
        )


def test_what_was_not_changed_is_taken() -> None:
    check_all(GOOD)
    check_all(sealed(GOOD))


@given(st.sampled_from(list(places(GOOD))), values | st.just(put))
def test_any_change_is_refused(place: Place, new: Any) -> None:
    tampered = put(GOOD, place, new)
    assume(json.dumps(tampered) != json.dumps(GOOD))

    with pytest.raises(ManifestError) as caught:
        parse_manifest(tampered)

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ManifestError):
        decode_manifest(json.dumps(tampered).encode())


@given(st.sampled_from(list(places(GOOD))), values | st.just(put))
def test_a_change_with_a_digest_of_its_own_is_refused_by_what_the_files_say(
    place: Place, new: Any
) -> None:
    tampered = put(GOOD, place, new)
    assume(json.dumps(tampered) != json.dumps(GOOD))
    try:
        check_all(sealed(tampered))
    except (ManifestError, StagedFileError):
        return
    is_a_name = any(key in NAMES for key in place)
    # Fewer files, or what nobody asks for, is another manifest as well.
    is_left_out = new is put or place[-1] == "digest"
    assert is_a_name or is_left_out, f"{place} may be {new!r}"


@pytest.mark.parametrize("field", ["size_bytes", "record_count", "digest", "name"])
def test_each_field_of_a_file_counts(field: str) -> None:
    old = GOOD["partitions"][0]["files"][0][field]
    new = old + 1 if isinstance(old, int) else old.replace("0", "1")
    tampered = put(GOOD, ("partitions", 0, "files", 0, field), new)

    with pytest.raises(StagedFileError):
        check_all(sealed(tampered))


def test_files_of_another_partition_are_not_found() -> None:
    with pytest.raises(StagedFileError, match=r"orders-1.*swept away"):
        check_all(sealed(put(GOOD, ("partitions", 0, "partition"), 1)))


@pytest.mark.parametrize(
    "name",
    [
        "../x.log",
        "a/b.log",
        "/x.log",
        ".log",
        "x",
        "X.log",
        "x.log\n",
        "merged.00000.log",
        "x.index",
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ManifestError, match="does not look like one"):
        parse_manifest(sealed(put(GOOD, ("partitions", 0, "files", 0, "name"), name)))


@pytest.mark.parametrize(
    "staging", ["..", "../../orders-1", "5F" * 16, "5f" * 15, "5f" * 16 + "\n"]
)
def test_a_staging_id_that_could_lead_elsewhere_is_refused(staging: str) -> None:
    with pytest.raises(ManifestError, match="does not look like one"):
        parse_manifest(sealed({**GOOD, "staging": staging}))


@pytest.mark.parametrize("part", ["files", "partitions"])
def test_nothing_is_named_twice(part: str) -> None:
    place: Place = ("partitions", 0, "files") if part == "files" else ("partitions",)
    twice = GOOD["partitions"][0]["files"] if part == "files" else GOOD["partitions"]

    with pytest.raises(ManifestError, match="twice"):
        parse_manifest(sealed(put(GOOD, place, [*twice, twice[0]])))


def test_a_manifest_of_a_later_version_is_not_guessed_at() -> None:
    with pytest.raises(ManifestError, match="its version is 2; this is written for version 1"):
        parse_manifest(sealed({**GOOD, "version": 2}))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff", b"NaN"])
def test_bytes_that_are_no_manifest_are_refused(content: bytes) -> None:
    with pytest.raises(ManifestError):
        decode_manifest(content)


@pytest.mark.parametrize("depth", [100, 500, 900, 990, 5_000, 200_000])
@pytest.mark.parametrize("field", ["id", "version", "topic", "x"])
def test_brackets_in_brackets_are_refused(depth: int, field: str) -> None:
    nested = b"[" * depth + b"]" * depth
    content = b'{"version": 1, "%s": %s}' % (field.encode(), nested)

    with pytest.raises(ManifestError):
        decode_manifest(content)


def test_brackets_that_can_just_be_read_are_refused_too() -> None:
    depths = range(800, 1_001)
    for content in (b'{"version": 1, "x": %s}' % (b"[" * n + b"]" * n) for n in depths):
        with pytest.raises(ManifestError):
            decode_manifest(content)


@pytest.mark.parametrize("field", ["id", "kind", "staging", "holder", "directory_id"])
def test_half_a_character_is_refused_in_a_sentence_that_can_be_told(field: str) -> None:
    with pytest.raises(ManifestError) as raised:
        parse_manifest(sealed({**GOOD, field: "\ud800"}))
    assert str(raised.value).encode()
    assert field in str(raised.value)


@pytest.mark.parametrize("field", ["topic", "topic_id"])
def test_half_a_character_in_a_partition_is_refused_as_well(field: str) -> None:
    part = {**GOOD["partitions"][0], field: "orders\udfff" * 30}
    with pytest.raises(ManifestError) as raised:
        parse_manifest(sealed({**GOOD, "partitions": [part]}))
    assert str(raised.value).encode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"epochs": [[2**31 - 1, 0]]}, "is no epoch and its first offset"),
        ({"epochs": [[-1, 0]]}, "is no epoch and its first offset"),
        ({"epochs": [[0, 2**62 + 1]]}, "is no epoch and its first offset"),
        ({"epochs": [[0, True]]}, "an epoch is not"),
        ({"log_start_offset": 2**63 - 1}, "log_start_offset is 9223372036854775807, more than"),
        ({"cleaned_to": 2**63 - 1}, "cleaned_to is 9223372036854775807, more than"),
    ],
)
def test_epochs_and_offsets_behind_which_no_log_could_go_on_are_refused(
    change: dict[str, Any], reason: str
) -> None:
    part = {**GOOD["partitions"][0], **change}
    with pytest.raises(ManifestError, match=reason):
        parse_manifest(sealed({**GOOD, "partitions": [part]}))


def test_numbers_of_many_digits_are_refused() -> None:
    for digits in (100, 4_301, 100_000):
        with pytest.raises(ManifestError):
            decode_manifest(b'{"version": %s}' % (b"9" * digits))


def test_more_than_a_manifest_can_have_is_not_parsed() -> None:
    with pytest.raises(ManifestError, match="more than"):
        decode_manifest(bytes(CONTENT_BYTES_MAX + 1))


def test_a_manifest_says_who_it_is_in_what_it_refuses() -> None:
    with pytest.raises(CommitError, match="manifest load-1: its digest does not match"):
        parse_manifest({**GOOD, "holder": "somebody else"})


def test_a_stream_is_named_by_its_query_and_batch() -> None:
    manifest = Manifest(
        manifest_id=stream_id("7c0e-11", 17),
        kind=CommitKind.APPEND,
        staging_id="0" * 32,
        partitions=manifest_of(STAGED).partitions,
        app=AppVersion(name="7c0e-11", version=17),
    )

    assert decode_manifest(manifest.encode()).app == AppVersion(name="7c0e-11", version=17)
    assert manifest.partitions[0].size_bytes == sum(each.size_bytes for each in STAGED)
    assert manifest.partitions[0].record_count == 6
    assert f"{LOG_DIR}/{manifest.partitions[0].topic_partition}" == DIRECTORY
