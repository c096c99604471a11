"""A seeded torture of the core: real machine, real commit path, simulated disk and clock.

`python -m tests.simulation --seed 7` repeats one seed exactly. See docs/internals/simulation.md.
"""
