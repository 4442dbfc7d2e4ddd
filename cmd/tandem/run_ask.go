package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/x/term"

	"tandem/api"
	"tandem/app"
	"tandem/engine"
)

// asker puts questions of an execution to the person at the terminal. It belongs to one goroutine.
type asker struct {
	out   io.Writer
	typed *typed
	// follow is what draws meanwhile.
	follow follower
}

// newAsker returns nil when nobody can be asked: there must be a terminal on both sides.
func newAsker(in io.Reader, out io.Writer, f follower) *asker {
	file, ok := in.(*os.File)
	if _, drawn := f.(*treePrinter); !ok || !drawn || !term.IsTerminal(file.Fd()) {
		return nil
	}
	a := &asker{out: out, typed: newTyped(), follow: f}
	go a.typed.read(in) // it lives as long as the process: nothing can call a read of a terminal back
	return a
}

// typed are the lines that a person types. What was typed before a question was shown is no answer to it and is forgotten.
// Whoever reads adds to it, and the asker takes from it; mu is between them.
type typed struct {
	mu    sync.Mutex
	lines []string
	over  bool
	// news is told that something has changed.
	news chan struct{}
}

func newTyped() *typed { return &typed{news: make(chan struct{}, 1)} }

func (t *typed) read(in io.Reader) {
	for s := bufio.NewScanner(in); s.Scan(); {
		t.add(false, s.Text())
	}
	t.add(true) // Ctrl-D, or a terminal that is gone
}

func (t *typed) add(over bool, lines ...string) {
	t.mu.Lock()
	t.lines, t.over = append(t.lines, lines...), t.over || over
	t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default: // it has been told already
	}
}

// forget drops what was typed so far.
func (t *typed) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = nil
}

// next waits for a line. At the end of the input there is none, which is [app.ErrAsked].
func (t *typed) next(ctx context.Context) (string, error) {
	for {
		t.mu.Lock()
		if len(t.lines) > 0 {
			line := t.lines[0]
			t.lines = t.lines[1:]
			t.mu.Unlock()
			return line, nil
		}
		over := t.over
		t.mu.Unlock()
		if over {
			return "", app.ErrAsked
		}
		select {
		case <-t.news:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// ask shows a question and returns the answer. A question that a line cannot answer, and no answer, are [app.ErrAsked].
func (a *asker) ask(ctx context.Context, q api.UserInputRequest) (answer json.RawMessage, err error) {
	if err := a.follow.pause(); err != nil {
		return nil, err
	}
	defer a.follow.resume()
	a.typed.forget()
	var given any
	switch {
	case q.Purpose == engine.PurposeOutcomeUnknown:
		given, err = a.choose(ctx, q)
	case q.Purpose == "param":
		given, err = a.fill(ctx, q)
	case q.Purpose == "tool_approval", q.InteractionType == "approval", q.InteractionType == "confirmation":
		given, err = a.approve(ctx, q)
	default:
		return nil, app.ErrAsked
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(given)
}

// approve asks yes or no.
func (a *asker) approve(ctx context.Context, q api.UserInputRequest) (any, error) {
	if err := a.show(q); err != nil {
		return nil, err
	}
	for {
		line, err := a.line(ctx, "Allow it? [y/n] ")
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(line) {
		case "y", "yes", "是":
			return map[string]bool{"approved": true}, nil
		case "n", "no", "否":
			return map[string]bool{"approved": false}, nil
		}
	}
}

// choose asks for one of the options.
func (a *asker) choose(ctx context.Context, q api.UserInputRequest) (any, error) {
	var options []string
	if err := json.Unmarshal(q.Options, &options); err != nil || len(options) == 0 {
		return nil, app.ErrAsked
	}
	if err := a.show(q); err != nil {
		return nil, err
	}
	for {
		line, err := a.line(ctx, "One of "+strings.Join(options, ", ")+": ")
		if err != nil {
			return nil, err
		}
		if slices.Contains(options, line) {
			return map[string]string{"outcome": line}, nil
		}
	}
}

// slot is what is read of the schema of a value that is missing.
type slot struct {
	Type        any    `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
}

// fill asks for every value that is missing. Whether it fits is for the node to say, which asks again.
func (a *asker) fill(ctx context.Context, q api.UserInputRequest) (any, error) {
	var schema struct {
		Properties map[string]slot `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(q.Schema, &schema); err != nil || len(schema.Properties) == 0 {
		return nil, app.ErrAsked
	}
	q.Arguments = nil // what is known is not asked for
	if err := a.show(q); err != nil {
		return nil, err
	}
	content := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		s, prompt := schema.Properties[name], name
		if about := cmp.Or(s.Description, s.Title); about != "" {
			prompt += " (" + about + ")"
		}
		if len(s.Enum) > 0 {
			prompt += fmt.Sprintf(" %v", s.Enum)
		}
		line, err := a.line(ctx, oneLine(prompt)+": ")
		for err == nil && line == "" && slices.Contains(schema.Required, name) {
			line, err = a.line(ctx, oneLine(prompt)+": ")
		}
		if err != nil {
			return nil, err
		}
		if line == "" {
			continue
		}
		var value any = line
		if s.Type != "string" && json.Valid([]byte(line)) {
			value = json.RawMessage(line)
		}
		content[name] = value
	}
	return map[string]any{"content": content}, nil
}

// show tells what a question is about.
func (a *asker) show(q api.UserInputRequest) error {
	text := "\n" + oneLine(cmp.Or(q.Title, q.Purpose)) + "\n"
	if q.Description != "" && q.Description != q.Title {
		text += oneLine(q.Description) + "\n"
	}
	if len(q.Arguments) > 0 {
		var args map[string]json.RawMessage
		if json.Unmarshal(q.Arguments, &args) != nil {
			args = map[string]json.RawMessage{"arguments": q.Arguments}
		}
		for _, name := range slices.Sorted(maps.Keys(args)) {
			text += "  " + oneLine(name) + ": " + oneLine(string(args[name])) + "\n"
		}
	}
	return a.print(text)
}

// line asks for one line.
func (a *asker) line(ctx context.Context, prompt string) (string, error) {
	if err := a.print(prompt); err != nil {
		return "", err
	}
	line, err := a.typed.next(ctx)
	if errors.Is(err, app.ErrAsked) {
		return "", errors.Join(err, a.print("\n"))
	}
	return strings.TrimSpace(line), err
}

func (a *asker) print(text string) error {
	if _, err := io.WriteString(a.out, text); err != nil {
		return fmt.Errorf("write the question: %w", err)
	}
	return nil
}
