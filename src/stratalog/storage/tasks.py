"""What a log manager does again and again, by Kafka's names and settings."""

from typing import TYPE_CHECKING

from stratalog.config import BrokerConfig
from stratalog.storage.commits.committing import SWEEP_MS
from stratalog.storage.directory import LogDirectory
from stratalog.storage.log_leases import LOOK_MS

if TYPE_CHECKING:
    from stratalog.storage.manager import LogManager

SPACE_CHECK_MS = 1_000


def schedule_tasks(manager: "LogManager") -> None:
    """Let the manager's schedule run its tasks."""
    config, schedule = manager.config, manager.schedule
    now_ms = manager.clock.now_ms()
    later_ms = now_ms + config.log_initial_task_delay_ms
    for name, run, first_ms, period_ms in (
        (
            "kafka-log-retention",
            manager.delete_old_segments,
            later_ms,
            config.log_retention_check_interval_ms,
        ),
        (
            "kafka-log-flusher",
            manager.flush_due,
            later_ms,
            config.log_flush_scheduler_interval_ms,
        ),
        (
            "kafka-recovery-point-checkpoint",
            lambda _now_ms: manager.checkpoint_later(LogDirectory.plan_recovery_points),
            later_ms,
            config.log_flush_offset_checkpoint_interval_ms,
        ),
        (
            "kafka-log-start-offset-checkpoint",
            lambda _now_ms: manager.checkpoint_later(LogDirectory.plan_log_start_offsets),
            later_ms,
            config.log_flush_start_offset_checkpoint_interval_ms,
        ),
        (
            "highwatermark-checkpoint",
            lambda _now_ms: manager.checkpoint_later(LogDirectory.plan_high_watermarks),
            now_ms,
            config.replica_high_watermark_checkpoint_interval_ms,
        ),
        ("lease-check", manager.leases.look_later, now_ms + LOOK_MS, LOOK_MS),
        ("staging-check", manager.commits.sweep, now_ms, SWEEP_MS),
        ("kafka-delete-logs", manager.delete_due, later_ms, SPACE_CHECK_MS),
        (
            "producer-expiration",
            manager.expire_producers,
            now_ms + config.producer_id_expiration_check_interval_ms,
            config.producer_id_expiration_check_interval_ms,
        ),
        ("free-space-check", manager.check_space, now_ms, SPACE_CHECK_MS),
    ):
        schedule.add(name, run, first_ms=first_ms, period_ms=max(period_ms, 1))
    if manager.cleaner is not None:
        schedule.add(
            "kafka-log-cleaner",
            manager.cleaner.run,
            first_ms=now_ms,
            period_ms=max(config.log_cleaner_backoff_ms, 1),
        )


def change_periods(manager: "LogManager", config: BrokerConfig) -> None:
    """Changed settings of the cleaner's turns and of retention's checks count from now on."""
    now_ms = manager.clock.now_ms()
    for name, period_ms in (
        ("kafka-log-cleaner", config.log_cleaner_backoff_ms),
        ("kafka-log-retention", config.log_retention_check_interval_ms),
    ):
        manager.schedule.change_period(name, max(period_ms, 1), now_ms)
