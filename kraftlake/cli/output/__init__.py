"""Output of answers to the terminal: lines, colours, tables, words for values, progress bars."""
