package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tandem/fault"
	"tandem/sandbox"
	"tandem/workflow"
)

// syntaxTenant owns the interpreters that only read code. No workspace has this name.
const syntaxTenant = "/syntax"

// syntaxLimit is how long reading one function may take, once an interpreter is there.
const syntaxLimit = 5 * time.Second

// The programs that read code without running it, each in its own language, and return what is wrong.
const (
	readPython = `
def main(source):
    text = source.strip()
    for mode in ("exec", "eval"):
        try:
            compile(text, "<conversion>", mode)
            return None
        except SyntaxError as e:
            problem = {"line": e.lineno, "message": e.msg}
        except ValueError as e:
            problem = {"line": None, "message": str(e)}
        if not text.startswith(("lambda", "(")):
            break
    return problem
`
	readJavaScript = `
function main(source) {
  let problem = null
  for (const text of ["return (" + source + "\n)", source]) {
    try {
      new Function(text)
      return null
    } catch (e) {
      problem = {line: null, message: String(e.message)}
    }
  }
  return problem
}
`
)

// parses says what is wrong with a conversion function in Python or JavaScript, which is read where it would run.
func (i *Instance) parses(source string) error {
	language, program := workflow.LanguageOf(source), readPython
	if language == workflow.LanguageJavaScript {
		program = readJavaScript
	}
	input, err := json.Marshal(source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // an interpreter may have to be made first
	defer cancel()
	result, err := i.sandbox.Run(ctx, sandbox.Call{
		Waiting: func() {
			if i.notice != nil {
				i.notice(waitsForPython)
			}
		},
		Tenant: syntaxTenant, Language: sandbox.Language(language), Source: program, Entry: "main", Input: input, TimeLimit: syntaxLimit, MemoryMB: 256, Now: time.Now(),
	})
	if err != nil {
		if fault.CodeOf(err) == fault.Unsupported {
			return nil // it cannot run here either, and says so when it is to
		}
		return errors.New(fault.From(err).Message)
	}
	var problem *struct {
		Line    *int   `json:"line"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(result.Value, &problem); err != nil {
		return fmt.Errorf("what the interpreter says cannot be read: %w", err)
	}
	switch {
	case problem == nil:
		return nil
	case problem.Line != nil:
		return fmt.Errorf("line %d: %s", *problem.Line, problem.Message)
	}
	return errors.New(problem.Message)
}

// check is the check of a definition with an interpreter at hand, so that code is read too.
func (i *Instance) check(data []byte) (*workflow.Source, []workflow.Problem) {
	source, problems := workflow.Parse(data, workflow.Options{Kinds: i.kinds})
	if source == nil {
		return nil, problems
	}
	rules := Rules(i.kinds)
	rules.Conversion = i.parses
	return source, problemsOf(source, rules)
}
