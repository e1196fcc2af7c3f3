"""Enforces client quotas: measures what each client uses, and how long it has to wait after an answer."""
