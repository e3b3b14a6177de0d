"""Several brokers' directories put together repeat rows: the second one is warned of."""

import warnings
from pathlib import Path

import pytest
from modelled import ORDERS
from test_snapshot import batch, write_log

from stratalog import scan


def broker(root: Path, node_id: int, *, cluster_id: str = "one", name: str = "") -> Path:
    path = root / (name or f"broker{node_id}")
    write_log(path, batch(0))
    lines = ("version=1", f"cluster.id={cluster_id}", f"node.id={node_id}")
    (path / "meta.properties").write_text("\n".join(lines) + "\n")
    return path


def test_a_second_brokers_replica_of_a_partition_is_warned_of_once(tmp_path: Path) -> None:
    first, second = broker(tmp_path, 1), broker(tmp_path, 2)
    scan(first, ORDERS.topic).read_all()

    with pytest.warns(UserWarning, match=r"broker 1 and .* of broker 2 both hold orders-3"):
        scan(second, ORDERS.topic).read_all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan(second, ORDERS.topic).read_all()
        scan(first, ORDERS.topic).read_all()


@pytest.mark.parametrize(
    "other", [{"node_id": 1, "name": "more"}, {"node_id": 2, "cluster_id": "b"}]
)
def test_other_directories_of_a_broker_and_other_clusters_are_not(
    tmp_path: Path, other: dict[str, object]
) -> None:
    first, second = broker(tmp_path, 1), broker(tmp_path, **other)  # type: ignore[arg-type]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan(first, ORDERS.topic).read_all()
        scan(second, ORDERS.topic).read_all()
