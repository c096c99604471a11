"""What the broker tells about itself: instruments, the pulse that reads them, history, export."""
