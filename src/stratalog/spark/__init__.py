"""Spark reads and writes logs: the data source behind ``format("stratalog")``, and helpers."""
