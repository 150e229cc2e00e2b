# SPDX-License-Identifier: GPL-2.0
# What is brought from Debian's archive, and in which version.

# The toolchain is Debian 12's: rustc 1.85 and clang 19 share LLVM 19.1.7,
# which CONFIG_RUST_INLINE_HELPERS needs.
tools_suite=bookworm
rust_version='1.85.0+dfsg3-1~deb12u3'
llvm_major=19

rust_packages="rustc-web=$rust_version libstd-rust-web-1.85=$rust_version
	libstd-rust-web-dev=$rust_version rust-web-src=$rust_version
	cargo-web=$rust_version rust-web-clippy=$rust_version
	rustfmt-web=$rust_version gcc libc6-dev"

# For `make test` without a usable cargo.
cargo_packages=$rust_packages

# For everything that builds or boots a kernel.
kernel_packages="$rust_packages clang-$llvm_major lld-$llvm_major
	llvm-$llvm_major libclang-$llvm_major-dev flex bison m4 bc libelf-dev
	libssl-dev pkgconf cpio rsync xz-utils python3-minimal
	libpython3-stdlib qemu-system-x86 qemu-system-arm busybox-static
	e2fsprogs fakeroot ccache"

# Programs of the sets above that are put in PATH, by wrappers.
cargo_programs="rustc rustdoc cargo cargo-clippy clippy-driver rustfmt cargo-fmt cc ar"
kernel_programs="$cargo_programs clang clang++ ld.lld ld.bfd lld llvm-ar llvm-nm
	llvm-objcopy llvm-objdump llvm-readelf llvm-strip llvm-link llvm-dis opt
	bindgen flex bison m4 bc pkg-config cpio rsync xz python3
	qemu-system-x86_64 qemu-system-aarch64 mke2fs ccache"
threads_programs="qemu-system-x86_64"

# What our own tools are built upon, beside Python.
workshop_packages="ninja-build"
workshop_programs="ninja"

# For boots with a host thread per guest CPU: with these QEMU 7.2 ends some of them in an oops (docs/measuring.md).
threads_suites="$tools_suite $tools_suite-backports"
threads_packages="qemu-system-x86/$tools_suite-backports qemu-system-common/$tools_suite-backports
	qemu-system-data/$tools_suite-backports seabios/$tools_suite-backports"

# What a package of the kernel is made with, beside.
deb_packages="kmod zstd"
deb_programs="depmod zstd"

# The guest's root filesystem, and what the kernel's selftests are built against.
guest_packages="base-files bash dash coreutils util-linux mount procps grep sed mawk
	findutils diffutils hostname debianutils kmod e2fsprogs libcap2-bin numactl
	stress-ng busybox-static libc-bin libgcc-12-dev libc6-dev libcap-dev libnuma-dev liburing-dev"

# The kernel source: the first of these suites that still has it.
source_suites="trixie-backports forky sid"
source_package=linux-source-7.3
# Debian's own configuration of it.
config_package=linux-config-7.3
# What the series is tried on beside it, in these suites and experimental.
other_packages="linux-source-7.3 linux-source-7.4"

# What fills in and draws the documents' figures, from Python's registry: in these versions, as others draw other bytes.
report_wheels="matplotlib==3.9.4 jinja2==3.1.6"

# Crates that are built: the newest that rustc 1.85 builds, and the kernel accepts.
bindgen_version=0.72.1
nextest_version=0.9.100
mutants_version=26.0.0
