"""Group coordination: who is in a group, who reads what, and the offsets it has committed.

Nothing here does network I/O or knows of versions of messages; time is an argument.
"""
