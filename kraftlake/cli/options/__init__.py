"""Declaration and parsing of command lines: click's classes, kinds of values, the options that commands share."""
