"""The program that puts a public key where the host's sshd looks for it, as text for its sh.

It runs as the account that logs in, before anything of ours is on the host: sh and coreutils have to do.
"""

from __future__ import annotations

# The key is its argument. StrictModes (sshd_config(5)) ignores keys below a home that others may
# write to, which is why modes are tightened on the way; nothing is ever loosened.
SCRIPT = r"""
set -eu
umask 077
key=$1
blob=$(printf '%s\n' "$key" | cut -d' ' -f2)
me=$(id -un)
entry=$(getent passwd "$me" 2>/dev/null || grep "^$me:" /etc/passwd)
home=$(printf '%s\n' "$entry" | cut -d: -f6)
fail() { printf 'gpu-provision: %s\n' "$*" >&2; exit 3; }
why='(a read-only disk, or a file server that takes no root?)'
# Others lose the right to write. Where they have none nothing is touched: a read-only disk would refuse that.
tighten() {
    case $(ls -ld "$1") in
    ?????w*|????????w*) ;;
    *) return ;;
    esac
    chmod go-w "$1" 2>/dev/null || fail "others may write to $1, so sshd ignores keys there $why"
}

pattern=
if [ "$(id -u)" = 0 ]; then
    PATH="$PATH:/usr/sbin:/sbin"
    pattern=$(sshd -T -C "user=$me,host=localhost,addr=127.0.0.1" 2>/dev/null |
        sed -n 's/^authorizedkeysfile //p' | head -n 1 | cut -d' ' -f1) || :
fi
if [ -z "$pattern" ]; then
    # Without root sshd does not tell; its files mostly can be read.
    pattern=$(cat /etc/ssh/sshd_config.d/*.conf /etc/ssh/sshd_config 2>/dev/null |
        sed -n 's/^[[:space:]]*[Aa]uthorized[Kk]eys[Ff]ile[[:space:]=]*//p' | head -n 1 | cut -d' ' -f1) || :
fi
case $pattern in
none) fail "sshd reads no key files here (AuthorizedKeysFile none)" ;;
'') pattern=.ssh/authorized_keys ;;
esac
file=$(printf '%s\n' "$pattern" | sed "s|%h|$home|g; s|%u|$me|g; s|%U|$(id -u)|g; s|%%|%|g")
case $file in /*) ;; *) file=$home/$file ;; esac
folder=$(dirname "$file")

case $file in
"$home"/*)
    [ -d "$home" ] || mkdir -p "$home" 2>/dev/null ||
        fail "the home $home is not there, and $me may not make it"
    tighten "$home"
    mkdir -p "$folder" 2>/dev/null || fail "$me may not write in $home $why"
    walk=$folder
    while [ "$walk" != "$home" ] && [ "$walk" != / ]; do tighten "$walk"; walk=$(dirname "$walk"); done
    mode=600 advice=" $why" ;;
*)
    [ -d "$folder" ] || (umask 022 && mkdir -p "$folder") 2>/dev/null ||
        fail "sshd looks for keys in $file, which $me may not write; let root put the key there"
    mode=644 advice='; let root put the key there' ;;
esac
[ -w "$folder" ] || fail "sshd looks for keys in $file, which $me may not write$advice"

if [ -f "$file" ] && grep -v '^[[:space:]]*#' "$file" | grep -q "^[a-z0-9@.-]* $blob"; then
    tighten "$file"
    said=there
else
    half=$file.gpu-provision
    old() { [ ! -f "$file" ] || { cat "$file" && { [ -z "$(tail -c 1 "$file")" ] || echo; }; }; }
    { old && printf '%s\n' "$key"; } >"$half" ||
        { rm -f "$half"; fail "$folder cannot be written (disk full?)"; }
    chmod "$mode" "$half"
    mv -f "$half" "$file"
    said=installed
fi
if command -v restorecon >/dev/null 2>&1; then restorecon -R "$folder" 2>/dev/null || :; fi
printf 'gpu-provision-key %s %s\n' "$said" "$file"
"""
