"""Replicas of partitions: who leads, who is in sync, how far everybody is; pure state.

Nothing here does network I/O or knows of wire formats, and nothing assumes that there is one node.
"""
