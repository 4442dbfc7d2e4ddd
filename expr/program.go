package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/fault"
)

// What a program and an evaluation may cost. Time is the caller's to watch, see [Limits].
const (
	MaxSource  = 64 << 10 // bytes of source
	MaxDepth   = 200      // nested parentheses, brackets, calls, lambdas and prefix operators
	MaxChain   = 1_000    // operators or fields in one chain
	MaxSteps   = 100_000
	MaxBytes   = 1 << 20         // of values made during one evaluation, counted as they are made
	MaxResult  = 10 << 20        // of a result that was built, with what it shares with the data counted as often as it is shown
	MaxTime    = 5 * time.Second // far above what MaxSteps take, so that a busy machine fails nothing that an idle one evaluates
	MaxPattern = 1_000           // bytes of a pattern of matches
)

// Program is a compiled expression. It never changes after Compile.
type Program struct {
	source       string
	root         node
	names        []string // root names by slot, in order of appearance; placeholders have PlaceholderName
	placeholders []string
	paths        [][]string
	locals       int // how deep lambdas nest
}

// Env is the data an expression may read.
type Env interface {
	// Lookup returns the value of a root name, or of a placeholder by its PlaceholderName. Eval asks at most once per name.
	Lookup(name string) (any, bool)
	// Names lists the root names there are; it is asked only for the nearest name of an unknown one.
	Names() []string
	// Now is the start of the activation.
	Now() time.Time
}

// Vars is the simplest Env.
type Vars struct {
	Values map[string]any
	At     time.Time
}

// Lookup returns a value by name.
func (v Vars) Lookup(name string) (any, bool) { x, ok := v.Values[name]; return x, ok }

// Names lists the names, sorted.
func (v Vars) Names() []string { return sortedKeys(v.Values) }

// Now returns At.
func (v Vars) Now() time.Time { return v.At }

// Limits bounds one evaluation. A field that is zero means the Max constant of its name.
type Limits struct {
	Steps  int
	Bytes  int
	Result int
	// Expired is asked about every 256 steps and ends the evaluation by answering true. The caller owns the clock: it should
	// let MaxTime pass. Nil means never.
	Expired func() bool
}

// Compile parses an expression.
func Compile(source string) (*Program, error) { return compile(source, false) }

// Check says what is wrong with an expression that Compile would refuse, or returns nil. It is cheaper where nothing is
// evaluated: the patterns in the expression are judged and not compiled.
func Check(source string) error {
	_, err := compile(source, true)
	return err
}

func compile(source string, onlyCheck bool) (*Program, error) {
	if len(source) > MaxSource {
		return nil, fault.Newf(fault.ExpressionError, "expression has %d bytes, at most %d are allowed", len(source), MaxSource).
			With("position", position(source, 0))
	}
	toks, placeholders, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{source: source, toks: toks, onlyCheck: onlyCheck, prog: &Program{source: source, placeholders: placeholders},
		slots: map[string]int{}, seen: map[string]bool{}}
	if err := p.program(); err != nil {
		return nil, err
	}
	return p.prog, nil
}

// Source returns the text the program was compiled from.
func (p *Program) Source() string { return p.source }

// Roots returns the root names the program reads, sorted, without placeholders.
func (p *Program) Roots() []string {
	var roots []string
	for _, name := range p.names {
		if !strings.HasPrefix(name, "{{") {
			roots = append(roots, name)
		}
	}
	slices.Sort(roots)
	return roots
}

// Paths returns the paths the program reads as far as they are fixed in the source, sorted: `steps.fetch.rows[i].id` reads
// [steps fetch rows]. A trailing .length is left out, since it may be a count and not a field.
func (p *Program) Paths() [][]string {
	paths := make([][]string, len(p.paths))
	for i, path := range p.paths {
		paths[i] = slices.Clone(path)
	}
	return paths
}

// Placeholders returns the inner text of each placeholder, outer spaces removed, in order of first appearance and
// without repetition.
func (p *Program) Placeholders() []string { return slices.Clone(p.placeholders) }

// PlaceholderName is the name under which Eval looks up placeholder i. It is not an identifier, so no source can spell it.
func PlaceholderName(i int) string { return "{{" + strconv.Itoa(i) + "}}" }

// Eval evaluates the program.
func (p *Program) Eval(env Env, lim Limits) (any, error) {
	r := &run{prog: p, env: env, expired: lim.Expired, steps: orMax(lim.Steps, MaxSteps), bytes: orMax(lim.Bytes, MaxBytes)}
	r.left = pollEvery
	r.roots = make([]any, len(p.names)+p.locals)
	r.locals = r.roots[len(p.names):]
	for i := range p.names {
		r.roots[i] = unread{}
	}
	v, err := p.root.eval(r)
	if err != nil {
		return nil, err
	}
	return r.export(v, orMax(lim.Result, MaxResult))
}

func orMax(n, most int) int {
	if n <= 0 {
		return most
	}
	return n
}

// unread marks a root that has not been looked up yet.
type unread struct{}

// pollEvery is how many steps pass between two questions to Limits.Expired. A step is at most some microseconds of work.
const pollEvery = 256

// run is one evaluation; it belongs to the goroutine that called Eval.
type run struct {
	prog     *Program
	env      Env
	expired  func() bool
	roots    []any
	locals   []any
	args     []any // stack of arguments of the calls under way
	patterns map[string]*pattern
	steps    int // left to spend
	bytes    int // left to spend
	left     int // steps until the next poll
	at       int // byte offset of what is being evaluated, for errors
	built    bool
}

// step pays for n units of work. Everything that loops calls it, so nothing runs long between two polls.
func (r *run) step(n int) error {
	if n > r.steps {
		r.steps = 0
		return r.limit("steps", "takes more steps than its limit")
	}
	r.steps -= n
	if r.left -= n; r.left > 0 {
		return nil
	}
	r.left = pollEvery
	if r.expired != nil && r.expired() {
		return r.limit("time", "takes longer than its time limit")
	}
	return nil
}

// scan pays for reading n bytes.
func (r *run) scan(n int) error { return r.step(1 + n/64) }

// alloc pays for making a value of n bytes, before it is made.
func (r *run) alloc(n int) error {
	if n < 0 || n > r.bytes {
		r.bytes = 0
		return r.limit("bytes", "makes more data than its limit")
	}
	r.bytes -= n
	return r.scan(n)
}

func (r *run) limit(name, what string) error {
	return r.fail("the expression %s; make it simpler or give it less data", what).With("limit", name)
}

// fail makes the error of the evaluation at the current position.
func (r *run) fail(format string, args ...any) *fault.Error {
	return failAt(r.prog.source, r.at, format, args...)
}

// failAt makes an expression error with its position.
func failAt(source string, offset int, format string, args ...any) *fault.Error {
	pos := position(source, offset)
	return fault.Newf(fault.ExpressionError, "line %d, column %d: %s", pos["line"], pos["column"], fmt.Sprintf(format, args...)).
		With("position", pos)
}

// position counts line and column from 1, columns in characters.
func position(source string, offset int) map[string]any {
	before := source[:min(offset, len(source))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return map[string]any{"line": line, "column": column}
}
