"""From settings to open logs: locks, metadata, adoption or reconciliation, leader epochs.

The order is what makes it safe. (1) The locks of all log directories are taken; before that nothing
is read, and a start that is refused has changed nothing. (2) The metadata store is opened, in the
directory that has it. (3) If it is empty, what is there is adopted: one transaction, from which on
the store decides. (4) Else the directories are held against it: what it does not know becomes a
stray, what was being deleted or created is finished. If Apache Kafka had the directory meanwhile,
what its controller has written is taken over first. (5) The logs are opened. (6) Leader epochs go
on as they are, and are raised only where a log has lost what somebody may have read. (7) The
producer ids that are given out next are above those that the logs know.

A crash between any two steps leaves what the next start settles in the same way.
"""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from stratalog.broker.continuation import (
    go_on_with_epochs,
    go_on_with_producer_ids,
    read_before,
)
from stratalog.broker.finding import survey_directory
from stratalog.clock import Clock, SystemClock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.directories.controller_log import controller_state, read_controller
from stratalog.directories.found_directory import find_directory
from stratalog.errors import (
    ConfigError,
    DiskError,
    LogDirectoryError,
    StorageError,
    StratalogError,
)
from stratalog.metadata import MetadataImage, TopicState
from stratalog.metadata.adoption import FoundDirectory, FoundReplica, plan_adoption
from stratalog.metadata.controller_changes import followed_controller, plan_following
from stratalog.metadata.reconciliation import (
    PlacedReplica,
    Reconciliation,
    reconcile,
    strays_to_take_back,
)
from stratalog.metadata.server_configs import server_configs
from stratalog.metadata.sqlite_store import (
    IN_MEMORY,
    METADATA_FILE,
    METADATA_POINTER,
    SqliteMetadataStore,
)
from stratalog.storage.directory import Identity, LogDirectory, acquire_all, for_each_online
from stratalog.storage.files import FileSystem, OsFileSystem, read_file, replace_file
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    LOCK_FILE,
    STRAY_DIRECTORY,
    TopicPartition,
    replica_directory,
    suffixed_directory,
)
from stratalog.storage.loading import LoadProgress
from stratalog.storage.making import NewLog
from stratalog.storage.manager import LogManager
from stratalog.storage.owner_file import (
    Owner,
    new_token,
    read_owner,
    remove_owner_files,
    write_owner_files,
)
from stratalog.storage.readonly import lock_owner


@dataclass(slots=True, kw_only=True)
class OpenedBroker:
    """What a broker stands on. ``notes`` are for the operator; ``held`` says of each topic of which
    nothing may be removed why that is so."""

    store: SqliteMetadataStore
    logs: LogManager
    notes: tuple[str, ...]
    held: Mapping[str, str]

    def announce(self, owner: Owner) -> None:
        """Say in the log directories how their owner can be reached."""
        announce(self.logs.directories, owner)

    def close(self) -> None:
        """Leave all as a clean stop does. The locks are the last that is let go of."""
        announce(self.logs.directories, silent_owner())
        try:
            self.store.close()
        finally:
            self.logs.shutdown()


def open_broker(
    config: BrokerConfig,
    *,
    files: FileSystem | None = None,
    clock: Clock | None = None,
    is_config_known: bool = False,
    is_threaded: bool = True,
    is_for_a_moment: bool = False,
    is_remembered: bool = True,
    show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
) -> OpenedBroker:
    """Open what ``config`` names. ``is_config_known``: it has the settings of the broker that
    wrote the directories, if another did; without them, what is not certain is held.
    ``is_for_a_moment``: nobody is served, and what ``config`` leaves open is what the last broker
    was started with.
    ``is_remembered=False``: what another broker wrote stays that broker's. It is adopted anew each
    time, from what that broker says then; otherwise the topics that it makes later would be
    strays."""
    files = files or OsFileSystem()
    directories = [LogDirectory(files, path) for path in config.log_directories]
    store = None
    try:
        acquire_all(directories)
        announce(directories, silent_owner())
        place = _metadata_place(directories)
        path = f"{place.path}/{METADATA_FILE}"
        if not is_remembered and not files.exists(path):
            path = IN_MEMORY
        store = SqliteMetadataStore.open(path, broker=config, is_for_a_moment=is_for_a_moment)
        opening = _Opening(
            config,
            store,
            directories,
            clock or SystemClock(),
            is_config_known=is_config_known,
            is_for_a_moment=is_for_a_moment,
        )
        return opening.run(is_threaded=is_threaded, show_progress=show_progress)
    except BaseException:
        if store is not None:
            store.close()
        for directory in directories:
            directory.release()
        raise


def is_held_for_a_moment(log_dir: str) -> bool:
    """Whether it is locked by a process of ours that has no admin port, at least not yet: one that
    commits what it has staged, or that starts."""
    try:
        owner = read_owner(log_dir)
    except StorageError:
        return False
    return not owner.admin and owner.pid == lock_owner(f"{log_dir}/{LOCK_FILE}")


def announce(directories: Sequence[LogDirectory], owner: Owner) -> None:
    """Say in the log directories whose they are, and how that can be reached. Before anything else
    is done there: whoever finds one locked without a word takes its owner for an Apache Kafka."""
    for each in directories:
        # Removed by who has the lock still: afterwards it may be another's.
        each.leave = partial(remove_owner_files, [each.path])
    with suppress(DiskError):  # clients are served without it
        write_owner_files([each.path for each in directories if each.is_online], owner)


def silent_owner() -> Owner:
    """This process, which cannot be asked yet, or no more."""
    return Owner(pid=os.getpid(), admin="", token=new_token())


def _metadata_place(directories: Sequence[LogDirectory]) -> LogDirectory:
    """The directory whose metadata store counts; the first that is usable in the very beginning."""
    online = [each for each in directories if each.is_online]
    if not online:
        reasons = "; ".join(each.state.reason for each in directories)
        raise LogDirectoryError(f"no log directory can be used: {reasons}")
    holding = [each for each in online if each.files.exists(f"{each.path}/{METADATA_FILE}")]
    if len(holding) > 1:
        places = " and ".join(each.path for each in holding)
        raise LogDirectoryError(
            f"there is metadata in {places}: they were not served together, and only one can count"
        )
    if holding:
        return holding[0]
    for each in directories:
        if not each.is_online:
            raise LogDirectoryError(
                f"{each.path} cannot be used ({each.state.reason}), and the metadata may be there"
            )
    for each in online:
        pointer = f"{each.path}/{METADATA_POINTER}"
        if each.files.exists(pointer):
            where = read_file(each.files, pointer).decode(errors="replace").strip()
            raise LogDirectoryError(
                f"the metadata of {each.path} is in {where}, which is not a log directory now or "
                f"has lost it; without {pointer} the directory would be adopted as if found"
            )
    return online[0]


class _TopicConfigs:
    """What the store knows of a topic's configs, which may not be all; None if it is no topic."""

    def __init__(self, store: SqliteMetadataStore) -> None:
        self._store = store
        self._of_image: tuple[MetadataImage, BrokerConfig, dict[str, TopicConfig | None]] | None = (
            None
        )

    def __call__(self, topic: str) -> TopicConfig | None:
        image = self._store.image
        known = self._of_image
        if known is None or known[0] is not image:
            # One value, replaced as a whole: logs are opened on several threads.
            known = self._of_image = (image, self._store.broker, {})
        _, broker, configs = known
        if topic not in configs:
            found = image.topics.get(topic)
            configs[topic] = (
                None if found is None else TopicConfig.from_properties(found.configs, broker=broker)
            )
        return configs[topic]

    def is_held(self, topic: str) -> bool:
        found = self._store.image.topics.get(topic)
        return found is None or found.is_held


class _Opening:
    """One start, step by step."""

    def __init__(
        self,
        config: BrokerConfig,
        store: SqliteMetadataStore,
        directories: Sequence[LogDirectory],
        clock: Clock,
        *,
        is_config_known: bool,
        is_for_a_moment: bool,
    ) -> None:
        self._is_for_a_moment = is_for_a_moment
        self._config = config
        self._is_config_known = is_config_known
        self._store = store
        self._directories = directories
        self._clock = clock
        self._is_first = not store.is_initialized
        self._notes: list[str] = []
        self._held: dict[str, str] = {}

    def run(
        self, *, is_threaded: bool, show_progress: Callable[[LoadProgress], None]
    ) -> OpenedBroker:
        if self._is_first:
            self._adopt()
        self._check_node()
        plan = self._reconcile()
        if not self._is_for_a_moment:
            self._store.note_server_configs(server_configs(self._config))
        image = self._store.image
        known = _TopicConfigs(self._store)
        logs = LogManager(
            self._store.broker,
            files=self._directories[0].files,
            clock=self._clock,
            topic_config=known,
            is_held=known.is_held,
            identity=Identity(image.cluster_id, image.node_id, uuid.UUID(int=0)),
            directories=self._directories,
            show_progress=show_progress,
            is_threaded=is_threaded,
        )
        was_read = read_before(
            self._online, is_certain=self._is_first or self._config.log_flush_on_ack
        )
        logs.start()
        try:
            self._create(logs, plan)
            self._name(logs)
            go_on_with_epochs(self._store, logs, was_read)
            go_on_with_producer_ids(self._store, logs)
        except BaseException:
            logs.shutdown()
            raise
        self._leave_pointers()
        for name, topic in self._store.image.topics.items():
            if topic.is_held:
                self._held.setdefault(name, "its configs are not known")
        return OpenedBroker(store=self._store, logs=logs, notes=tuple(self._notes), held=self._held)

    @property
    def _online(self) -> list[LogDirectory]:
        return [each for each in self._directories if each.is_online]

    # --- whose it is, and what is there -------------------------------------------------------

    def _adopt(self) -> None:
        for each in self._directories:
            if not each.is_online:
                raise LogDirectoryError(
                    f"{each.path} cannot be used ({each.state.reason}): what is adopted must be "
                    "there wholly"
                )
        found = [survey_directory(each, self._notes) for each in self._online]
        state, cluster = controller_state(self._online), read_controller(self._online)
        adoption = plan_adoption(
            found,
            cluster=cluster,
            broker=self._config,
            is_broker_config_known=self._is_config_known,
            node_id=self._config.stated_node_id,
        )
        self._notes += adoption.notes
        self._held.update(adoption.held)
        self._notes += [f"topic {name} is held: {why}" for name, why in adoption.held.items()]
        # From the next step on a directory that does not say whose it is, is not ours.
        for directory, what in zip(self._online, found, strict=True):
            if what.node_id is None:
                identity = Identity(adoption.cluster_id, adoption.node_id, uuid.uuid4())
                directory.assign_identity(identity)
        # Nor is one whose file names no cluster, unless it says where its metadata is.
        self._leave_pointers()
        followed = None if cluster is None else followed_controller(cluster, state)
        self._store.initialize(adoption.cluster_id, adoption.node_id, adoption.update, followed)

    def _check_node(self) -> None:
        stated, known = self._config.stated_node_id, self._store.image.node_id
        if stated not in (None, known):
            raise ConfigError("node.id", stated, f"is not that of these directories, {known}")

    def _check_owner(self, found: FoundDirectory) -> None:
        """Nothing is renamed in a directory that is none of ours."""
        image = self._store.image
        if found.node_id is None:
            if found.replicas and not self._is_first:
                raise LogDirectoryError(
                    f"{found.path} holds logs and no meta.properties says whose: it is not a "
                    "directory of this broker, and can only be adopted by itself"
                )
            return
        # Before 0.10.1 Kafka named no cluster. Such a directory is ours if it was adopted.
        cluster_id = found.cluster_id or (image.cluster_id if self._was_adopted(found) else "")
        if (cluster_id, found.node_id) != (image.cluster_id, image.node_id):
            raise LogDirectoryError(
                f"{found.path} belongs to node {found.node_id} of cluster {found.cluster_id!r}, "
                f"not to node {image.node_id} of {image.cluster_id!r}"
            )

    def _was_adopted(self, found: FoundDirectory) -> bool:
        files = self._directories[0].files
        return self._is_first or any(
            files.exists(f"{found.path}/{name}") for name in (METADATA_FILE, METADATA_POINTER)
        )

    def _reconcile(self) -> Reconciliation:
        found = self._find()
        for directory in found:
            self._check_owner(directory)
        if not self._is_first:
            self._follow(found)
        if self._take_back_strays(found):
            found = self._find()
        plan = reconcile(self._store.image, found)
        self._set_aside(plan.strays, STRAY_DIRECTORY)
        for stray in plan.strays:
            self._notes.append(f"{stray.path}/{stray.replica} is of no topic and is a stray now")
        self._set_aside(plan.to_delete, DELETE_DIRECTORY)
        if all(each.is_online for each in self._directories):
            self._store.finish_delete(*self._store.image.deleting)
        for missing in plan.missing:
            self._notes.append(f"the directory of {missing} is gone or cannot be used")
        return plan

    def _find(self) -> list[FoundDirectory]:
        found: list[FoundDirectory] = []
        for_each_online(self._directories, lambda each: found.append(find_directory(each)))
        return found

    def _follow(self, found: Sequence[FoundDirectory]) -> None:
        """Take over what Apache Kafka's controller has written since it was last looked at."""
        state, before = controller_state(self._online), self._store.followed
        if not state or (before is not None and before.state == state):
            return
        cluster = read_controller(self._online)
        if cluster is None:
            return
        following = plan_following(
            self._store.image,
            cluster,
            before,
            found,
            broker=self._store.static_broker,
            is_broker_config_known=self._is_config_known,
        )
        self._store.follow(following.update, followed_controller(cluster, state))
        self._notes += following.notes
        self._held.update(following.held)

    def _take_back_strays(self, found: Sequence[FoundDirectory]) -> bool:
        """Give replicas their names again that Apache Kafka has set aside; whether there were any.
        While a directory is offline it may hold the partition's own replica."""
        if len(self._online) < len(self._directories):
            return False
        taken = strays_to_take_back(self._store.image, found)
        for stray, replica in taken:
            (directory,) = [each for each in self._online if each.path == stray.path]
            key = TopicPartition(replica.topic, replica.partition)
            target = f"{stray.path}/{replica_directory(key)}"
            directory.files.rename(f"{stray.path}/{stray.name}", target)
            directory.files.sync_directory(stray.path)
            self._notes.append(f"{stray.path}/{stray.name} is {replica} again")
        return bool(taken)

    def _set_aside(self, placed: Sequence[PlacedReplica], state: str) -> None:
        """Rename directories, durably before the store forgets about them."""
        for directory in self._online:
            own = [each.replica for each in placed if each.path == directory.path]
            try:
                for replica in own:
                    key = TopicPartition(replica.topic, replica.partition)
                    directory.files.rename(
                        f"{directory.path}/{replica_directory(key)}",
                        f"{directory.path}/{suffixed_directory(key, state)}",
                    )
                if own:
                    directory.files.sync_directory(directory.path)
            except StorageError as error:
                directory.fail(str(error))

    # --- logs ---------------------------------------------------------------------------------

    def _create(self, logs: LogManager, plan: Reconciliation) -> None:
        """Make the logs of topics whose creation was interrupted."""
        image = self._store.image
        wanted = [self._new_log(image, each) for each in plan.to_create]
        if wanted:
            try:
                logs.plan_create(wanted, is_new=False)
                logs.make(wanted)
                for new in wanted:
                    logs.take_in(new)
            except StratalogError as error:
                self._notes.append(f"a topic that was being created is not whole yet: {error}")
        self._store.mark_live(
            *(
                topic.topic_id
                for topic in image.topics.values()
                if topic.state is TopicState.CREATING
                and all(
                    TopicPartition(topic.name, each.partition) in logs
                    for each in topic.partitions
                    if image.node_id in each.replicas
                )
            )
        )

    def _new_log(self, image: MetadataImage, replica: FoundReplica) -> NewLog:
        partition = image.topics[replica.topic].partitions[replica.partition]
        key = TopicPartition(replica.topic, replica.partition)
        return NewLog(key, replica.topic_id, leader_epoch=partition.leader_epoch)

    def _name(self, logs: LogManager) -> None:
        """Write the topic ids that a broker did not come to write, or that predates them."""
        for log in logs:
            topic = self._store.image.topics.get(log.topic_partition.topic)
            if log.topic_id is None and topic is not None:
                try:
                    log.assign_topic_id(topic.topic_id)
                except DiskError as error:
                    log.fail(error)

    def _leave_pointers(self) -> None:
        if self._store.path == IN_MEMORY:
            return
        place = self._store.path.removesuffix(f"/{METADATA_FILE}")
        content = f"{place}\n".encode()
        for directory in self._online:
            pointer = f"{directory.path}/{METADATA_POINTER}"
            if directory.path == place:
                continue
            try:
                exists = directory.files.exists(pointer)
                if not exists or read_file(directory.files, pointer) != content:
                    replace_file(directory.files, pointer, content)
            except StorageError as error:
                directory.fail(str(error))
