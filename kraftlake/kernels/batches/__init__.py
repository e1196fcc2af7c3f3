"""Record batches as bytes: walked and checked, values found, put together, written and dealt to shards."""
