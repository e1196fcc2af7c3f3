"""Commands on dynamic configs: the definitions of all configs, and the validation of values and combinations."""
