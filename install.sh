#!/bin/sh
# Installs Fila's programs, `fila` and `fila-server`, from a release's archive.
#
#   curl -fsSL https://github.com/faiscadev/fila/releases/latest/download/install.sh | sh
#   … | sh -s -- --dry-run              say what would be done
#   … | sh -s -- --version 0.1.0        one release; also the way back to an older one
#   … | sh -s -- --prefix ~/opt         below this directory; default: /usr/local if it can be
#                                       written to, else ~/.local
#   … | sh -s -- --uninstall            remove the programs; data is never touched
#
# Run it again to upgrade. Programs live in PREFIX/lib/fila/VERSION with links in PREFIX/bin; the
# release before stays until the next upgrade, so that a broker that runs keeps its files.
# FILA_RELEASES names another place of releases: an address, or file:///a/directory.
#
# All of it is functions until the last line: a script that arrives cut off does nothing.
set -eu

releases=${FILA_RELEASES:-https://github.com/faiscadev/fila/releases}
version=''
prefix=''
dry_run=no
uninstall=no
force=no
work=''

main() {
    read_arguments "$@"
    choose_prefix
    if [ "$uninstall" = yes ]; then
        remove_all
        return
    fi
    find_platform
    for tool in tar gzip uname mktemp; do
        have "$tool" || fail "$tool is needed and not there"
    done
    choose_downloader
    choose_digest
    work=$(mktemp -d "${TMPDIR:-/tmp}/fila-install.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    choose_release
    if [ -z "$archive_digest" ]; then
        fail "release $version has nothing for $platform; with Python 3.11 or newer:" \
            "pip install 'fila-broker[server]'"
    fi
    if [ "$dry_run" = yes ]; then
        tell_plan
        return
    fi
    if [ "$force" = no ] && [ "$(installed)" = "$version" ] && works "$home/$version"; then
        say "Fila $version is installed in $prefix already"
        return
    fi
    writable
    fetch "$releases/download/v$version/$archive" "$work/$archive"
    verify
    unpack
    switch
    say "Fila $version is installed: $prefix/bin/fila, $prefix/bin/fila-server"
    on_path
}

read_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --dry-run) dry_run=yes ;;
            --uninstall) uninstall=yes ;;
            --force) force=yes ;;
            --version | --prefix)
                [ $# -ge 2 ] || usage "$1 needs a value"
                if [ "$1" = --version ]; then version=${2#v}; else prefix=$2; fi
                shift
                ;;
            --version=*) version=${1#--version=} version=${version#v} ;;
            --prefix=*) prefix=${1#--prefix=} ;;
            -h | --help) help && exit 0 ;;
            *) usage "\"$1\" is no option" ;;
        esac
        shift
    done
    case $version in
        '') ;;
        *[!0-9A-Za-z.+-]* | .* | -*) usage "\"$version\" is no version, such as 0.1.0" ;;
    esac
    releases=${releases%/}
}

choose_prefix() {
    if [ -z "$prefix" ]; then
        if [ -w /usr/local/bin ] && [ -w /usr/local/lib ]; then
            prefix=/usr/local
        else
            prefix=${HOME:?HOME is not set; give --prefix}/.local
        fi
    fi
    case $prefix in
        /*) ;;
        *) prefix=$PWD/$prefix ;;
    esac
    prefix=${prefix%/}
    home=$prefix/lib/fila
}

find_platform() {
    case $(uname -s) in
        Linux) system=linux ;;
        Darwin) system=darwin ;;
        *) fail "there is no Fila for $(uname -s); it runs on Linux and macOS" ;;
    esac
    case $(uname -m) in
        x86_64 | amd64) machine=amd64 ;;
        aarch64 | arm64) machine=arm64 ;;
        *) fail "there is no Fila for processors of the kind $(uname -m)" ;;
    esac
    platform=$system-$machine
}

choose_downloader() {
    case $releases in
        file://*) downloader=copy ;;
        *)
            if have curl; then
                downloader=curl
            elif have wget; then
                downloader=wget
            else
                fail "curl or wget is needed and neither is there"
            fi
            ;;
    esac
}

choose_digest() {
    if have sha256sum; then
        digest_tool=sha256sum
    elif have shasum; then
        digest_tool='shasum -a 256'
    elif have openssl; then
        digest_tool='openssl dgst -sha256 -r'
    else
        fail "sha256sum, shasum or openssl is needed to verify the download, and none is there"
    fi
}

# The list of digests says what the latest release is, and what a release has.
choose_release() {
    if [ -n "$version" ]; then
        fetch "$releases/download/v$version/SHA256SUMS" "$work/SHA256SUMS"
    else
        fetch "$releases/latest/download/SHA256SUMS" "$work/SHA256SUMS"
        version=$(sed -n 's/^[0-9a-f]\{64\}  fila-\([0-9][0-9A-Za-z.+]*\)-[a-z]*-[a-z0-9]*\.tar\.gz$/\1/p' \
            "$work/SHA256SUMS" | head -n 1)
        [ -n "$version" ] || fail "$releases has no release with programs"
    fi
    archive=fila-$version-$platform.tar.gz
    archive_digest=$(awk -v name="$archive" '$2 == name { print $1; exit }' "$work/SHA256SUMS")
}

fetch() {
    case $downloader in
        copy)
            cp "${1#file://}" "$2" 2>/dev/null || fail "cannot read $1"
            ;;
        curl)
            curl -fsSL --connect-timeout 15 --retry 2 --speed-limit 1024 --speed-time 30 -o "$2" "$1" \
                || fail "cannot download $1; nothing was changed"
            ;;
        wget)
            wget -q --tries=3 --timeout=30 -O "$2" "$1" \
                || fail "cannot download $1; nothing was changed"
            ;;
    esac
}

verify() {
    # shellcheck disable=SC2086  # the tool and its options
    found=$($digest_tool "$work/$archive" | awk '{ print $1 }')
    [ "$found" = "$archive_digest" ] || fail "the checksum of $archive is wrong:" \
        "$found instead of $archive_digest; nothing was changed"
}

# Beside the others, under a name nobody looks for until it is complete and has been tried.
unpack() {
    mkdir -p "$home" "$prefix/bin"
    fresh=$home/.new.$$
    trap 'rm -rf "$work" "$fresh"' EXIT
    mkdir "$fresh"
    tar -xzf "$work/$archive" -C "$fresh" || fail "cannot unpack $archive; nothing was changed"
    works "$fresh/fila-$version" \
        || fail "the programs of $archive do not run on this machine; nothing was changed"
}

works() {
    [ -x "$1/bin/fila" ] && [ "$("$1/bin/fila" --version 2>/dev/null)" = "fila $version" ]
}

switch() {
    before=$(installed)
    rm -rf "${home:?}/$version"
    mv "$fresh/fila-$version" "$home/$version"
    (cd "$home/$version" && find bin share \( -type f -o -type l \)) >"$work/links" 2>/dev/null || :
    while IFS= read -r name; do
        mkdir -p "$prefix/${name%/*}"
        ln -s "$home/$version/$name" "$prefix/$name.new.$$"
        mv -f "$prefix/$name.new.$$" "$prefix/$name"
    done <"$work/links"
    for each in "$home"/*; do
        case ${each##*/} in
            "$version" | "${before:-$version}") ;;
            *) rm -rf "$each" ;;
        esac
    done
}

# Which version the link in bin leads to.
installed() {
    target=$(readlink "$prefix/bin/fila" 2>/dev/null) || return 0
    case $target in
        "$home"/*) target=${target#"$home"/} && printf '%s\n' "${target%%/*}" ;;
    esac
}

remove_all() {
    if [ ! -d "$home" ]; then
        say "Fila is not installed in $prefix"
        return
    fi
    [ "$dry_run" = yes ] || writable
    for place in bin share/man/man1 share/bash-completion/completions \
        share/zsh/site-functions share/fish/vendor_completions.d; do
        for link in "$prefix/$place"/*; do
            [ -L "$link" ] || continue
            case $(readlink "$link") in
                "$home"/*) act rm -f "$link" ;;
            esac
        done
    done
    act rm -rf "$home"
    if [ "$dry_run" = no ]; then
        say "Fila was removed from $prefix; its data, if any, is where it was"
    fi
}

tell_plan() {
    say "release   $version for $platform"
    say "archive   $releases/download/v$version/$archive"
    say "sha256    $archive_digest"
    say "programs  $home/$version, with links in $prefix/bin"
    before=$(installed)
    say "instead of ${before:-nothing}; nothing was changed (dry run)"
}

writable() {
    for place in "$home" "$prefix/bin"; do
        # Of a directory that is not there yet, the nearest one above that is.
        while [ ! -e "$place" ]; do place=${place%/*}; done
        [ -w "${place:-/}" ] || fail "${place:-/} cannot be written to;" \
            "give --prefix, or run this with sudo"
    done
}

on_path() {
    case :$PATH: in
        *":$prefix/bin:"*) say "Start the broker: fila-server" ;;
        *) say "$prefix/bin is not on your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

act() {
    if [ "$dry_run" = yes ]; then say "would run: $*"; else "$@"; fi
}

have() { command -v "$1" >/dev/null 2>&1; }

say() { printf '%s\n' "$*"; }

fail() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

usage() {
    printf 'install.sh: %s; --help says more\n' "$*" >&2
    exit 2
}

help() {
    cat <<'TEXT'
usage: install.sh [--version VERSION] [--prefix DIR] [--dry-run] [--uninstall] [--force]

Installs fila and fila-server from a release's archive, or upgrades them.

  --version VERSION  this release instead of the latest
  --prefix DIR       below DIR; default: /usr/local if it can be written to, else ~/.local
  --dry-run          say what would be done, and change nothing
  --uninstall        remove the programs; data is never touched
  --force            install again what is installed already

FILA_RELEASES names another place of releases: an address, or file:///a/directory.
TEXT
}

main "$@"
