"""HTTP on a port of its own: metrics, health, the JSON API, live streams and the dashboard."""
