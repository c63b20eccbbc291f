#!/bin/sh
# Runs inside the new root of a virtual machine: what a server has that a container has not, LVM and a boot loader.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

# The initrd holds what the emulated machine needs and no more, now and whenever the guest builds it anew:
# software emulation unpacks `most` of the modules for many seconds.
mkdir -p /etc/initramfs-tools/conf.d /etc/default/grub.d
echo MODULES=list > /etc/initramfs-tools/conf.d/lab
printf '%s\n' nvme ext4 dm_mod virtio_pci virtio_net > /etc/initramfs-tools/modules
cat > /etc/default/grub.d/lab.cfg <<'END'
GRUB_TIMEOUT=0
GRUB_TERMINAL=console
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="console=tty0 console=ttyS0,115200"
GRUB_DISABLE_OS_PROBER=true
END

# grub-pc itself would ask where to install. Its commands and hooks are in these, for the guest's next kernel.
apt-get -q -y install --no-install-recommends lvm2 grub2-common grub-pc-bin e2fsprogs
update-initramfs -u -k all
rm -f /usr/sbin/policy-rc.d /var/cache/apt/archives/*.deb

grub=/boot/grub/i386-pc
mkdir -p $grub
cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /usr/lib/grub/i386-pc/boot.img $grub/
grub-mkimage -O i386-pc -p '(,msdos1)/grub' -o $grub/core.img \
    biosdisk part_msdos ext2 normal configfile linux echo test search gzio
# Until the guest's first update-grub, which needs the guest's own devices.
cd /boot
cat > grub/grub.cfg <<END
linux /$(ls -t vmlinuz-* | head -n 1) root=$ROOT_DEVICE ro console=tty0 console=ttyS0,115200
initrd /$(ls -t initrd.img-* | head -n 1)
boot
END
