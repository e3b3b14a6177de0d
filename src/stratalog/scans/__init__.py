"""Reading a topic's files as columns: a snapshot, a plan that prunes and splits, tasks that read.

    take_snapshot (snapshot)  ->  plan_scan (planning)  ->  read_task (reading)

Nothing here writes to a log, and no owner need run: ours or Apache Kafka's directories, live or
cold. Spark's tasks run ``read_task``; ``stratalog.scan`` runs all three in one process.
"""
