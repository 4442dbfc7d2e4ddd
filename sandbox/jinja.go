package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"

	"tandem/payload"
)

// jinja answers calls with templates in the language of Jinja2. It lives in a child, whose walls bound what a template can take: the engine
// itself bounds neither loops nor recursion.
type jinja struct{}

// jinjaStack is how deep a template may recurse before its process is given up, in bytes.
const jinjaStack = 64 << 20

func newJinja() (*jinja, error) {
	debug.SetMaxStack(jinjaStack)
	return &jinja{}, nil
}

func (*jinja) reset(context.Context) error { return nil }

// run fills in a template. The input is an object, whose fields are the variables of the template.
func (*jinja) run(_ context.Context, q *request, _ printing) *reply {
	started := time.Now()
	r := fillIn(q)
	r.duration = time.Since(started)
	return r
}

func fillIn(q *request) *reply {
	t, err := parseJinja(string(q.source))
	if err != nil {
		return &reply{kind: replyError, errorType: "TemplateSyntaxError", message: err.Error(), line: jinjaLine(err)}
	}
	input, err := payload.Decode(q.input)
	if err != nil {
		return &reply{kind: replyInvalid, message: err.Error()}
	}
	fields, ok := jinjaValue(input).(map[string]any)
	if !ok {
		return &reply{kind: replyError, errorType: "TypeError", message: "the input of a template is an object, whose fields are its variables"}
	}
	out := &bounded{limit: q.outputLimit}
	if err := t.Execute(out, exec.NewContext(fields)); err != nil {
		if out.full {
			return &reply{kind: replyLimit, limit: limitOutput}
		}
		return &reply{kind: replyError, errorType: "TemplateError", message: jinjaWords(err), line: jinjaLine(err)}
	}
	text, err := payload.Encode(out.b.String())
	if err != nil {
		return &reply{kind: replyInvalid, message: err.Error()}
	}
	if len(text) > q.outputLimit {
		return &reply{kind: replyLimit, limit: limitOutput}
	}
	return &reply{kind: replyValue, value: text}
}

// bounded takes so many bytes and then refuses, which ends the template.
type bounded struct {
	b     bytes.Buffer
	limit int
	full  bool
}

func (w *bounded) Write(b []byte) (int, error) {
	if w.b.Len()+len(b) > w.limit {
		w.full = true
		return 0, errors.New("the text is too long")
	}
	return w.b.Write(b)
}

// CheckJinja says what is wrong with the syntax of a template. It runs nothing.
func CheckJinja(source string) error {
	if len(source) > maxChecked {
		return nil // it is checked where it runs
	}
	_, err := parseJinja(source)
	return err
}

// maxChecked is how long a template may be that is read outside of a child.
const maxChecked = 32 << 10

// parseJinja reads a template. It cannot name other templates, and what is not the same every time is left out.
func parseJinja(source string) (*exec.Template, error) {
	settings := config.New()
	settings.KeepTrailingNewline = true
	t, err := exec.NewTemplate("template", settings, oneTemplate{source}, jinjaEnvironment())
	if err != nil {
		text := err.Error()
		if _, after, ok := strings.Cut(text, "'"+source+"': "); ok {
			text = after
		}
		return nil, errors.New(text)
	}
	return t, nil
}

func jinjaEnvironment() *exec.Environment {
	globals := exec.EmptyContext().Update(builtins.GlobalFunctions).Update(builtins.GlobalVariables)
	globals.Set("lipsum", func() string { return "" })
	filters := exec.NewFilterSet(map[string]exec.FilterFunction{}).Update(builtins.Filters)
	filters.Update(exec.NewFilterSet(map[string]exec.FilterFunction{
		"format": func(_ *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
			return exec.AsValue(formatted(in.String(), args.Args))
		},
		"random": func(*exec.Evaluator, *exec.Value, *exec.VarArgs) *exec.Value {
			return exec.AsValue(errors.New("random is not available: a template gives the same text every time"))
		},
	}))
	return &exec.Environment{Context: globals, Filters: filters, Tests: builtins.Tests,
		ControlStructures: builtins.ControlStructures, Methods: builtins.Methods}
}

var jinjaVerb = regexp.MustCompile(`%[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z%]`) // read-only

// formatted fills in a format as Python does: a whole number can be written with decimals, and any value as a text.
func formatted(format string, args []*exec.Value) string {
	return jinjaVerb.ReplaceAllStringFunc(format, func(verb string) string {
		kind := verb[len(verb)-1]
		if kind == '%' || len(args) == 0 {
			return strings.TrimSuffix(verb, "%")
		}
		arg := args[0]
		args = args[1:]
		switch kind {
		case 'd', 'i', 'u':
			return fmt.Sprintf(verb[:len(verb)-1]+"d", arg.Integer())
		case 'x', 'X', 'o':
			return fmt.Sprintf(verb, arg.Integer())
		case 'f', 'F', 'e', 'E', 'g', 'G':
			return fmt.Sprintf(verb, arg.Float())
		}
		return fmt.Sprintf(verb[:len(verb)-1]+"s", arg.String())
	})
}

// oneTemplate is a loader that has one template and refuses to load others.
type oneTemplate struct{ source string }

// Read implements loaders.Loader.
func (o oneTemplate) Read(name string) (io.Reader, error) {
	if name != "template" {
		return nil, fmt.Errorf("a template cannot load another (%q)", name)
	}
	return strings.NewReader(o.source), nil
}

// Resolve implements loaders.Loader.
func (o oneTemplate) Resolve(name string) (string, error) { return name, nil }

// Inherit implements loaders.Loader.
func (o oneTemplate) Inherit(string) (loaders.Loader, error) { return o, nil }

// jinjaValue is a decoded value as the engine takes it: whole numbers are integers.
func jinjaValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = jinjaValue(v[key])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jinjaValue(v[i])
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v)
		}
	case fmt.Stringer: // a number that keeps its digits
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(v.String(), 64); err == nil {
			return f
		}
		return v.String()
	}
	return v
}

var jinjaAt = regexp.MustCompile(`(?i)\bline:? (\d+)`) // read-only

// jinjaLine is the line that an error of the engine names, 0 if it names none.
func jinjaLine(err error) int {
	found := jinjaAt.FindStringSubmatch(err.Error())
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // it is made of digits; one that is too large is as good as none
	return n
}

// jinjaWords is an error of the engine without the words that every one of them begins with.
func jinjaWords(err error) string {
	return strings.TrimPrefix(err.Error(), "unable to execute template: ")
}
