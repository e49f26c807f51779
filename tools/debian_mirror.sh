# Sourced: debian_mirror prints the address of the Debian mirror that apt on this machine uses. No
# host is written in any file of the project.

debian_mirror() {
    local mirror
    mirror=$(mirror_of_apt)
    if [[ -z $mirror ]]; then
        apt-get update >&2    # a fresh machine has no package lists yet
        mirror=$(mirror_of_apt)
    fi
    # cloud images name a local file that lists mirrors
    [[ $mirror != mirror+file:* ]] ||
        mirror=$(grep -m 1 -oE '^[^#[:space:]]+' "${mirror#mirror+file:}")
    printf '%s\n' "${mirror%/}"
    [[ -n $mirror ]]
}

mirror_of_apt() {
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' |
        sed -n 's/^Debian|Debian|//p' | sort -u | sed -n 1p
}
