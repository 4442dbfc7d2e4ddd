//go:build race && linux && (amd64 || arm64)

package sandbox

// detectorRoom is how many bytes of address space a byte may take: the race detector keeps shadows of all memory.
const detectorRoom = 8
