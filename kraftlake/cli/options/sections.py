"""The headings under which `kraftlake --help` lists the commands."""

LOOK = "What do you want to know?"
MOVE = "Bring a log in, take a snapshot out"
UPKEEP = "Keep a lake in order"
ENGINE = "Make a lake and its tables"
CHANGE = "Change a controlled lake, as its controller"
