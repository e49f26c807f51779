# The versions that the WebAssembly toolchain is made of. Sourced by the other scripts.
#
# Everything that Pyodide's binary interface fixes stands here, so that moving to
# another Pyodide is one edit of this file and of package.json. Python packages are
# pinned in requirements/, npm packages in package.json and package-lock.json.
# shellcheck disable=SC2034

# CPython and interface version of the `pyodide` npm package named in package.json.
python_version=3.14.2
pyodide_abi=2026_0

# What the finished wheel is tagged with.
wheel_tag=cp314-cp314-pyemscripten_2026_0_wasm32

# The Emscripten that built that Pyodide. The chroot's own emcc is whatever Debian
# has; only the name of this one goes into the build, and the loader does not check it.
pyodide_emscripten=5.0.3

# The NumPy that Pyodide's lock file names, built once from its source release.
numpy_version=2.4.6

# The Debian release whose Python has the minor version above and which packages
# Emscripten. `sid` is the debootstrap script, which every debootstrap has: an older
# machine's debootstrap does not know this release by name.
debian_release=forky
debootstrap_script=sid
