//go:build !linux

package app

import "net"

// peerAccount is the account at the other end of a socket. The socket is open to this process's own account alone, so that is who it is.
func peerAccount(net.Conn) string { return "" }
