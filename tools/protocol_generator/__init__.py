"""Writes the wire protocol's codecs from Kafka's message schemas."""
