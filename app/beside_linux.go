package app

import (
	"net"
	osuser "os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// peerAccount is the account of the operating system at the other end of a socket, which the kernel vouches for; empty if it does not say.
func peerAccount(c net.Conn) string {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return ""
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return ""
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return ""
	}
	id := strconv.FormatUint(uint64(peer.Uid), 10)
	if u, err := osuser.LookupId(id); err == nil && u.Username != "" {
		return "os:" + u.Username
	}
	return "os:" + id
}
