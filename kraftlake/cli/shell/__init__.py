"""The shell that walks in an image: its commands, and the prompt that they are typed at."""
