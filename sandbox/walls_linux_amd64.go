package sandbox

import "golang.org/x/sys/unix"

// auditArch is how the kernel names this architecture to a seccomp filter.
const auditArch = unix.AUDIT_ARCH_X86_64
