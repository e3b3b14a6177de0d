"""The asyncio edge of a broker: sockets, requests to handlers, parked answers.

One thread runs the event loop and owns all logs; what blocks runs on workers.
"""
