"""The program that puts the old state back, as text; a person on the host uses it, too.

It is written to the host before anything changes and runs from a timer or at boot, so it asks for no
more than sh, coreutils, flock and systemctl: the host's Python may be what broke.
"""

from __future__ import annotations

# Read beside state.py, which names the directories, and snapshot.py, which writes the manifest.
TEXT = r"""#!/bin/sh
# Written by gpu-provision. Puts back what nobody confirmed.
# by hand: commit-confirm.sh status | confirm [ID] | revert [ID]; systemd calls it with: timer ID | boot
set -u
PATH="$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
export PATH
cd "$(dirname "$0")" || exit 1
why=${1-}
wanted=${2-}
case $why in
status | confirm | timer | boot) ;;
revert) why=hand ;;
*) echo "usage: sh $0 status | confirm [ID] | revert [ID]" >&2; exit 2 ;;
esac
tab=$(printf '\t')

say() { printf 'gpu-provision: %s\n' "$*"; }

about() { cat "$1/shown" 2>/dev/null || echo "a change that nobody described"; }

status() {
    found=
    for dir in armed.* reverting.* done.* reverted.*; do
        [ -d "$dir" ] || continue
        found=1
        ended=
        [ ! -s "$dir/why" ] || ended=" ($(cat "$dir/why"))"
        say "${dir%%.*} ${dir#*.}: $(about "$dir")$ended"
        case $dir in
        armed.*) systemctl list-timers --no-pager "gpu-provision-revert-${dir#*.}.timer" ;;
        esac
    done
    [ -n "$found" ] || say "nothing is armed, and nothing was"
}

# As a proof from outside would: what is armed is kept.
confirm() {
    kept=
    for armed in armed.*; do
        [ -d "$armed" ] || continue
        id=${armed#armed.}
        [ -z "$wanted" ] || [ "$id" = "$wanted" ] || continue
        mv -T "$armed" "done.$id" 2>/dev/null || continue
        sync . 2>/dev/null || :
        systemctl stop "gpu-provision-revert-$id.timer" 2>/dev/null || :
        kept=1
        say "kept $id: $(about "done.$id")"
    done
    [ -n "$kept" ] || say "nothing waits for a confirmation"
    [ -n "$kept" ]
}

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

# A file that nobody wrote since needs nothing, and may be the one that cannot be written (chattr +i).
untouched() {
    [ -f "$2" ] && [ ! -L "$2" ] && [ ! -L "$1" ] && cmp -s "$1" "$2" || return 1
    [ "$(stat -c '%a %u %g %y' "$1")" = "$(stat -c '%a %u %g %y' "$2")" ]
}

# The copy beside the file needs no space to be put in place; the one in the snapshot is for the second try.
put_file() {
    ! untouched "$1" "$2" || return 0
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
            # At boot it was not to be started, if the change had disabled it.
            if [ "$why" = boot ]; then systemctl --no-block start "$unit" || failed=1
            elif [ "$now" != active ]; then
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
    [ -e "reverting.$id/begun" ] || return 0
    timeout 90 sh -e "reverting.$id/reload" && return 0
    # What cannot be reloaded is restarted, if its old files are good: a start that fails would leave nothing.
    [ -s "reverting.$id/units" ] && timeout 90 sh -e "reverting.$id/check" >/dev/null || return 1
    while IFS="$tab" read -r unit enabled active; do
        [ "$active" != active ] || systemctl restart "$unit" || return 1
    done <"reverting.$id/units"
}

# Last, as stopping or reloading a service may load or drop rules. A new kernel has nothing of the change in
# it, and its services load the old files; after a soft reboot it is the same kernel.
load() {
    [ -e "reverting.$id/begun" ] && [ -e "reverting.$id/loaded" ] || return 0
    [ "$why" != boot ] || [ "$(cat "reverting.$id/boot")" = "$(cat @BOOT_ID@)" ] || return 0
    (cd "reverting.$id" && sh ./loaded)
}

put_back() {
    # Files first: a daemon that will not reload is no reason to leave the new ones in place.
    done=0
    put_files || done=1
    put_units || done=1
    reload || done=1
    load || done=1
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

[ "$why" != status ] || { status; exit; }
result=0
[ "$why" != confirm ] || confirm || result=1

# Longer than a command may take that is making the change effective now: what it does last has to be undone.
exec 9>>lock
flock -w 90 9 || say "another holds the lock; going on without it"

[ "$why" = confirm ] || take
for dir in reverting.*; do
    [ -d "$dir" ] && [ "$why" != confirm ] || continue
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


def text(units: str, boot_unit: str, boot_id: str) -> str:
    """The script for a host whose own units are in the directory `units`, its boot's name in `boot_id`."""
    return TEXT.replace("@UNITS@", units).replace("@BOOT@", boot_unit).replace("@BOOT_ID@", boot_id)
