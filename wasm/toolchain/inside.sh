#!/usr/bin/env bash
# inside.sh COMMAND...: runs a command as root inside the chroot, in /build.
#
# /proc is mounted in a private mount namespace that ends with the command: no other
# process ever sees it, and nothing has to be unmounted, whatever way the command ends.
# The environment is built from nothing, so that no CFLAGS, PYTHONPATH or MAKEFLAGS of
# the caller reaches the compiler; only what says how to reach package registries and
# variables named INSIDE_SOMETHING (as SOMETHING) pass through.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

(( $(id -u) == 0 )) || refuse "entering the chroot needs root." "Run this as root. $other_way"

# pyodide-build wants LLVM's own tools, which Debian keeps in a folder of their version.
llvm=$(cd "$chroot" && printf '/%s:' usr/lib/llvm-*/bin)

bundle=/etc/ssl/certs/ca-certificates.crt
environment=(
    HOME=/root LANG=C.UTF-8
    "PATH=$inner_venv/bin:$llvm/usr/sbin:/usr/bin:/sbin:/bin"
    # A machine's own certificate authorities, where it has some.
    "PIP_CERT=$bundle" "SSL_CERT_FILE=$bundle" "REQUESTS_CA_BUNDLE=$bundle"
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
    # Debian's Emscripten is not the version that built Pyodide; side modules of both load.
    SKIP_EMSCRIPTEN_VERSION_CHECK=1
    "PYODIDE_XBUILDENV_PATH=$inner_cross_build"
)
for name in $(compgen -e); do
    case $name in
        INSIDE_*) environment+=("${name#INSIDE_}=${!name}") ;;
        PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_TRUSTED_HOST | PIP_PROXY | PIP_RETRIES | \
            PIP_DEFAULT_TIMEOUT | http_proxy | https_proxy | no_proxy | HTTP_PROXY | \
            HTTPS_PROXY | NO_PROXY | SOURCE_DATE_EPOCH) environment+=("$name=${!name}") ;;
    esac
done

mkdir -p "$chroot/build"
cp --dereference /etc/resolv.conf "$chroot/etc/resolv.conf"
[[ ! -f ${SSL_CERT_FILE:-$bundle} ]] || cp --dereference "${SSL_CERT_FILE:-$bundle}" "$chroot$bundle"

exec unshare --mount --propagation private -- bash -euc '
    root=$1; shift
    mount --rbind /proc "$root/proc"
    exec chroot "$root" /usr/bin/env -C /build -i "$@"
' inside "$chroot" "${environment[@]}" "$@"
