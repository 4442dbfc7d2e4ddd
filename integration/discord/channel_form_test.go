package discord

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/bwmarrin/discordgo"
	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/store"
)

// What is touched, picked or typed in Discord is the same answer as everywhere else; only what is drawn can be filled in.
func TestModal_Conforms(t *testing.T) {
	t.Parallel()
	formtest.Run(t, medium(), func(t *testing.T, c formtest.Case) formtest.Filled {
		i := store.Interaction{Workspace: "w1", ID: "i1", Purpose: c.Question.Purpose, Type: c.Question.Type, Status: store.InteractionPending, Request: c.Request(t)}
		var r human.Request
		if err := json.Unmarshal(i.Request, &r); err != nil {
			t.Fatal(err)
		}
		f := human.FormOf(i, r)
		decision, _ := f.Decision()
		if decision != nil && len(c.Fill) == 1 {
			if read := touched(t, &page{message: human.Message{Interaction: i, Request: r}}, decision, c.Fill[decision.Path()]); read != nil {
				values, wrong := read(f)
				return formtest.Filled{Drawn: true, Answer: f.Answer(values), Wrong: wrong}
			}
		}
		data, ok := modal(i, r, touch{interaction: i.ID})
		if !ok {
			return formtest.Filled{}
		}
		raw, err := json.Marshal(data.Components)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := checkRows(raw, 4); wrong != "" {
			t.Fatalf("Discord does not take the modal: %s: %s", wrong, raw)
		}
		typed := map[string]string{}
		drawn := map[string]bool{}
		for _, row := range gjson.ParseBytes(raw).Array() {
			in := row.Get("components.0")
			id := in.Get("custom_id").Str
			n, err := strconv.Atoi(id)
			if err != nil {
				t.Fatal(err)
			}
			e := &f.Entries[n]
			typed[id], drawn[e.Path()] = in.Get("value").Str, true
			if _, filled := c.Fill[e.Path()]; filled {
				typed[id] = c.Typed(e)
			}
		}
		for path := range c.Fill {
			if !drawn[path] {
				t.Fatalf("%s cannot be filled in: %s", path, raw)
			}
		}
		values, wrong := readInputs(f, typed)
		return formtest.Filled{Drawn: true, Answer: f.Answer(values), Wrong: wrong}
	})
}

// touched reads the buttons or the menu of a message as they come back; nil: it has none.
func touched(t *testing.T, p *page, decision *form.Entry, chosen []string) func(f *form.Form) (form.Values, form.Problems) {
	t.Helper()
	labels := make([]string, len(chosen))
	for n, value := range chosen {
		labels[n] = decision.Choices[slices.IndexFunc(decision.Choices, func(c form.Choice) bool { return c.Value == value })].Label
	}
	var numbers []string
	for _, row := range p.components() {
		for _, component := range row.(discordgo.ActionsRow).Components {
			switch c := component.(type) {
			case discordgo.Button:
				if back, ok := readTouch(c.CustomID); ok && back.do == doChoose && slices.Contains(labels, c.Label) {
					numbers = append(numbers, strconv.Itoa(back.n))
				}
			case discordgo.SelectMenu:
				for _, o := range c.Options {
					if slices.Contains(labels, o.Label) {
						numbers = append(numbers, o.Value)
					}
				}
			}
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return byNumbers(numbers...)
}
