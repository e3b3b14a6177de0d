"""Points and spans of time as people read them. Values stay in ms; these are for sentences."""

from datetime import UTC, datetime

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def moment_text(timestamp_ms: int) -> str:
    """``2031-01-01 00:00:00Z``, in UTC; the number itself where no calendar reaches."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
    rest_ms = timestamp_ms % 1000
    fraction = f".{rest_ms:03}" if rest_ms else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}Z"


def span_text(span_ms: int) -> str:
    """``7 d``, ``1 h 30 min``, ``250 ms``: the two largest units that say anything."""
    sign, left = ("-", -span_ms) if span_ms < 0 else ("", span_ms)
    parts = []
    for unit, size_ms in _UNITS:
        count, left = divmod(left, size_ms)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return sign + (" ".join(parts) or "0 ms")
