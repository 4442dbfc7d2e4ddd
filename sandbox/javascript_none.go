//go:build 386 || arm || mips || mipsle

package sandbox

import "tandem/fault"

// newJavaScript has nothing to offer here: the engine's values are laid out in another way on 32 bits.
func newJavaScript() (interpreter, error) {
	return nil, fault.New(fault.Unsupported, "this build has no JavaScript interpreter; use a 64-bit one, or write the code in Python")
}
