package payload

import (
	"encoding/json"
	"math/big"
	"strings"
)

// MoreNumber says that a number is greater than another, also of large whole numbers that a float64 does not tell apart.
func MoreNumber(a, b json.Number) bool {
	x, errX := a.Float64()
	y, errY := b.Float64()
	if errX != nil || errY != nil || x != y || strings.ContainsAny(string(a)+string(b), ".eE") {
		return x > y
	}
	whole, ok := new(big.Int).SetString(string(a), 10)
	other, also := new(big.Int).SetString(string(b), 10)
	return ok && also && whole.Cmp(other) > 0
}

// SameNumber takes 1, 1.0 and 1e0 for the same number, and tells large whole numbers apart that a float64 does not.
func SameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y && strings.ContainsAny(string(a)+string(b), ".eE")
}
