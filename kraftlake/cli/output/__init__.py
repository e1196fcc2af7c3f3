"""How an answer reaches the terminal: lines, colours, tables, words for values, progress bars."""
