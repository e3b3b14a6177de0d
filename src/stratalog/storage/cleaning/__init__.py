"""Compaction: which log, which records, the rewrite, the swap, and the threads that do it."""
