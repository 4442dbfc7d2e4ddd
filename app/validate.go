package app

import (
	"io"

	"tandem/node"
	"tandem/validation"
	"tandem/workflow"
)

// Validate reports every problem of a workflow file's content, with its place.
func Validate(file string, data []byte) Report {
	s := validation.NewSyntax()
	defer s.Close()
	_, problems := check(data, Kinds(), s)
	return validation.NewReport(file, problems)
}

// ValidateFile is Validate for a file by name, or for stdin when the name is "-". A file that cannot be read is reported as a problem.
func ValidateFile(file string, stdin io.Reader) Report {
	data, problem := validation.ReadFile(file, stdin)
	if problem != nil {
		return validation.NewReport(file, []workflow.Problem{*problem})
	}
	return Validate(file, data)
}

// Report is what is wrong with one file.
type Report = validation.Report

// check reads a definition and reports all of its problems. The source is nil when it cannot be read at all. Without a syntax the
// code in it is not read.
func check(data []byte, kinds *node.Registry, code *validation.Syntax) (*workflow.Source, []workflow.Problem) {
	return validation.Checker{Kinds: kinds, Runs: kinds.Get, Code: code}.Check(data)
}

// check is the check of a definition with an interpreter at hand, so that code is read too.
func (i *Instance) check(data []byte) (*workflow.Source, []workflow.Problem) {
	return check(data, &i.registry, &validation.Syntax{Pool: i.sandbox, Waits: func() {
		if i.notice != nil {
			i.notice(waitsForPython)
		}
	}})
}
