//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"os"
	"syscall"
)

func executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func processAttributes() []*syscall.SysProcAttr { return []*syscall.SysProcAttr{nil} }

// raiseWalls has nothing to raise here: the interpreter and the deadline are what keeps code in, and Walls says so.
func raiseWalls() error { return nil }

func probeWalls() []Wall {
	const only = "not on this platform: only the interpreter keeps code in; use Linux for code you do not trust"
	environment := Wall{Name: "environment", How: only}
	if len(os.Environ()) == 0 {
		environment = Wall{Name: "environment", Up: true, How: "a child has no environment"}
	}
	return []Wall{{Name: "files", How: only}, {Name: "network", How: only}, {Name: "processes", How: only},
		{Name: "memory", How: only}, environment}
}
