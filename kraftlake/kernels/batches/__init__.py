"""Record batches as bytes: walked and checked, values found, assembled, written and sharded."""
