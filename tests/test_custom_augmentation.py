"""Promise: others can write native augmentations against onemodel's .pxd files.

The example package is built here and gives what its docstring says, alone and in
the collator's one pass. Skipped where there is no C compiler or no Cython.
"""

import importlib
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from support import assert_same_bytes, refused

import onemodel
from onemodel import Compose, SampleRng
from onemodel.augment import Blur, GainOffset
from onemodel.augment.protocol import Chain

EXAMPLE = Path(__file__).parent.parent / "examples" / "custom_augmentation"


@pytest.fixture(scope="module")
def scanlines(tmp_path_factory, needs_subprocess):
    pytest.importorskip("Cython", reason="Cython is not installed")
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if sys.platform == "win32" or shutil.which(compiler) is None:
        pytest.skip(f"the C compiler {compiler!r} is not there")
    if not EXAMPLE.is_dir():
        pytest.skip("the examples are not beside the tests")
    folder = tmp_path_factory.mktemp("custom") / "package"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "*.c", "*.so"))
    package = str(Path(onemodel.__file__).parent.parent)
    path = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("scanlines").Scanlines
    finally:
        sys.path.remove(str(folder))


def expected_scanlines(rng, image, period, gain):
    """Edit the image as the docstring of the example says."""
    low, high = period
    every = low + rng.next_int(high - low + 1)
    phase = rng.next_int(every)
    factor = np.float32(gain[0]) + np.float32(gain[1] - gain[0]) * np.float32(rng.next_single())
    for row in range(phase, image.shape[1], every):
        image[:, row] = image[:, row] * factor


def test_the_example_does_what_its_docstring_says(scanlines):
    image = np.random.default_rng(0).random((2, 17, 33), np.float32)
    for seed in range(20):
        expected, edited, out = image.copy(), image.copy(), np.empty_like(image)
        expected_rng, rng = SampleRng(seed), SampleRng(seed)
        expected_scanlines(expected_rng, expected, (2, 5), (0.25, 0.75))
        part = scanlines((2, 5), (0.25, 0.75))
        part(rng, edited)
        assert_same_bytes(edited, expected)
        assert rng.state == expected_rng.state
        Chain([part])(SampleRng(seed), image, out)
        assert_same_bytes(out, expected)


@pytest.mark.parametrize("others", [[GainOffset()], [Blur(0.5)]], ids=["rows", "images"])
def test_the_example_runs_in_the_one_pass(scanlines, others):
    """The native route against the plain one, which a Python callable forces."""
    generator = np.random.default_rng(4)
    samples = [onemodel.Sample(generator.random((1, 9, width), np.float32)) for width in (30, 7)]
    key = onemodel.BatchKey(1, 2, 3, 0, np.arange(2))
    chain = Compose([*others, scanlines(), *others])
    native = onemodel.ImageBatchCollator(augment=chain)(samples, key)
    plain = onemodel.ImageBatchCollator(augment=lambda rng, image: chain(rng, image))(samples, key)
    assert_same_bytes(native.images, plain.images)


def test_the_example_checks_shows_and_pickles_its_settings(scanlines):
    part = scanlines(gain=(0.5, 1))
    assert repr(part) == "Scanlines(period=(3, 6), gain=(0.5, 1.0))"
    assert repr(pickle.loads(pickle.dumps(part))) == repr(part)
    with refused(ValueError, "period"):
        scanlines(period=(0, 3))
