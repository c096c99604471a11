"""Each broker's usual Python client, behind one small interface.

A module has `connect(address, queue) -> Client`. Only the load processes import these, in the
virtual environment that `install` makes.
"""
