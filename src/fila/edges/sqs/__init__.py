"""SQS on a port of its own: Fila's queues for programs that speak to Amazon SQS (docs/sqs.md)."""
