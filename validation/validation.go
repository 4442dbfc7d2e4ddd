// Package validation finds what is wrong with a definition that somebody has written, with all parts of Tandem at hand: expressions,
// placeholders, code in Python and JavaScript, kinds of nodes, secrets that stand in it. Package workflow knows the form of a definition
// alone; here the rest meets. Package app imports it and says which kinds there are.
package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/agent"
	"tandem/dataflow"
	"tandem/expr"
	"tandem/fault"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

// The codes of problems that are found here, besides those of package workflow and of the kinds (package node).
const (
	ProblemUnreadable   = "unreadable"
	ProblemInvalidCode  = "invalid_code"
	ProblemMissingField = "missing_field"
)

// Report is what is wrong with one file.
type Report struct {
	// File is the name the file was given by, "-" for standard input.
	File string `json:"file"`
	// Valid says that there is no error; there may be warnings.
	Valid    bool               `json:"valid"`
	Problems []workflow.Problem `json:"problems"`
}

// NewReport is the report of a file with these problems.
func NewReport(file string, problems []workflow.Problem) Report {
	if problems == nil {
		problems = []workflow.Problem{} // an empty list in JSON, not null
	}
	return Report{File: file, Valid: !workflow.HasErrors(problems), Problems: problems}
}

// Count returns how many errors and warnings there are.
func (r Report) Count() (failures, warnings int) {
	for _, p := range r.Problems {
		if p.Severity == workflow.SeverityWarning {
			warnings++
		} else {
			failures++
		}
	}
	return failures, warnings
}

// Checker checks definitions.
type Checker struct {
	// Kinds are the kinds that a definition may name.
	Kinds workflow.Kinds
	// Runs finds a kind that this program can run.
	Runs func(kind string) (node.Kind, bool)
	// Code reads code in Python and JavaScript. Nil: it is not read.
	Code *Syntax
}

// Check reads a definition and reports all of its problems. The source is nil when it cannot be read at all.
func (c Checker) Check(data []byte) (*workflow.Source, []workflow.Problem) {
	source, problems := workflow.Parse(data, workflow.Options{Kinds: c.Kinds})
	if source == nil {
		return nil, problems
	}
	return source, c.problems(source)
}

// problems are all problems of a definition that somebody has written.
func (c Checker) problems(source *workflow.Source) []workflow.Problem {
	rules := Rules(c.Kinds)
	if c.Code != nil {
		rules.Conversion = c.Code.conversion
	}
	problems := source.Validate(rules)
	var found []workflow.Problem
	for i := range source.Definition.Nodes {
		n := &source.Definition.Nodes[i]
		if n.Kind() != agent.TaskKind {
			continue
		}
		found = append(found, workflow.Problem{Severity: workflow.SeverityError, Code: workflow.ProblemUnknownKind,
			Path: fmt.Sprintf("nodes[%d].subtype", i)}.Saying(
			text.Of("the kind %s is for the tasks of agents, which make it themselves; use AI_AGENT.MCP_AGENT", agent.TaskKind)))
	}
	if c.Code != nil {
		found = append(found, c.Code.nodes(source.Definition, c.Kinds)...)
	}
	found = append(found, missingFields(source.Definition, c.Kinds)...)
	found = append(found, c.idleFillings(source.Definition, problems)...)
	found = append(found, InlineSecrets(source.Definition, problems)...)
	source.Locate(found)
	return append(problems, found...)
}

// runnable says that this program can run a kind that somebody has written.
func (c Checker) runnable(kind string) bool {
	_, runs := c.Runs(kind)
	return runs && kind != agent.TaskKind
}

// idleFillings warns of nodes that want to be filled, without a template, where nothing says with what. What a template says is known to a
// server.
func (c Checker) idleFillings(def *workflow.Definition, known []workflow.Problem) (found []workflow.Problem) {
	for i := range def.Nodes {
		n := &def.Nodes[i]
		at := fmt.Sprintf("nodes[%d].configurations.enable_filling", i)
		k, _ := c.Runs(n.Kind())
		if !c.runnable(n.Kind()) || !gjson.GetBytes(n.Configurations, "enable_filling").Bool() ||
			gjson.GetBytes(n.Configurations, "template_id").Exists() || node.Fillable(k.InputSchema.JSON()) ||
			slices.ContainsFunc(known, func(p workflow.Problem) bool { return p.Path == at }) {
			continue
		}
		found = append(found, workflow.Problem{Severity: workflow.SeverityWarning, Code: workflow.ProblemConfig,
			Path: at}.Saying(node.NothingToFill()))
	}
	return found
}

// Rules are the checks of a definition with all parts of Tandem at hand. Package workflow knows neither the expression
// language nor placeholders; here they meet. Code in Python and JavaScript is read by a [Syntax].
func Rules(kinds workflow.Kinds) workflow.Rules {
	return workflow.Rules{
		Kinds: kinds,
		Expression: func(source string) error {
			if err := expr.Check(source); err != nil {
				return errors.New(fault.From(err).Message)
			}
			return nil
		},
		References: references,
	}
}

// references lists the placeholders, those that cannot be read included.
func references(raw json.RawMessage) []workflow.Reference {
	found, err := dataflow.References(raw)
	if err != nil {
		return nil // not an object: reported as such by package workflow
	}
	var refs []workflow.Reference
	for _, r := range found {
		switch {
		case r.Problem != "":
			refs = append(refs, workflow.Reference{Path: r.Path, Raw: r.Raw, Problem: r.Problem})
		case r.Raw != node.ToBeChosen:
			refs = append(refs, workflow.Reference{Path: r.Path, Raw: r.Raw, Head: r.Head,
				Rest: strings.Join(r.Rest, "."), Certain: r.Node})
		}
	}
	return refs
}

// ReadFile reads a file, or stdin for "-", and never more than a definition may have.
func ReadFile(file string, stdin io.Reader) ([]byte, *workflow.Problem) {
	reader := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, unreadable(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, unreadable(err)
		}
		if info.IsDir() {
			return nil, problem(ProblemUnreadable, text.Of("cannot read the file: it is a directory; name a file"))
		}
		if info.Size() > workflow.DefaultMaxBytes {
			return nil, tooLarge()
		}
		reader = f
	}
	data, err := io.ReadAll(io.LimitReader(reader, workflow.DefaultMaxBytes+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(data) > workflow.DefaultMaxBytes {
		return nil, tooLarge()
	}
	return data, nil
}

func unreadable(err error) *workflow.Problem {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the report names the file
	}
	return problem(ProblemUnreadable, text.Of("cannot read the file: %s", err))
}

func tooLarge() *workflow.Problem {
	return problem(workflow.ProblemTooLarge, text.Of("the file has more than %d MiB, which no workflow needs; keep large data outside of it", workflow.DefaultMaxBytes>>20))
}

// problem is one of the file as a whole.
func problem(code string, words text.Text) *workflow.Problem {
	p := workflow.Problem{Severity: workflow.SeverityError, Code: code}.Saying(words)
	return &p
}
