"""The shell that navigates an image: its commands and its prompt."""
