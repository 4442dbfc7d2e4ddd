package validation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/sandbox"
	"tandem/text"
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
            if any(word in text for word in ("def ", "lambda", "class ", "import ", "main")) or text.replace(".", "").isidentifier():
                return None
            return {"line": None, "message": "it defines no function; write def main(data): ..."}
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
      if (/\bfunction\b|=>|\bclass\b|\)\s*\{|[\w$]\s*\.\s*[\w$]+\s*;?\s*$|\bmain\b/.test(source)) return null
      return {line: null, message: "it defines no function; write function main(data) { ... }"}
    } catch (e) {
      problem = {line: null, message: String(e.message)}
    }
  }
  return problem
}
`
)

// Syntax reads code in the interpreters that would run it.
type Syntax struct {
	// Pool has the interpreters.
	Pool *sandbox.Pool
	// Waits is called when an interpreter has to be compiled first. May be nil.
	Waits func()
}

// NewSyntax is a syntax with interpreters of its own, for programs that have no instance. The interpreters are compiled once and kept with
// the user's other caches, if there is a place for those.
func NewSyntax() *Syntax {
	dir, err := sandbox.MachineCache()
	if err != nil {
		dir = "" // they are compiled anew
	}
	return &Syntax{Pool: sandbox.New(sandbox.Options{Dir: dir})}
}

// Close ends the interpreters.
func (s *Syntax) Close() { s.Pool.Close() }

// conversion says what is wrong with a conversion function in Python or JavaScript.
func (s *Syntax) conversion(source string) error { return s.check(workflow.LanguageOf(source), source) }

// check says what is wrong with code.
func (s *Syntax) check(language workflow.Language, source string) error {
	program := readPython
	if language == workflow.LanguageJavaScript {
		program = readJavaScript
	}
	input, err := json.Marshal(source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // an interpreter may have to be made first
	defer cancel()
	result, err := s.Pool.Run(ctx, sandbox.Call{
		Waiting: s.Waits,
		Tenant:  syntaxTenant, Language: sandbox.Language(language), Source: program, Entry: "main", Input: input, TimeLimit: syntaxLimit,
		MemoryMB: 256, Now: time.Now(),
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

// nodes are the problems of the code in the configurations of nodes.
func (s *Syntax) nodes(def *workflow.Definition, kinds workflow.Kinds) []workflow.Problem {
	var problems []workflow.Problem
	for i := range def.Nodes {
		n := &def.Nodes[i]
		kind, ok := kinds.Kind(n.Kind())
		if !ok {
			continue
		}
		plan, _ := kind.Plan(n)
		if plan.Traits.Code == workflow.CodeOfHost {
			continue
		}
		for _, path := range plan.Shielded {
			source := gjson.GetBytes(n.Configurations, strings.NewReplacer("[", ".", "]",
				"").Replace(strings.TrimPrefix(path, "configurations.")))
			language, known := codeLanguage(n, plan.Traits.Code, source.Str)
			if source.Type != gjson.String || strings.TrimSpace(source.Str) == "" || !known {
				continue
			}
			if err := s.check(language, source.Str); err != nil {
				problem := workflow.Problem{Severity: workflow.SeverityError, Code: ProblemInvalidCode,
					Path: fmt.Sprintf("nodes[%d].%s", i, path)}
				problems = append(problems, problem.Saying(text.Of("the %s code cannot be run: %s", language, err.Error())))
			}
		}
	}
	return problems
}

// codeLanguage is the language of code in a node: what its configuration says, else what the form of the code tells.
func codeLanguage(n *workflow.Node, code workflow.CodeLanguage, source string) (workflow.Language, bool) {
	if code == workflow.CodeNamed {
		language := strings.ToLower(gjson.GetBytes(n.Configurations, "language").String())
		switch {
		case language == "" && gjson.GetBytes(n.Configurations, "template_id").Exists():
			return "", false // the template may say
		case language == "":
			language = string(workflow.LanguagePython)
		}
		known := workflow.Language(language)
		return known, known == workflow.LanguagePython || known == workflow.LanguageJavaScript
	}
	language := workflow.LanguageOf(source)
	return language, language != workflow.LanguageExpression
}
