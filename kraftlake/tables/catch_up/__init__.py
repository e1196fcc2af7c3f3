"""Updates tables to the end of a log: chunks of the log's rows in, images and rows of each table out."""
