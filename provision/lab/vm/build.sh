#!/bin/sh
# Fills a system disk: build.sh WORK LOWER CUSTOMIZE, in mount and process tables of its own, with the layout in the
# environment. WORK has upper/, work/, root/, boot/ and disk.raw; boot/ and vmlinuz are what the caller needs after it.
set -eu
cd "$1"
mount -t overlay lab -o "lowerdir=$2,upperdir=upper,workdir=work" root
mount -t proc proc root/proc
mount -t tmpfs tmp root/tmp
chroot root sh -s < "$3"
umount root/proc root/tmp

cp -a root/boot/. boot/
find root/boot -mindepth 1 -delete
cp "$(ls -t boot/vmlinuz-* | head -n 1)" vmlinuz
fill() {
    # The file is sparse and reads as zeros: nothing has to be zeroed now, or by the guest later.
    mke2fs -q -F -t ext4 -L "$1" -U "$2" -d "$1" \
        -E "offset=$3,nodiscard,lazy_itable_init=0,lazy_journal_init=1" disk.raw "$(($4 / 1024))k"
}
fill boot "$BOOT_ID" "$BOOT_START" "$BOOT_SIZE"
fill root random "$ROOT_START" "$ROOT_SIZE"
