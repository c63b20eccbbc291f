#!/bin/sh
# Stands in /usr/local/bin before each compiler of a lab host, and goes through the cache that lab hosts share.
# ccache keeps what compiles. NVIDIA's conftest.sh asks the kernel's headers some 500 questions, each a file of
# another name (conftestPID.c or standard input) of which many must fail to compile, and ccache keeps neither:
# their answers are kept here. An answer is looked up by the question, the options, the compiler and the kernel.
set -u
name=${0##*/}
compiler=/usr/bin/$name
store=${CCACHE_DIR:-/var/cache/ccache}/conftest

question= kernel= last=
for word; do
    case $word in
        conftest[0-9]*.c) question=$word ;;
        -o) question= ; break ;;
        */include/generated/autoconf.h) kernel=${word%/autoconf.h} ;;
    esac
    last=$word
done
[ "$last" = - ] && [ -n "$kernel" ] && question=-
[ -n "$question" ] && [ -f "$kernel/compile.h" ] && [ -f conftest.sh ] || exec ccache "$compiler" "$@"

work=$(mktemp -d) || exec "$compiler" "$@"
trap 'rm -rf "$work"' EXIT
if [ "$question" = - ]; then cat > "$work/in"; else cat "$question" > "$work/in"; fi
key=$({
    printf '%s\n' "$name" "$@" | sed 's/conftest[0-9][0-9]*/conftest/g'
    pwd
    "$compiler" -dumpfullversion
    cat "$kernel/compile.h" "$kernel/autoconf.h" conftest.sh "$work/in"
} | sha256sum)
answer=$store/${key%% *}
object=${question%.c}.o

if [ ! -d "$answer" ]; then
    rm -f "$object"
    if [ "$question" = - ]; then
        "$compiler" "$@" < "$work/in" > "$work/out" 2> "$work/err"
    else
        "$compiler" "$@" > "$work/out" 2> "$work/err"
    fi
    code=$?
    cat "$work/out"
    cat "$work/err" >&2
    # Only what the question itself decided is kept: not a full disk, not a compiler that was ended.
    if [ "$code" -eq 1 ] && grep -q 'error:' "$work/err" || [ "$code" -eq 0 ]; then
        grep -q -e 'No space left' -e 'internal compiler error' -e 'annot allocate' "$work/err" && exit "$code"
        [ ! -f "$object" ] || cp "$object" "$work/object"
        echo "$code" > "$work/code"
        rm "$work/in"
        mkdir -p "$store" && mv "$work" "$store/.$$" 2> /dev/null && mv -T "$store/.$$" "$answer" 2> /dev/null
        rm -rf "$store/.$$"
    fi
    exit "$code"
fi
cat "$answer/out"
cat "$answer/err" >&2
[ ! -f "$answer/object" ] || cp "$answer/object" "$object"
exit "$(cat "$answer/code")"
