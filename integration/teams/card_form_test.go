package teams

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tandem/human"
	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/store"
)

// What is pressed or filled in on a card is the same answer as everywhere else; only what is drawn can be filled in.
func TestCard_Conforms(t *testing.T) {
	t.Parallel()
	formtest.Run(t, medium(), func(t *testing.T, c formtest.Case) formtest.Filled {
		i := store.Interaction{Workspace: "w", ID: questionA, Purpose: c.Question.Purpose, Type: c.Question.Type, Status: store.InteractionPending, Request: c.Request(t)}
		var r human.Request
		if err := json.Unmarshal(i.Request, &r); err != nil {
			t.Fatal(err)
		}
		body, actions, ok := asked(human.Message{Interaction: i, Request: r})
		if !ok {
			return formtest.Filled{}
		}
		raw, err := json.Marshal(map[string]any{"body": body, "actions": actions})
		if err != nil {
			t.Fatal(err)
		}
		f := human.FormOf(i, r)
		values := map[string]json.RawMessage{}
		inputs := map[string]gjson.Result{}
		for _, in := range gjson.GetBytes(raw, "body").Array() {
			id := in.Get("id").Str
			inputs[id], values[id] = in, quote(in.Get("value").String())
		}
		option, pressed := "", false
		for n := range f.Entries {
			e := &f.Entries[n]
			filled, isFilled := c.Fill[e.Path()]
			in, drawn := inputs[inputID(e)]
			switch {
			case !isFilled:
			case drawn:
				values[inputID(e)] = quote(enter(t, in, e, filled, c.Answer != ""))
			case e.Decides:
				for _, a := range gjson.GetBytes(raw, "actions").Array() {
					if value := a.Get("data.tandem.option").Str; value == filled[0] {
						option, pressed = value, true
					}
				}
				if !pressed {
					t.Fatalf("there is no button for %q: %s", filled, raw)
				}
			default:
				t.Fatalf("%s cannot be filled in: %s", e.Path(), raw)
			}
		}
		read, wrong := submitted(values, option)(f)
		return formtest.Filled{Drawn: true, Answer: f.Answer(read), Wrong: wrong}
	})
}

// enter is what an input sends back, of which only what it offers can be chosen.
func enter(t *testing.T, in gjson.Result, e *form.Entry, filled []string, right bool) string {
	t.Helper()
	if _, err := strconv.ParseFloat(filled[0], 64); err != nil && right && in.Get("type").Str == "Input.Number" {
		t.Fatalf("%s takes numbers only, and %q is right", e.Path(), filled[0])
	}
	if in.Get("type").Str != "Input.ChoiceSet" {
		return strings.Join(filled, "")
	}
	var sent []string
	for _, value := range filled {
		label := e.Choices[slices.IndexFunc(e.Choices, func(c form.Choice) bool { return c.Value == value })].Label
		offered := in.Get("choices").Array()
		n := slices.IndexFunc(offered, func(c gjson.Result) bool { return c.Get("title").Str == label })
		if n < 0 {
			t.Fatalf("%s does not offer %q: %s", e.Path(), label, in.Raw)
		}
		sent = append(sent, offered[n].Get("value").Str)
	}
	return strings.Join(sent, ",")
}

func quote(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text can always be written
	}
	return raw
}
