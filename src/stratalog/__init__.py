"""Kafka's log, in Python, open to Spark."""
