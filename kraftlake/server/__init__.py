"""Assembles the other packages into processes that run until they are stopped: followers, controllers, brokers."""
