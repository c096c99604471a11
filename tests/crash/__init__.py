"""Kills and power cuts under load: what was acknowledged is there, what was acked stays gone."""
