"""Readable twins of the package, written from the specification and not from the kernels.

Plain Python: integers are Python integers reduced modulo 2**64 where the text says so, and every
float32 operation is one operation of NumPy's float32 scalars or arrays, so that each one rounds.
Nothing here imports `onemodel`. The tests hold the package to these functions, and the canonical
digests that `onemodel verify` ships are computed by them.

| module | section of `docs/specification.md` and of the normative text it was written from |
|---|---|
| `rng` | random numbers |
| `permutation`, `samplers` | samplers |
| `collate` | collation |
| `image` | image helpers |
| `digest`, `lines` | `tests/golden/README.md` |
| `batches` | the contract |
"""
