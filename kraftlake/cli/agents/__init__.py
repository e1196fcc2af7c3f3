"""The commands that only read as the tools of an agent, over the Model Context Protocol."""
