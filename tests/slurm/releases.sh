# Which distribution has which release of Slurm, and where its packages come from. Scripts here read this file.

RELEASES="$(dirname "${BASH_SOURCE[0]}")/releases.txt"

# The suite of a release such as 26.05; any other word is a suite itself.
suite_of() {
    awk -v word="$1" '$1 == word { print $2; found = 1 } END { if (!found) print word }' "$RELEASES"
}

# Sets MIRROR, KEYS and AREAS of a suite. Ends the script with exit code 3 if this machine has no mirror of it.
# UBUNTU_MIRROR names one on a machine whose apt has none.
distribution_of() {
    local label
    label=$(awk -v suite="$1" '$2 == suite { print $3; found = 1 } END { if (!found) print "Debian" }' "$RELEASES")
    MIRROR=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Label: $label" | head -n 1)
    AREAS=main
    if [ "$label" = Ubuntu ]; then
        MIRROR=${UBUNTU_MIRROR:-$MIRROR} AREAS=main,universe
        [ -n "$MIRROR" ] || die 3 "Slurm of $1 needs a mirror of Ubuntu: set UBUNTU_MIRROR"
    fi
    KEYS=/usr/share/keyrings/${label,,}-archive-keyring.gpg
    [ -n "$MIRROR" ] || die 3 "apt is configured with no mirror of $label"
    [ -f "$KEYS" ] || die 3 "packages of $1 need the keys of $label in $KEYS"
}
