package slack

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/store"
)

// asRecord is a question of the table as a channel gets it.
func asRecord(t *testing.T, c *formtest.Case) (store.Interaction, human.Request) {
	t.Helper()
	i := store.Interaction{Workspace: "w1", ID: "i1", Purpose: c.Question.Purpose, Type: c.Question.Type, Status: store.InteractionPending, Request: c.Request(t)}
	var r human.Request
	if err := json.Unmarshal(i.Request, &r); err != nil {
		t.Fatal(err)
	}
	return i, r
}

// What is touched or filled in in Slack is the same answer as everywhere else; only what is drawn can be filled in.
func TestModal_Conforms(t *testing.T) {
	t.Parallel()
	formtest.Run(t, medium(), func(t *testing.T, c formtest.Case) formtest.Filled {
		i, r := asRecord(t, &c)
		f := human.FormOf(i, r)
		if decision, _ := f.Decision(); c.Touches() {
			if list, _ := choices(f, touch{Interaction: i.ID}); len(list) > 0 {
				return filled(f, human.Choose(c.Fill[decision.Path()]...))
			}
		}
		view, ok := modal(i, r, touch{Interaction: i.ID})
		if !ok {
			return formtest.Filled{}
		}
		raw, err := json.Marshal(view)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := checkView(raw); wrong != "" {
			t.Fatalf("Slack does not take the view: %s: %s", wrong, raw)
		}
		s := state{}
		for _, b := range gjson.GetBytes(raw, "blocks").Array() {
			if b.Get("type").Str == "input" {
				fillBlock(t, b, &c, s)
			}
		}
		for path := range c.Fill {
			if _, drawn := s[path]; !drawn {
				t.Fatalf("%s cannot be filled in: %s", path, raw)
			}
		}
		return filled(f, s.readForm)
	})
}

func filled(f *form.Form, read reader) formtest.Filled {
	values, wrong := read(f)
	return formtest.Filled{Drawn: true, Answer: f.Answer(values), Wrong: wrong}
}

// fillBlock fills in a block as Slack sends it back: with what was there already unless somebody changes it.
func fillBlock(t *testing.T, b gjson.Result, c *formtest.Case, s state) {
	t.Helper()
	path, e := b.Get("block_id").Str, b.Get("element")
	given, isFilled := c.Fill[path]
	var options []string
	for _, o := range e.Get("options").Array() {
		options = append(options, o.Get("value").Str)
	}
	var one entered
	switch kind := e.Get("type").Str; kind {
	case "static_select", "radio_buttons", "checkboxes", "multi_static_select":
		if !isFilled {
			for _, o := range append(e.Get("initial_options").Array(), e.Get("initial_option")) {
				if o.Get("value").Exists() {
					given = append(given, o.Get("value").Str)
				}
			}
		}
		for _, value := range given {
			if !slices.Contains(options, value) {
				if value == "false" && kind == "checkboxes" {
					continue // it is left empty
				}
				t.Fatalf("%s does not offer %q: %q", path, value, options)
			}
			if kind == "static_select" || kind == "radio_buttons" {
				one.Selected = &picked{value}
			} else {
				one.Several = append(one.Several, picked{value})
			}
		}
	case "datepicker":
		if one.Date = e.Get("initial_date").Str; isFilled {
			one.Date = given[0]
		}
	default:
		if isFilled && kind == "number_input" && c.Answer != "" {
			if _, err := strconv.ParseFloat(given[0], 64); err != nil {
				t.Fatalf("%s takes numbers only, and %q is right", path, given[0])
			}
		}
		if one.Value = e.Get("initial_value").Str; isFilled {
			one.Value = given[0]
		}
	}
	s[path] = map[string]entered{e.Get("action_id").Str: one}
}
