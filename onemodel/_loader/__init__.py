"""What ``DataLoader`` is made of beside its engine: arguments and explanations.

It knows builders, samplers and the names of a loader's arguments.
It must not know passes, positions or how a batch is delivered.
"""
