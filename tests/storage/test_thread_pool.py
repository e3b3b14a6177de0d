"""Thread pools that either have all of their threads or are not there."""

import threading

import pytest

from stratalog.storage.thread_pool import started_pool


@pytest.mark.parametrize("threads", [1, 3])
def test_all_threads_run_before_the_first_job(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    with started_pool(threads, "ours", lambda: begun.append(threading.get_ident())) as pool:
        assert len(set(begun)) == threads
        monkeypatch.setattr(threading.Thread, "start", refuse)
        jobs = [pool.submit(lambda number=number: number) for number in range(20)]  # type: ignore[misc]
        assert [job.result(60) for job in jobs] == list(range(20))


@pytest.mark.parametrize("allowed", [0, 2])
def test_where_there_are_too_few_threads_none_stays(
    allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def start_some(thread: threading.Thread) -> None:
        if len(started) == allowed:
            refuse(thread)
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(RuntimeError, match="new thread"):
        started_pool(3)
    for thread in started:
        thread.join(60)
    assert not any(thread.is_alive() for thread in started)


def refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
