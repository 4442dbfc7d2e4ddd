package form_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"tandem/human/form"
	"tandem/human/form/formtest"
	"tandem/text"
)

// Whatever is typed, the answer is the one of the table: what media do that have nothing but texts.
func TestForm_Conforms(t *testing.T) {
	t.Parallel()
	formtest.Run(t, form.Page(), func(t *testing.T, c formtest.Case) formtest.Filled {
		if unused := c.Unused(); len(unused) > 0 {
			t.Fatalf("no entry is filled in by %q", unused)
		}
		return c.Read()
	})
}

// The table has every type, purpose and scoring, and every kind of entry.
func TestCases_AreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range formtest.Cases() {
		seen[c.Question.Purpose] = true
		if c.Question.Purpose == form.PurposeNode {
			seen[c.Question.Type] = true
		}
		if c.Question.Review != nil {
			seen[c.Question.Review.Scoring] = true
		}
		f := c.Form()
		for n := range f.Entries {
			seen[string(f.Entries[n].Kind)] = true
		}
	}
	for _, want := range []string{
		form.Approval, form.Input, form.Selection, form.Review, form.PurposeNode, form.PurposeConfirm, form.PurposeParam, form.PurposeToolApproval, form.PurposeOutcomeUnknown, form.PurposeBudget,
		form.PurposeDrift, form.PurposeActivation, "pass_fail", "numeric_scale", "letter_grade", "checklist", "custom",
		string(form.Line), string(form.Area), string(form.Number), string(form.Email), string(form.Date), string(form.YesNo), string(form.Tick), string(form.One), string(form.Some), string(form.Score),
		string(form.File), string(form.JSON),
	} {
		if !seen[want] {
			t.Errorf("no question of the table has %s", want)
		}
	}
}

// A form says the same in both languages, entry by entry, and nothing of it is in the other one.
func TestForm_InBothLanguages(t *testing.T) {
	t.Parallel()
	han := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
	}
	for _, c := range formtest.Cases() {
		en, zh := form.New(c.Question, "en"), form.New(c.Question, "zh-CN")
		if len(en.Entries) != len(zh.Entries) || zh.Language != "zh" {
			t.Fatalf("%s: %d entries in English, %d in %s", c.Name, len(en.Entries), len(zh.Entries), zh.Language)
		}
		for n := range en.Entries {
			a, b := en.Entries[n], zh.Entries[n]
			if a.Path() != b.Path() || a.Kind != b.Kind || a.Required != b.Required || len(a.Choices) != len(b.Choices) {
				t.Errorf("%s: %v is %v in Chinese", c.Name, &a, &b)
			}
			for _, text := range []string{a.Label, a.Limits, a.Prompt, a.Written("en")} {
				if han(text) {
					t.Errorf("%s: %q is English", c.Name, text)
				}
			}
			for name, texts := range map[string][2]string{"limits": {a.Limits, b.Limits}, "how it is written": {a.Written("en"), b.Written("zh")}} {
				if (texts[0] == "") != (texts[1] == "") || texts[1] != "" && !han(texts[1]) {
					t.Errorf("%s %s: %s is %q", c.Name, a.Path(), name, texts)
				}
			}
		}
	}
}

func TestForm_Entries(t *testing.T) {
	t.Parallel()
	describe := func(f *form.Form) []string {
		var list []string
		for _, e := range f.Entries {
			line := e.Path() + " " + string(e.Kind) + " " + e.Label
			for _, more := range []string{e.About, e.Limits} {
				if more != "" {
					line += " | " + more
				}
			}
			if e.Default != nil {
				line += " = " + string(e.Default)
			}
			if e.Required {
				line += " !"
			}
			list = append(list, line)
		}
		return list
	}
	schema := json.RawMessage(`{"type":"object","required":["z"],"properties":{"z":{"type":"string","title":"Zed","description":"the last"},"a":{"type":"integer","minimum":2,"default":3},"d":{"type":"string","format":"date"},
		"deep":{"type":"object"},"any":{},"ref":{"$ref":"#/x"},"two":{"type":["string","number"]},"list":{"type":"array","items":{"enum":["x",1,null]},"minItems":1},"objects":{"enum":[{"a":1}]}}}`)
	for name, c := range map[string]struct {
		q    form.Question
		want []string
	}{
		"Schema": {form.Question{Type: form.Input, Schema: schema}, []string{
			"field_values.z line Zed | the last !", "field_values.a number a | At least 2. = 3", "field_values.d date d | Year-month-day, such as 2027-03-31.", "field_values.deep json deep", "field_values.any json any",
			"field_values.ref json ref", "field_values.two json two", "field_values.list some list | Choose at least 1.", "field_values.objects json objects", "notes area Notes (optional)",
		}},
		"NoProperties": {form.Question{Type: form.Input, Schema: json.RawMessage(`{"type":"object"}`)}, []string{"field_values json Answer (JSON) | A JSON object. !", "notes area Notes (optional)"}},
		"Broken":       {form.Question{Type: form.Input, Schema: json.RawMessage(`{"properties":{"a":`)}, []string{"field_values json Answer (JSON) | A JSON object. !", "notes area Notes (optional)"}},
		"Unknown":      {form.Question{Purpose: "riddle", Type: "riddle"}, []string{" json Answer (JSON) | A JSON object. !"}},
		"Lacking": {form.Question{Purpose: form.PurposeParam, Schema: json.RawMessage(`{"required":["a","b","c"],"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}}`),
			Params: map[string]json.RawMessage{"a": json.RawMessage("null"), "b": json.RawMessage(`"x"`), "d": json.RawMessage("null")}}, []string{
			"content.a line a !", `content.b line b = "x"`, "content.c line c", "content.d json d !", "description area Note (optional)",
		}},
		"NothingButNames": {form.Question{Purpose: form.PurposeParam, Params: map[string]json.RawMessage{"a": json.RawMessage("null")}}, []string{"content.a json a !", "description area Note (optional)"}},
		"Limits": {form.Question{Type: form.Input, Fields: []form.Field{{Name: "n", Type: "number", Validation: json.RawMessage(`{"max":5}`)}, {Name: "t", Validation: json.RawMessage(`{"min_length":2,"max_length":9}`)}}}, []string{
			"field_values.n number n | At most 5.", "field_values.t line t | From 2 to 9 characters.", "notes area Notes (optional)",
		}},
	} {
		if diff := cmp.Diff(c.want, describe(form.New(c.q, "en"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What somebody types is read in either language.
func TestEntry_Read(t *testing.T) {
	t.Parallel()
	custom := form.New(form.Question{Type: form.Review, Review: &form.Rules{Criteria: []string{"a"}, Scoring: "custom", Min: 1, Max: 5}}, "en").Entries[0]
	passes := form.New(form.Question{Type: form.Review, Review: &form.Rules{Criteria: []string{"a"}, Scoring: "pass_fail"}}, "zh").Entries[0]
	approval := form.New(form.Question{Options: []form.Option{{Value: "pay", Label: "Pay it", Outcome: form.Confirmed}, {Value: "wait"}, {Value: "refuse", Outcome: form.Rejected}}}, "en").Entries[0]
	either := form.New(form.Question{Options: []form.Option{{Value: "pay", Outcome: form.Confirmed}, {Value: "half", Outcome: form.Confirmed}, {Value: "refuse", Outcome: form.Rejected}}}, "en").Entries[0]
	numbers := form.New(form.Question{Purpose: form.PurposeBudget}, "en").Entries[0]
	result := form.New(form.Question{Purpose: form.PurposeOutcomeUnknown}, "en").Entries[1]
	some := form.New(form.Question{Type: form.Selection, Multiple: true, Options: []form.Option{{Value: "a"}, {Value: "b, c"}}}, "en").Entries[0]
	for _, c := range []struct {
		entry       form.Entry
		typed, want string
		wrong       string
	}{
		{custom, " b ", `"B"`, ""}, {custom, "PASS", "true", ""}, {custom, "不通过", "false", ""}, {custom, "2.50", "2.50", ""}, {custom, "E", "", "a number from 1 to 5, a letter from A to F"},
		{passes, "通过", "true", ""}, {passes, "n", "false", ""}, {passes, "perhaps", "", "y or n was expected"}, {passes, "", "", ""},
		{approval, "pay IT", `"pay"`, ""}, {approval, "y", `"pay"`, ""}, {approval, "否", `"refuse"`, ""}, {approval, "hm", "", `"hm" is none of pay, wait, refuse`}, {either, "y", "", "none of"},
		{numbers, "+5", "5", ""}, {numbers, "007", "7", ""}, {numbers, "0x10", "", "a number was expected"}, {numbers, "12.50", "12.50", ""},
		{result, `{"a": 1}`, `{"a":1}`, ""}, {result, "as it was", `"as it was"`, ""}, {result, `{"a"`, "", "not valid JSON"},
		{some, "b, c", `["b, c"]`, ""}, {some, "a，a", `["a","a"]`, ""}, {some, "a, d", "", `"d" is none of`},
		{some, strings.Repeat("x", 300<<10), "", "too long"},
	} {
		got, wrong := c.entry.Read(c.typed)
		if string(got) != c.want || (wrong == nil) != (c.wrong == "") || wrong != nil && !strings.Contains(wrong.In("en"), c.wrong) {
			t.Errorf("%s %.40q: %s, %v", c.entry.Path(), c.typed, got, wrong)
		}
	}
}

func TestForm_About(t *testing.T) {
	t.Parallel()
	f := form.New(form.Question{Type: form.Input, Fields: []form.Field{{Name: "a"}, {Name: "a.b"}, {Name: "c"}}}, "en")
	for path, want := range map[string]int{
		"response_data.field_values.a": 0, "response_data.field_values.a.b": 1, "response_data.field_values.a[2]": 0, "field_values.c.deep": 2, "response_data.notes": 3, "response_data": -1, "response_data.field_values": -1, "": -1,
	} {
		if got := f.About(path); got != want {
			t.Errorf("%s is about %d, want %d", path, got, want)
		}
	}
}

// What a medium cannot draw is left to the page; notes are left out where that helps.
func TestMedium_Draw(t *testing.T) {
	t.Parallel()
	review := func(criteria int) form.Question {
		names := []string{"a", "b", "c", "d", "e", "f"}[:criteria]
		return form.Question{Type: form.Review, Review: &form.Rules{Criteria: names}}
	}
	options := func(n int, value string) (list []form.Option) {
		for i := range n {
			list = append(list, form.Option{Value: value + string(rune('a'+i%26)) + string(rune('a'+i/26))})
		}
		return list
	}
	optional := form.Question{Type: form.Input, Fields: []form.Field{{Name: "f", Type: "file"}, {Name: "t"}}}
	long := form.Question{Type: form.Input, Fields: []form.Field{{Name: strings.Repeat("x", 300)}}}
	novel := form.Question{Type: form.Input, Fields: []form.Field{{Name: "t", Validation: json.RawMessage(`{"min_length":5000}`)}}}
	for name, c := range map[string]struct {
		medium form.Medium
		q      form.Question
		want   []int
	}{
		"FiveOfFive":         {discordLike(), review(4), []int{0, 1, 2, 3, 4}},
		"NotesGoFirst":       {discordLike(), review(5), []int{0, 1, 2, 3, 4}},
		"Six":                {discordLike(), review(6), nil},
		"PageHasAll":         {form.Page(), review(6), []int{0, 1, 2, 3, 4, 5, 6}},
		"FileOfSlack":        {slackLike(), optional, nil},
		"FileOfPage":         {form.Page(), optional, []int{0, 1, 2}},
		"FileOfGateway":      {gatewayLike(), optional, []int{1, 2}},
		"LongName":           {slackLike(), long, nil},
		"LongNameElsewhere":  {discordLike(), long, []int{0, 1}},
		"HundredOptions":     {slackLike(), form.Question{Type: form.Selection, Options: options(100, "")}, []int{0, 1}},
		"TooManyOptions":     {slackLike(), form.Question{Type: form.Selection, Options: options(101, "")}, nil},
		"LongOption":         {slackLike(), form.Question{Type: form.Selection, Options: options(2, strings.Repeat("x", 150))}, nil},
		"SeveralOfGateway":   {gatewayLike(), form.Question{Type: form.Selection, Multiple: true, Options: options(2, "")}, []int{0, 1}},
		"SeveralOfAnEarlier": {gatewayLike(form.Some), form.Question{Type: form.Selection, Multiple: true, Options: options(2, "")}, nil},
		"Telegram":           {telegramLike(), form.Question{}, nil},
		"Novel":              {slackLike(), novel, nil},
	} {
		got, ok := c.medium.Draw(form.New(c.q, "en"))
		if !slices.Equal(got, c.want) || ok != (c.want != nil) {
			t.Errorf("%s: %v, %v; want %v", name, got, ok, c.want)
		}
	}
	for name, c := range map[string]struct {
		medium  form.Medium
		q       form.Question
		buttons int
		more    bool
	}{
		"Approval":  {slackLike(), form.Question{}, 2, true},
		"Confirm":   {slackLike(), form.Question{Purpose: form.PurposeConfirm}, 2, false},
		"Outcome":   {discordLike(), form.Question{Purpose: form.PurposeOutcomeUnknown}, 3, false}, // its result is JSON, which a page takes
		"Several":   {slackLike(), form.Question{Type: form.Selection, Multiple: true, Options: options(2, "")}, 0, false},
		"TooMany":   {teamsLike(), form.Question{Type: form.Selection, Options: options(7, "")}, 0, false},
		"Form":      {slackLike(), optional, 0, false},
		"NoButtons": {form.Page(), form.Question{}, 0, false},
		"Telegram":  {telegramLike(), form.Question{}, 2, false},
	} {
		decision, more := c.medium.Decides(form.New(c.q, "en"))
		buttons := 0
		if decision != nil {
			buttons = len(decision.Choices)
		}
		if buttons != c.buttons || more != c.more {
			t.Errorf("%s: %d buttons, more %v", name, buttons, more)
		}
	}
}

// What is known stands beside what is given, and is not an answer by itself; what somebody empties is not given.
func TestForm_AnswerWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	f := form.New(form.Question{Purpose: form.PurposeParam, Schema: json.RawMessage(`{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`),
		Params: map[string]json.RawMessage{"a": json.RawMessage("null"), "b": json.RawMessage(`"x"`)}}, "en")
	for want, values := range map[string]form.Values{
		`{"content":{}}`:                            {},
		`{"content":{"a":"1","b":"x"}}`:             {0: json.RawMessage(`"1"`)},
		`{"content":{"a":"1"}}`:                     {0: json.RawMessage(`"1"`), 1: nil},
		`{"content":{"b":"y"}}`:                     {1: json.RawMessage(`"y"`)},
		`{"content":{"b":"x"},"description":"any"}`: {2: json.RawMessage(`"any"`)},
	} {
		if got := f.Answer(values); string(got) != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
	if got := f.Answer(form.Values{1: json.RawMessage(`"x"`)}); string(got) != `{"content":{}}` {
		t.Errorf("what was known already is taken for an answer: %s", got)
	}
}

// What makes no sense beside a decision is not asked for where that can be; where somebody has filled it in all the same, they hear of it.
func TestForm_ResultOfWhatWasNotDone(t *testing.T) {
	t.Parallel()
	q := form.Question{Purpose: form.PurposeOutcomeUnknown}
	f := form.New(q, "en")
	values := form.Values{0: json.RawMessage(`"not_done"`), 1: json.RawMessage(`{"id":7}`)}
	if f.Wanted(1, values) || !f.Wanted(1, form.Values{0: json.RawMessage(`"done"`)}) {
		t.Error("a result is wanted of what was done, and of nothing else")
	}
	_, err := q.Read(f.Answer(values), true)
	problems, _ := err.(form.Problems)
	if len(problems) != 1 || f.About(problems[0].Path) != 1 {
		t.Errorf("%s: %v", f.Answer(values), err)
	}
	values[0] = json.RawMessage(`"done"`)
	if got, err := q.Read(f.Answer(values), true); err != nil || string(got.Data) != `{"id":7}` || got.Unknown != "done" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestText_With(t *testing.T) {
	t.Parallel()
	got := text.Beside("%q of %s", "没有。").With("a", "b")
	if want := text.Beside(`"a" of b`, "没有。"); !got.Equal(want) {
		t.Errorf("%+v", got)
	}
}

// Media as there are, with the bounds that they have; the package of each says what its own are.

func slackLike() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Entries: 99, Choices: 100, Buttons: 25, NameSize: 240, ValueSize: 150, TextSize: 3000}
}

func discordLike() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Entries: 5, Choices: 25, Buttons: 25, TextSize: 4000}
}

func teamsLike() form.Medium {
	return form.Medium{Cannot: []form.Kind{form.File, form.JSON}, Buttons: 6}
}

func gatewayLike(nor ...form.Kind) form.Medium {
	return form.Medium{Cannot: append([]form.Kind{form.File, form.JSON}, nor...), LeavesOut: true}
}

func telegramLike() form.Medium {
	return form.Medium{Cannot: []form.Kind{
		form.Line, form.Area, form.Number, form.Email, form.Date, form.YesNo, form.Tick, form.One, form.Some, form.Score, form.File, form.JSON,
	}, Buttons: 99}
}
