"""Checks of what a user hands to the loader: pure or not, what fits a loss, what a sampler gives.

It knows loaders, datasets, samplers and the builders behind them. It must not know commands,
terminals or files of pictures.
"""
