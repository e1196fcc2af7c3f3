"""The active controller: claims the log, runs commands against the pending image, and answers when they are durable.

`ActiveController` is one epoch, without I/O; `QuorumController` has threads and elections, `EmbeddedController` runs
commands in a tool.
"""
