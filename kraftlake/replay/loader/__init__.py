"""Records into images: batches and metadata transactions, the loader that publishes, the image at an offset."""
