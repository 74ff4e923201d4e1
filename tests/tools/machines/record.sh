#!/bin/sh
# Records tests/programs/deep.c on an emulated machine, with that machine's own Linux and perf.
#
#   record.sh aarch64|s390x DIR     DIR: what was downloaded and built, kept; DIR/out: recordings, with perf's own answers
#
# Nothing is installed: packages of Debian 12 go into a private apt root and are only unpacked, into an initial RAM disk.
# Takes one to two minutes after the first time. Needs qemu-system-ARCH, cpio, zstd, curl's or apt's way to Debian, and the
# cross compilers.
set -eu
here=$(cd "$(dirname "$0")" && pwd) arch=$1
mkdir -p "$2" && cd "$2"
case $arch in
  aarch64) debian=arm64 kernel=linux-image-cloud-arm64 compilers="aarch64-linux-gnu-gcc arm-linux-gnueabihf-gcc" ;;
  s390x) debian=s390x kernel=linux-image-s390x compilers=s390x-linux-gnu-gcc ;;
  *) echo "no such machine here: $arch" >&2; exit 2 ;;
esac
for tool in "qemu-system-$arch" cpio zstd apt-get dpkg-deb $compilers; do
  command -v "$tool" >/dev/null || { echo "missing: $tool" >&2; exit 1; }
done

# The files of the machine.
if [ ! -e root ]; then
  mkdir -p apt/lists/partial apt/cache/archives/partial
  touch apt/status
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" > apt/sources.list
  apt="apt-get -q -o APT::Architecture=$debian -o APT::Architectures::=$debian -o APT::Install-Recommends=0
    -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=$PWD/apt/sources.list -o Dir::Etc::sourceparts=/nonexistent
    -o Dir::State=$PWD/apt -o Dir::State::status=$PWD/apt/status -o Dir::State::lists=$PWD/apt/lists -o Dir::Cache=$PWD/apt/cache"
  $apt update
  $apt install -y --download-only $kernel linux-perf busybox-static libc6 zstd
  mkdir unpacked
  for package in apt/cache/archives/*.deb; do dpkg-deb -x "$package" unpacked; done
  rm -rf unpacked/usr/share/doc unpacked/usr/share/man unpacked/usr/share/locale unpacked/usr/share/perl* unpacked/usr/lib/*/perl*
  mkdir unpacked/modules
  for module in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_mmio virtio_blk; do
    find unpacked/lib/modules -name "$module.ko" -exec cp {} unpacked/modules/ \;
  done
  cp unpacked/boot/vmlinuz-* vmlinuz
  rm -rf unpacked/boot unpacked/lib/modules apt
  ln -sf busybox unpacked/bin/sh
  mv unpacked root
fi

# The programs: each function is named after its callers.
rm -rf root/programs out && mkdir -p root/programs out
deep=$here/../../programs/deep.c flags="-O2 -g0 -fno-ipa-icf"
case $arch in
  aarch64)
    aarch64-linux-gnu-gcc $flags -fno-omit-frame-pointer -o root/programs/deep-fp "$deep"
    aarch64-linux-gnu-gcc $flags -fno-omit-frame-pointer -mbranch-protection=standard -o root/programs/deep-signed "$deep"
    aarch64-linux-gnu-gcc $flags -fomit-frame-pointer -o root/programs/deep-nofp "$deep"
    # 32-bit programs on the 64-bit kernel, Thumb and Arm: with call frame information, and with an exception index alone
    arm-linux-gnueabihf-gcc -O2 -g1 -fno-ipa-icf -mthumb -o root/programs/deep-thumb "$deep"
    arm-linux-gnueabihf-gcc $flags -marm -funwind-tables -static-libgcc -o root/programs/deep-exidx "$deep"
    arm-linux-gnueabihf-gcc $flags -marm -funwind-tables -static-libgcc -ffixed-lr -DSAVE_LINK -o root/programs/deep-saving "$deep"
    library=$(dirname "$(arm-linux-gnueabihf-gcc -print-file-name=libc.so.6)")
    cp "$library/libc.so.6" root/lib/libc-armhf.so.6
    mkdir -p root/lib/arm-linux-gnueabihf
    cp "$library/ld-linux-armhf.so.3" root/lib/
    mv root/lib/libc-armhf.so.6 root/lib/arm-linux-gnueabihf/libc.so.6
    ;;
  s390x) s390x-linux-gnu-gcc $flags -o root/programs/deep-nofp "$deep" ;;
esac
cp "$here/init.sh" root/init && chmod +x root/init
cp "$here/jobs.sh" root/programs/jobs.sh
(cd root && find . -print0 | cpio --null -o -H newc --quiet) > initrd.cpio

# Without icount the machine's clock is this one's. With SVE, perf requests a register that the software events of Linux
# 6.1 refuse; the architected signature of addresses is slow to emulate.
case $arch in
  aarch64) machine="-M virt -cpu max,pauth-impdef=on,sve=off,sme=off" console=ttyAMA0 disk=virtio-blk-pci ;;
  s390x) machine="-M s390-ccw-virtio -cpu max" console=ttysclp0 disk=virtio-blk-ccw ;;
esac
truncate -s 0 disk && truncate -s 256M disk
timeout 1800 "qemu-system-$arch" $machine -accel tcg -smp 1 -m 3072 -nographic -no-reboot -nodefaults -serial stdio \
  -kernel vmlinuz -initrd initrd.cpio -append "console=$console rdinit=/init panic=-1 quiet mitigations=off" \
  -drive if=none,id=d,file=disk,format=raw -device $disk,drive=d > console.txt 2>&1 < /dev/null || true
size=$(head -c 512 disk | tr -d ' \0')
[ -n "$size" ] || { echo "the machine left nothing; the end of its console:" >&2; tail -5 console.txt >&2; exit 1; }
tail -c +513 disk | head -c "$size" | zstd -dc | tar xf - -C out
rm disk initrd.cpio
