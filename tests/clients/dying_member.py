"""A member of a group in a process of its own, so that it can die without a word.

Arguments: name of the client library, bootstrap server, group, topic, session timeout in ms.
It prints a line when it has partitions, and polls until somebody kills it.
"""

import sys

from aiokafka_client import AiokafkaClient
from confluent_client import ConfluentClient
from kafka_python_client import KafkaPythonClient

CLIENTS = {each.name: each for each in (ConfluentClient, KafkaPythonClient, AiokafkaClient)}


def main() -> None:
    name, bootstrap_server, group, topic, session_timeout_ms = sys.argv[1:]
    client = CLIENTS[name](bootstrap_server)
    consumer = client.consumer(group, session_timeout_ms=int(session_timeout_ms))
    consumer.subscribe([topic])
    is_told = False
    while True:
        consumer.poll(0.05)
        if consumer.assignment() and not is_told:
            is_told = True
            print("assigned", flush=True)


main()
