"""A range of a log as one HTML file: every state of every partition in it, drawn by the reader's browser."""
