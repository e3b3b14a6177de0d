"""The commit of staged segments: what others have written beside a log becomes part of it.

One owner changes a log. Whoever else wants to (a Spark load, a compaction on a cluster, a restore)
stages files in ``<partition>/.stratalog/staging/`` and hands the owner a manifest that names them.
The owner verifies them, writes one record to its journal, and that is the commit: all of it, once.
"""
