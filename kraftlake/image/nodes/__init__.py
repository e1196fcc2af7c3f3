"""An image as a tree of nodes, with the paths and the texts of Kafka's metadata shell."""
