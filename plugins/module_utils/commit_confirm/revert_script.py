"""The program that puts the old state back, as text.

It is written to the host before anything changes and runs from a timer or at boot, so it asks for no
more than sh, coreutils, flock and systemctl: the host's Python may be what broke.
"""

from __future__ import annotations

# Read beside state.py, which names the directories, and snapshot.py, which writes the manifest.
TEXT = r"""#!/bin/sh
# Written by gpu-provision. Puts back what nobody confirmed.
# usage: revert.sh timer ID | hand | boot
set -u
PATH="$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
export PATH
cd "$(dirname "$0")" || exit 1
why=$1
wanted=${2-}
tab=$(printf '\t')

say() { printf 'gpu-provision: %s\n' "$*"; }

# Whoever renames the armed directory first has won: this, or the confirmation.
take() {
    for armed in armed.*; do
        [ -d "$armed" ] || continue
        id=${armed#armed.}
        [ -z "$wanted" ] || [ "$id" = "$wanted" ] || continue
        mv -T "$armed" "reverting.$id" 2>/dev/null && say "took back $id ($why)"
    done
}

beside() { printf '%s/.%s.gpu-provision-%s' "$(dirname "$1")" "$(basename "$1")" "$2"; }

label() { if command -v restorecon >/dev/null 2>&1; then restorecon "$1" 2>/dev/null || :; fi; }

# The copy beside the file needs no space to be put in place; the one in the snapshot is for the second try.
put_file() {
    ready=$(beside "$2" "$id")
    if [ -e "$ready" ]; then
        mv -fT "$ready" "$2" && label "$2"
        return
    fi
    mkdir -p "$(dirname "$2")"
    if cp -aPT "$1" "$ready" && sync "$ready" && mv -fT "$ready" "$2"; then
        label "$2"
        return 0
    fi
    rm -f "$ready"
    cat "$1" >"$2"
}

put_files() {
    failed=0
    while IFS="$tab" read -r kind number path; do
        case $kind in
        file) put_file "reverting.$id/files/$number" "$path" || failed=1 ;;
        absent) rm -f "$path" || failed=1 ;;
        nodir) [ ! -d "$path" ] || rmdir "$path" 2>/dev/null || : ;;
        esac
    done <"reverting.$id/manifest"
    return $failed
}

put_units() {
    [ -s "reverting.$id/units" ] || return 0
    failed=0
    systemctl daemon-reload || :
    while IFS="$tab" read -r unit enabled active; do
        now=$(systemctl is-enabled "$unit" 2>/dev/null || :)
        if [ "$now" != "$enabled" ]; then
            case $enabled in
            enabled) systemctl enable "$unit" || failed=1 ;;
            disabled) systemctl disable "$unit" || failed=1 ;;
            esac
        fi
        now=$(systemctl is-active "$unit" 2>/dev/null || :)
        case $active in
        active)
            if [ "$now" != active ] && [ "$why" != boot ]; then
                systemctl reset-failed "$unit" 2>/dev/null || :
                systemctl start "$unit" || failed=1
            fi ;;
        inactive)
            if [ "$why" = boot ]; then systemctl --no-block stop "$unit" || failed=1
            elif [ "$now" = active ]; then systemctl stop "$unit" || failed=1
            fi ;;
        esac
    done <"reverting.$id/units"
    return $failed
}

reload() {
    # At boot the services have not started yet and will read the files as they are now.
    [ "$why" != boot ] || return 0
    # A daemon that was not yet told of the new files still runs with the old ones.
    [ -e "reverting.$id/reloading" ] || return 0
    timeout 90 sh -e "reverting.$id/reload" && return 0
    # What cannot be reloaded is restarted, if its old files are good: a start that fails would leave nothing.
    [ -s "reverting.$id/units" ] && timeout 90 sh -e "reverting.$id/check" >/dev/null || return 1
    while IFS="$tab" read -r unit enabled active; do
        [ "$active" != active ] || systemctl restart "$unit" || return 1
    done <"reverting.$id/units"
}

put_back() {
    # Files first: a daemon that will not reload is no reason to leave the new ones in place.
    done=0
    put_files || done=1
    put_units || done=1
    reload || done=1
    return $done
}

tidy() {
    for past in done.* reverted.* new.${wanted:-*}; do
        [ -f "$past/manifest" ] || continue
        while IFS="$tab" read -r kind number path; do
            [ "$kind" != file ] || rm -f "$(beside "$path" "${past#*.}")"
        done <"$past/manifest"
        # Killed while it was being built: nothing was changed under it.
        case $past in new.*) rm -rf "$past" ;; esac
    done
    for open in armed.* reverting.*; do
        [ ! -d "$open" ] || return 0
    done
    rm -f "@UNITS@/multi-user.target.wants/@BOOT@" "@UNITS@/@BOOT@"
}

exec 9>>lock
flock -w 20 9 || say "another holds the lock; going on without it"

take
result=0
for dir in reverting.*; do
    [ -d "$dir" ] || continue
    id=${dir#reverting.}
    try=1
    until put_back; do
        if [ $try -ge 3 ]; then
            say "could not put everything of $id back; the next boot tries again"
            result=1
            continue 2
        fi
        try=$((try + 1))
        sleep 2
    done
    [ -s "$dir/why" ] || printf '%s\n' "$why" >"$dir/why" 2>/dev/null || :
    mv -T "$dir" "reverted.$id" && say "$id is put back"
done
tidy
exit $result
"""


def text(units: str, boot_unit: str) -> str:
    """The script for a host whose own units are in `units` (a directory)."""
    return TEXT.replace("@UNITS@", units).replace("@BOOT@", boot_unit)
