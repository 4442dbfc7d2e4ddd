package console

import (
	"errors"
	"strings"
	"testing"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/text"
)

// What somebody types at a terminal, prompt by prompt, is the same answer as everywhere else.
func TestAsker_Conforms(t *testing.T) {
	t.Parallel()
	formtest.Run(t, form.Page(), func(t *testing.T, c formtest.Case) formtest.Filled {
		q, err := newQuestion(api.Interaction{ID: "q", Purpose: c.Question.Purpose, InteractionType: c.Question.Type, RequestData: c.Request(t)}, c.Language)
		if err != nil {
			t.Fatal(err)
		}
		given, filled := form.Values{}, formtest.Filled{Drawn: true}
		for n := range q.form.Entries {
			e := &q.form.Entries[n]
			if !q.form.Wanted(n, given) || e.Known {
				continue
			}
			screen := &prompts{typed: newTyped(), line: c.Typed(e)}
			value, err := (&asker{out: screen, typed: screen.typed, language: c.Language}).entry(t.Context(), e)
			switch {
			case errors.Is(err, app.ErrAsked): // it was asked for again
				wrong := text.As("it is required")
				if screen.line != "" {
					wrong = text.As(strings.TrimSpace(screen.wrong))
				}
				filled.Wrong = append(filled.Wrong, form.Problem{Path: e.Path(), Text: wrong})
			case err != nil:
				t.Fatal(err)
			}
			given[n] = value
			if shown := screen.text.String(); !strings.Contains(shown, optional.In(c.Language)) != e.Required {
				t.Errorf("%s is asked for with %q", e.Path(), shown)
			}
			for _, choice := range e.Choices {
				if (e.Kind == form.One || e.Kind == form.Some) && !strings.Contains(screen.text.String(), choice.Value) {
					t.Errorf("%s does not offer %q in %q", e.Path(), choice.Value, screen.text.String())
				}
			}
		}
		filled.Answer = q.form.Answer(given)
		if len(filled.Wrong) > 0 { // what is insisted on is never handed in; the rest is told with it
			_, err := q.asked.Read(filled.Answer, true)
			problems, _ := errors.AsType[form.Problems](err)
			filled.Wrong = append(filled.Wrong, problems...)
		}
		return filled
	})
}

// prompts types a line at the first prompt, and leaves at the second.
type prompts struct {
	typed *typed
	line  string
	asked bool
	text  strings.Builder
	wrong string
}

func (p *prompts) Write(b []byte) (int, error) {
	p.text.Write(b)
	switch {
	case strings.HasSuffix(string(b), "\n"):
		if p.asked {
			p.wrong += string(b)
		}
	case p.asked:
		p.typed.addLines(true)
	default:
		p.asked = true
		p.typed.addLines(false, p.line)
	}
	return len(b), nil
}

// A reader of Chinese is asked in Chinese, and told so what is wrong.
func TestAsker_InChinese(t *testing.T) {
	t.Parallel()
	question := asked(t, "human_node", `{"interaction_type":"input","title":"T","input_fields":[{"name":"n","type":"number","required":true,"validation":{"min":1}},{"name":"size","type":"select","options":["S"]}]}`)
	q, err := newQuestion(question, "zh")
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{language: "zh"}
	for n, want := range []string{"  最小为 1。\n|n: ", "size:\n   1  S\n|（可选）选哪一项？", "|（可选）备注: "} {
		if prompt, above := a.prompt(&q.form.Entries[n]); above+"|"+prompt != want {
			t.Errorf("%q is asked as %q, want %q", q.form.Entries[n].Name, above+"|"+prompt, want)
		}
	}
	told := &client.Error{Fault: api.Fault{Errors: []api.FaultField{{Path: "response_data.field_values.n", Message: "it is less than 1"}}}}
	if got := q.wrong(told, []byte(`{"field_values":{"n":0}}`), "zh"); got != "  field_values.n: 数值过小，最小为 1。\n" {
		t.Errorf("it is told as %q", got)
	}
	if got := q.wrong(told, []byte(`{"field_values":{"n":0}}`), "en"); got != "  field_values.n: it is less than 1\n" {
		t.Errorf("it is told as %q", got)
	}
}
