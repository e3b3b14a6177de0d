"""The first batch that ends at an offset or later is found wherever one looks first, also between
messages of the old formats, whose headers tell less than those of batches."""

from cleaning_steps import Append, RaiseStart, Roll, RowSpec, Step
from cleaning_world import World
from hypothesis import example, given
from random_histories import histories

from stratalog.records import Codec

ROW = RowSpec(key=0)
BATCH_BEFORE_OLD_MESSAGES = [
    Append(rows=(ROW,) * 5, codec=Codec.NONE),
    Append(rows=(ROW,), codec=Codec.GZIP, magic=0),
    Append(rows=(ROW,) * 3, codec=Codec.GZIP, magic=1),
    Append(rows=(ROW,), codec=Codec.NONE),
    RaiseStart(part=28),
    Roll(),
]


@given(steps=histories(with_legacy=True))
@example(steps=BATCH_BEFORE_OLD_MESSAGES)
def test_every_offset_is_found_in_whatever_order_they_are_asked_for(steps: list[Step]) -> None:
    log = World().run(steps).log
    for segment in log.segments:
        headers = list(segment.headers())
        if not headers:
            continue
        offsets = range(segment.base_offset, headers[-1].last_offset + 1)
        for asked in (offsets, reversed(offsets), offsets):
            for offset in asked:
                first = next(each for each in headers if each.last_offset >= offset)
                found = segment.find(offset)
                assert found is not None
                assert found.position == first.position, offset
