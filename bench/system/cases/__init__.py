"""One module per question. Each has a `run(lab)` that adds measurements."""
