"""What Fila is: commands in, effects out. No clock, no IO, no randomness."""
