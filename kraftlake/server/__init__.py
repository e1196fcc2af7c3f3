"""Puts the rooms together into processes that run until they are told to end: followers, controllers, brokers."""
