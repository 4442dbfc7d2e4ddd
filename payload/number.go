package payload

import (
	"encoding/json"
	"strings"
)

// SameNumber takes 1, 1.0 and 1e0 for the same number, and tells large whole numbers apart that a float64 does not.
func SameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y && strings.ContainsAny(string(a)+string(b), ".eE")
}
