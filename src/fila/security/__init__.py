"""Who may do what: API keys, their permissions, and the guard that asks."""
