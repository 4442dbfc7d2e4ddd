// Package code holds the kinds that run programs: a function in the sandbox, the same as a tool of a model, and a script as a process of
// the host, which the operator has to allow. The process that watches over a script is in script_warden_linux.go.
//
// The package that puts a program together imports it, and so does the command's main, which may be started as that watching process
// ([IsWarden]).
package code

import (
	"tandem/builtin/toolset"
	"tandem/node"
)

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Scripts is what the operator allows of host processes; nil: none.
	Scripts *Scripts
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	return []node.Kind{
		executeScript(d.Scripts),
		runCode(),
		toolset.Kind(codeTool()),
	}
}
