"""Found by PySpark by its name, so that ``format("stratalog")`` needs no registration."""

from stratalog.spark.source import StratalogDataSource as DefaultSource

__all__ = ["DefaultSource"]
