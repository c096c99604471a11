"""The loop's work: take commands, run hooks, apply, deliver, commit, and only then send."""
