//go:build !race && linux && (amd64 || arm64)

package sandbox

// detectorRoom is how many bytes of address space a byte may take: one, where no race detector keeps shadows.
const detectorRoom = 1
