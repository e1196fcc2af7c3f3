"""The controller: turns commands into validated records, appends them, and answers when they are durable.

The logic is pure: a command is a function of `ControllerState`, and `ActiveController` runs the commands of one epoch
against the pending image. `QuorumController` adds threads and an election; `EmbeddedController` runs a few commands in
a tool.
"""
