"""What runs in tasks may read logs, and has no part that could change one."""

import subprocess
import sys

import pytest

CHANGES_LOGS = (
    "stratalog.storage.log",
    "stratalog.storage.manager",
    "stratalog.storage.commits.committing",
    "stratalog.broker",
    "stratalog.handover",
)


@pytest.mark.parametrize(
    "module", ["stratalog.spark.jobs.verify_tasks", "stratalog.spark.jobs.stats_tasks"]
)
def test_a_task_imports_nothing_that_changes_logs(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert module in done.stdout.split()
    assert [name for name in CHANGES_LOGS if name in done.stdout.split()] == []


def test_a_job_is_a_function_though_a_module_of_its_own_was_imported() -> None:
    import stratalog.spark.jobs
    import stratalog.spark.jobs.verifying

    for name in stratalog.spark.jobs.__all__:
        assert callable(getattr(stratalog.spark.jobs, name)), name
    with pytest.raises(AttributeError, match="burn"):
        stratalog.spark.jobs.burn  # noqa: B018
