// Package formtest is what every medium must do that draws the form of a question: whatever somebody fills in, the answer is the same as
// everywhere else. Only tests import it.
package formtest

import (
	"encoding/json"
	"errors"
	"html"
	"maps"
	"slices"
	"strings"
	"testing"

	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

// Case is a question, what somebody fills in, and what comes of it.
type Case struct {
	Name     string
	Question form.Question
	// Fill is what is filled in, by the path of the entry: as it is typed or, of choices, their values.
	Fill map[string][]string
	// Answer is the answer; empty: there is none, and Wrong are the paths of what is wrong.
	Answer string
	Wrong  []string
	// Needs is a kind of entry without which the question cannot be drawn: a medium that cannot draw it leaves the question to the response
	// page. Empty: every medium that has forms draws it.
	Needs form.Kind
	// Language is that of the reader.
	Language string
}

// Filled is what came of filling in a form.
type Filled struct {
	// Drawn says that the medium drew the form at all.
	Drawn bool
	// Answer is what it hands in, Wrong what it found wrong itself.
	Answer json.RawMessage
	Wrong  form.Problems
}

// LeftBy says that a medium leaves the question to the response page.
func (c *Case) LeftBy(m form.Medium) bool { return slices.Contains(m.Cannot, c.Needs) }

// Run lets a medium draw, fill in and read back every question, in both languages.
func Run(t *testing.T, medium form.Medium, fill func(t *testing.T, c Case) Filled) {
	t.Helper()
	for _, c := range Cases() {
		for _, language := range text.Languages() {
			c := c
			c.Language = language
			t.Run(c.Name+"/"+c.Language, func(t *testing.T) {
				t.Parallel()
				got := fill(t, c)
				if left := c.LeftBy(medium); left == got.Drawn {
					t.Fatalf("drawn is %v, and it is to be left to the page: %v", got.Drawn, left)
				}
				if got.Drawn {
					c.check(t, got)
				}
			})
		}
	}
}

func (c *Case) check(t *testing.T, got Filled) {
	t.Helper()
	wrong := got.Wrong
	if len(wrong) == 0 {
		_, err := c.Question.Read(got.Answer, true)
		if err != nil && !errors.As(err, &wrong) {
			t.Fatalf("the answer %s cannot be read: %v", got.Answer, err)
		}
	}
	var paths []string
	for _, p := range wrong {
		for _, language := range text.Languages() {
			if p.Text.In(language) == "" {
				t.Errorf("%s is not told in %s: %+v", p.Path, language, p.Text)
			}
		}
		paths = append(paths, strings.TrimPrefix(strings.TrimPrefix(p.Path, "response_data."), "input_data."))
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); !slices.Equal(paths, c.Wrong) {
		t.Fatalf("wrong are %q, want %q; the answer is %s (%v)", paths, c.Wrong, got.Answer, wrong)
	}
	if len(wrong) == 0 && plain(t, got.Answer) != plain(t, json.RawMessage(c.Answer)) {
		t.Errorf("the answer is %s, want %s", got.Answer, c.Answer)
	}
}

// plain is JSON in one form only.
func plain(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%q is not JSON: %v", raw, err)
	}
	out, err := payload.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Form is the form of a case, in the language of its reader.
func (c *Case) Form() *form.Form { return form.New(c.Question, c.Language) }

// Typed is what is filled in as one text.
func (c *Case) Typed(e *form.Entry) string { return strings.Join(c.Fill[e.Path()], ", ") }

// Unused are the paths that are filled in and that no entry has: a case that checks nothing.
func (c *Case) Unused() []string {
	f := c.Form()
	var list []string
	for _, path := range slices.Sorted(maps.Keys(c.Fill)) {
		if !slices.ContainsFunc(f.Entries, func(e form.Entry) bool { return e.Path() == path }) {
			list = append(list, path)
		}
	}
	return list
}

// Read reads what is filled in as texts, entry by entry: what a medium does that has nothing but texts.
func (c *Case) Read() Filled {
	f := c.Form()
	values := form.Values{}
	var wrong form.Problems
	for n := range f.Entries {
		e := &f.Entries[n]
		typed, filled := c.Fill[e.Path()]
		if !filled {
			if e.Default != nil && !e.Known { // it is there already
				values[n] = e.Default
			}
			continue
		}
		value, no := e.Read(strings.Join(typed, ", "))
		if no != nil {
			wrong = append(wrong, form.Problem{Path: e.Path(), Text: *no})
		}
		values[n] = value
	}
	return Filled{Drawn: true, Answer: f.Answer(values), Wrong: append(wrong, f.Missing(values)...)}
}

// Request is the question as its record has it: the request_data of an interaction.
func (c *Case) Request(t *testing.T) json.RawMessage {
	t.Helper()
	q := c.Question
	object := map[string]any{"interaction_type": q.Type, "title": c.Name, "allow_multiple": q.Multiple, "language": c.Language}
	for name, value := range map[string]any{"options": q.Options, "input_fields": q.Fields, "review": q.Review,
		"schema": q.Schema, "params": q.Params} {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != "null" {
			object[name] = json.RawMessage(raw)
		}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Touches says that nothing is filled in but what the question is about: a button is enough.
func (c *Case) Touches() bool {
	decision, _ := c.Form().Decision()
	return decision != nil && len(c.Fill) == 1 && len(c.Fill[decision.Path()]) == 1
}

// Value is data as programs write it, with escapes that nobody wants to read. Every medium shows it.
func Value() json.RawMessage {
	return json.RawMessage(`{"\u540d":"\u4e94 \u003cb\u003e \u0026 \u516d","list":["\u4e94"]}`)
}

// Readable refuses what a medium made of [Value] if people could not read it. Shown is a message as the medium is handed it: characters
// of HTML may stand in their entities, and if it is JSON, its texts are what is looked at.
func Readable(t *testing.T, shown string) {
	t.Helper()
	var v any
	if json.Unmarshal([]byte(shown), &v) == nil {
		shown = strings.Join(texts(v), "\n")
	}
	shown = html.UnescapeString(shown)
	for _, want := range []string{"名", "五 <b> & 六", "五"} {
		if !strings.Contains(shown, want) {
			t.Errorf("nobody can read %q in %s", want, shown)
		}
	}
	if strings.Contains(shown, `\u`) {
		t.Errorf("an escape is left in %s", shown)
	}
}

// texts are all texts of a decoded value, the names of its fields included.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, one := range v {
			list = append(list, texts(one)...)
		}
		return list
	case map[string]any:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(append(list, name), texts(v[name])...)
		}
		return list
	}
	return nil
}
