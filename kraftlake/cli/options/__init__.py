"""How a command line is declared and read: click's classes, kinds of values, the options that commands share."""
