"""Writes the wire protocol's values and layouts from Kafka's message schemas."""
