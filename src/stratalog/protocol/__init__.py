"""Kafka's wire protocol without I/O: keys, error codes, and codecs of every message spoken."""
