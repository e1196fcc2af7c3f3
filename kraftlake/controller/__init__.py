"""The controller: turns commands into validated records, appends them, and answers when they are durable.

The logic is pure: a command is a function of `ControllerState`; `ActiveController` runs commands of one epoch.
"""

from __future__ import annotations
