#!/usr/bin/env bash
# emulated.sh ROOT ARGUMENT...: runs the Python of a foreign root (root.sh) under qemu-user.
#
# EMULATOR: qemu-aarch64 and so on; empty for a root of this machine's own kind. TRIPLET: the
# root's library folder. PACKAGE: a folder with a package to import. QEMU_CPU as qemu takes it:
# cortex-a72 has no pointer authentication, which the default of arm64 emulates at five times the
# time.
set -euo pipefail
root=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

export PYTHONHOME=$root/usr PYTHONDONTWRITEBYTECODE=1
# what was asked for comes last: a test gives it to a child
asked=${PYTHONPATH:-}
export PYTHONPATH=${PACKAGE:+$PACKAGE:}$here/site:$root/usr/lib/python3/dist-packages${asked:+:$asked}
# the site hook names it to tests that start sys.executable: through the same emulator
export ONEMODEL_EMULATED=$root/python
printf '#!/bin/bash\nexec %q %q "$@"\n' "$here/emulated.sh" "$root" >"$root/python"
chmod +x "$root/python"

if [[ -z $EMULATOR ]]; then
    folder=$root/usr/lib/$TRIPLET
    exec "$root/usr/lib64/ld-linux-x86-64.so.2" \
        --library-path "$folder:$folder/blas:$folder/lapack" "$root/usr/bin/python3" "$@"
fi
exec "$EMULATOR" -L "$root" \
    -E "LD_LIBRARY_PATH=/usr/lib/$TRIPLET/blas:/usr/lib/$TRIPLET/lapack" \
    "$root/usr/bin/python3" "$@"
