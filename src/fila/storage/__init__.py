"""Where committed batches live: the store contract, its implementations, the one commit path."""
