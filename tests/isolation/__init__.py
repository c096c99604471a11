"""What other clients feel while one client does the worst it may: pauses, measured and counted."""
