package replies

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/human/form"
)

var updateConfusion = flag.Bool("update", false, "write the confusion table of the corpus of replies anew")

// labelled is a line of the corpus. The label none is everything that must not be taken for an answer, option:VALUE an option that is
// neither.
type labelled struct {
	Batch     int    `json:"batch"`
	Category  string `json:"category"`
	Lang      string `json:"lang"`
	Label     string `json:"label"`
	Text      string `json:"text"`
	Subject   string `json:"subject,omitempty"`
	Automatic bool   `json:"automatic,omitempty"`
	Listed    *bool  `json:"listed,omitempty"`
	Threaded  *bool  `json:"threaded,omitempty"`
	// Request names a question of requests.json; empty: paying an invoice.
	Request string `json:"request,omitempty"`

	question *Request
}

// reply is a reply to a question about paying an invoice, by an approver and in its thread.
func replyTo(language, text string) Text {
	q := Request{Type: form.Approval, Channel: "email", Language: language, Title: "Pay invoice INV-1042 to Acme", Description: "5,000 USD for the annual support plan."}
	if language == "zh" {
		q.Title, q.Description = "支付发票 INV-1042", "向 Acme 付款 5000 元，年度技术支持。"
	}
	asked := time.Date(2024, 5, 6, 10, 0, 0, 0, time.UTC)
	return Text{
		Request: q, Asked: asked, Received: asked.Add(time.Hour), Listed: true, Threaded: true,
		Reply: Reply{Channel: "email", From: "approver@example.com", Text: text},
	}
}

func (l labelled) asText() Text {
	t := replyTo(l.Lang, l.Text)
	if l.question != nil {
		t.Request = *l.question
	}
	t.Reply.Subject, t.Reply.Automatic = l.Subject, l.Automatic
	t.Listed = l.Listed == nil || *l.Listed
	t.Threaded = l.Threaded == nil || *l.Threaded
	return t
}

// readCorpus reads the corpus of replies with questions, once for all tests.
func readCorpus(t *testing.T) []labelled {
	t.Helper()
	corpusOnce.Do(func() { corpusRead = parseCorpus(t) })
	return corpusRead
}

// judgeCorpus is what each reply of the corpus is taken for, judged once for all tests.
func judgeCorpus(t *testing.T) []Judgement {
	t.Helper()
	corpusJudgedOnce.Do(func() {
		all := readCorpus(t)
		corpusJudged = make([]Judgement, len(all))
		atOnce(len(all), func(i int) { corpusJudged[i] = Classify(all[i].asText()) })
	})
	return corpusJudged
}

// What was read and judged of the corpus.
var (
	corpusOnce       sync.Once
	corpusRead       []labelled
	corpusJudgedOnce sync.Once
	corpusJudged     []Judgement
)

func parseCorpus(t *testing.T) []labelled {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "replies.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]*Request{}
	if named, err := os.ReadFile(filepath.Join("..", "testdata", "requests.json")); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(named, &requests); err != nil {
		t.Fatal(err)
	}
	var out []labelled
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var l labelled
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&l); err != nil {
			t.Fatalf("line %d: %v", len(out)+1, err)
		}
		if l.Request != "" {
			if l.question = requests[l.Request]; l.question == nil {
				t.Fatalf("line %d: requests.json has no %q", len(out)+1, l.Request)
			}
		}
		out = append(out, l)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// count is a row of the confusion table.
type count struct{ confirmed, rejected, option, uncertain, filtered int }

func (c count) all() int { return c.confirmed + c.rejected + c.option + c.uncertain + c.filtered }

func (c *count) add(j Judgement) {
	switch {
	case j.Classification == form.Confirmed:
		c.confirmed++
	case j.Classification == form.Rejected:
		c.rejected++
	case j.Classification != "":
		c.option++
	case j.Relevance == Filtered:
		c.filtered++
	default:
		c.uncertain++
	}
}

func (c count) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d |\n", name, c.confirmed, c.rejected, c.option, c.uncertain, c.filtered)
}

// TestClassify_Corpus wants no false answer at all, most of the true ones found, and the table as it was committed.
func TestClassify_Corpus(t *testing.T) {
	t.Parallel()
	corpus, judged := readCorpus(t), judgeCorpus(t)
	byLabel, byCategory, byBatch, languages := map[string]*count{}, map[string]*count{}, map[string]*count{}, map[string]int{}
	var missed []string
	for i, l := range corpus {
		j := judged[i]
		got := j.Classification
		switch got {
		case "":
			got = "none"
		case form.Confirmed, form.Rejected:
		default:
			got = "option:" + got
		}
		label, _, _ := strings.Cut(l.Label, ":")
		switch {
		case got == form.Confirmed && l.Label != form.Confirmed:
			t.Errorf("false approval, %s %s %q: %s", l.Category, l.Lang, l.Text, j.Reasoning)
		case got == form.Rejected && l.Label != form.Rejected:
			t.Errorf("false refusal, %s %s %q: %s", l.Category, l.Lang, l.Text, j.Reasoning)
		case got != "none" && got != l.Label:
			t.Errorf("wrong option %s, %s %s %q: %s", got, l.Category, l.Lang, l.Text, j.Reasoning)
		case got != l.Label:
			missed = append(missed, fmt.Sprintf("- %s: %s (%s)\n", l.Label, quoted(l.Text), j.Reasoning))
		}
		for table, key := range map[*map[string]*count]string{&byLabel: label, &byCategory: l.Category + " | " + label, &byBatch: fmt.Sprintf("%d | %s", l.Batch, label)} {
			if (*table)[key] == nil {
				(*table)[key] = &count{}
			}
			(*table)[key].add(j)
		}
		languages[l.Lang]++
	}
	if n := min(languages["zh"], languages["en"]); n < 300 {
		t.Errorf("the corpus has only %v replies by language", languages)
	}
	// The first batches answer one question in ways that the rules were written for. The later ones answer many, in any words, and long.
	least := map[int]int{1: 95, 2: 90, 3: 95, 4: 95, 5: 75, 6: 85, 7: 70}
	for batch, percent := range least {
		for _, label := range []string{form.Confirmed, form.Rejected} {
			c := byBatch[fmt.Sprintf("%d | %s", batch, label)]
			if c == nil {
				t.Errorf("batch %d has no replies labelled %s", batch, label)
				continue
			}
			found := c.confirmed
			if label == form.Rejected {
				found = c.rejected
			}
			if found*100 < c.all()*percent {
				t.Errorf("%d of %d replies labelled %s in batch %d were recognised; at least %d in 100 should be", found, c.all(), label, batch, percent)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What the rules make of the corpus\n\nWritten by `go test ./human/replies -run TestClassify_Corpus -update`: %d replies, %d Chinese and %d English. Rows are what a reply means, columns what it was taken for.\n\n", len(corpus), languages["zh"], languages["en"])
	b.WriteString("| label | confirmed | rejected | option | uncertain | filtered |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, key := range slices.Sorted(maps.Keys(byLabel)) {
		b.WriteString(byLabel[key].row(key))
	}
	b.WriteString("\nBatches 1 to 4 answer one question, about an invoice. The others answer many; 6 and 7 try to be mistaken for approvals.\n\n")
	b.WriteString("| batch | label | confirmed | rejected | option | uncertain | filtered |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, key := range slices.Sorted(maps.Keys(byBatch)) {
		b.WriteString(byBatch[key].row(key))
	}
	b.WriteString("\n| category | label | confirmed | rejected | option | uncertain | filtered |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, key := range slices.Sorted(maps.Keys(byCategory)) {
		b.WriteString(byCategory[key].row(key))
	}
	b.WriteString("\nAnswers that were not recognised; their senders are asked back:\n\n")
	b.WriteString(strings.Join(missed, ""))
	path := filepath.Join("..", "testdata", "confusion.md")
	if *updateConfusion {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the confusion table has changed; run with -update if that is right (-committed +now):\n%s", diff)
	}
}

func quoted(s string) string {
	return "`" + strings.ReplaceAll(shortened(strings.ReplaceAll(s, "\n", " ⏎ ")), "`", "'") + "`"
}

func TestClassify_JudgementIsConsistent(t *testing.T) {
	t.Parallel()
	want := factorNames()
	slices.Sort(want)
	for i, l := range readCorpus(t) {
		j := judgeCorpus(t)[i]
		if got := relevanceOf(j.Score); got != j.Relevance {
			t.Errorf("%q: score %v means %s, but it is %s", l.Text, j.Score, got, j.Relevance)
		}
		if (j.Classification != "") != (j.Relevance == Relevant) {
			t.Errorf("%q: %s with classification %q", l.Text, j.Relevance, j.Classification)
		}
		if j.Reasoning == "" {
			t.Errorf("%q has no reasoning", l.Text)
		}
		if got := slices.Sorted(maps.Keys(j.Factors)); !slices.Equal(got, want) {
			t.Fatalf("%q: factors %v, want %v", l.Text, got, want)
		}
		for name, f := range j.Factors {
			if f < 0 || f > 1 {
				t.Errorf("%q: %s is %v", l.Text, name, f)
			}
		}
		if i%5 == 0 && !cmp.Equal(Classify(l.asText()), j) {
			t.Errorf("%q is judged differently the second time", l.Text)
		}
	}
}

// TestClassify_Monotone puts doubtful text around every approval of the corpus: no approval may survive it.
func TestClassify_Monotone(t *testing.T) {
	t.Parallel()
	doubts := []string{"but not before Friday", "Rejected.", "if Bob agrees", "really?", "ignore previous instructions", "不同意", "但是先等等", "如果可以", "是吗", "just kidding", "不", "👎", "🙄", "INV-9999", "however", "zzzqqq", "maybe", "明天再说"}
	n := 0
	for i, l := range readCorpus(t) {
		if i%10 != 0 || l.Label != form.Confirmed || l.question != nil && l.question.Type != form.Approval || judgeCorpus(t)[i].Classification != form.Confirmed {
			continue
		}
		for _, doubt := range doubts {
			before := l
			before.Text = doubt + "\n" + l.Text
			if taken(before.asText()) == form.Confirmed {
				t.Errorf("%q before %q is taken for an approval", doubt, l.Text)
			}
			after := l
			after.Text = l.Text + "\n" + doubt
			if taken(after.asText()) == form.Confirmed && !strings.ContainsAny(l.Text, ">\n<") {
				t.Errorf("%q after %q is taken for an approval", doubt, l.Text)
			}
			n++
		}
	}
	if n < 500 {
		t.Errorf("only %d combinations were tried", n)
	}
}

// TestClassify_Arrival checks that how a reply arrived decides before what it says.
func TestClassify_Arrival(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Text)
		want   string
	}{
		"AsItShould":   {func(*Text) {}, Relevant},
		"Stranger":     {func(x *Text) { x.Listed = false }, Uncertain},
		"OtherThread":  {func(x *Text) { x.Threaded = false }, Uncertain},
		"Neither":      {func(x *Text) { x.Listed, x.Threaded = false, false }, Filtered},
		"Automatic":    {func(x *Text) { x.Reply.Automatic = true }, Filtered},
		"BeforeAsked":  {func(x *Text) { x.Received = x.Asked.Add(-time.Hour) }, Uncertain},
		"ClockSkew":    {func(x *Text) { x.Received = x.Asked.Add(-time.Minute) }, Relevant},
		"HighRisk":     {func(x *Text) { x.Request.Risk = "high" }, Uncertain},
		"OtherSubject": {func(x *Text) { x.Reply.Subject = "Re: Team lunch on Thursday" }, Uncertain},
		"SameSubject":  {func(x *Text) { x.Reply.Subject = "RE: [Tandem] Pay invoice INV-1042 to Acme" }, Relevant},
		"SubjectSays":  {func(x *Text) { x.Reply.Subject = "REJECTED: Pay invoice INV-1042 to Acme" }, Uncertain},
		"Receipt":      {func(x *Text) { x.Reply.Subject = "Read: Pay invoice INV-1042 to Acme" }, Filtered},
		"Review":       {func(x *Text) { x.Request.Type = form.Review }, Uncertain},
		"TooLong":      {func(x *Text) { x.Reply.Text += "\n" + strings.Repeat("I reviewed this.\n", 100) }, Uncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := replyTo("en", "Approved")
			c.change(&text)
			if j := Classify(text); j.Relevance != c.want {
				t.Errorf("got %s (%s), want %s", j.Relevance, j.Reasoning, c.want)
			}
		})
	}
}

func TestClassify_Options(t *testing.T) {
	t.Parallel()
	approval := Request{Type: form.Approval, Title: "Release", Options: []form.Option{
		{Value: "approve", Label: "Ship it now"}, {Value: "reject", Label: "Stop"}, {Value: "hold", Label: "Hold for a week"},
	}}
	twoYes := Request{Type: form.Approval, Options: []form.Option{{Value: "full", Outcome: form.Confirmed}, {Value: "half", Outcome: form.Confirmed}, {Value: "reject"}}}
	selection := Request{Type: form.Selection, Options: []form.Option{{Value: "red"}, {Value: "blue", Label: "蓝色"}, {Value: "2", Label: "two"}}}
	plainSelection := Request{Type: form.Selection, Options: []form.Option{{Value: "red"}, {Value: "blue", Label: "蓝色"}}}
	oneField := Request{Type: form.Input, Fields: []form.Field{{Name: "name"}}}
	forms := Request{Type: form.Input, Fields: []form.Field{{Name: "name"}, {Name: "age", Type: "number"}}}
	numbers := Request{Type: form.Input, Fields: []form.Field{{Name: "age", Type: "number"}}}
	for name, c := range map[string]struct {
		q                             Request
		text                          string
		classification, option, value string
	}{
		"Value":              {approval, "hold", "hold", "hold", ""},
		"LabelWithGreeting":  {approval, "Hi,\nHold for a week.\nThanks", "hold", "hold", ""},
		"LabelConfirms":      {approval, "ship it now", form.Confirmed, "approve", ""},
		"LabelRejects":       {approval, "STOP", form.Rejected, "reject", ""},
		"GeneralYes":         {approval, "yes, approved", form.Confirmed, "approve", ""},
		"GeneralNo":          {approval, "不同意", form.Rejected, "reject", ""},
		"NotTheOnlyContent":  {approval, "hold, I think", "", "", ""},
		"TwoMeanYes":         {twoYes, "approved", "", "", ""},
		"TwoMeanYesNamed":    {twoYes, "half", form.Confirmed, "half", ""},
		"OneMeansNo":         {twoYes, "rejected", form.Rejected, "reject", ""},
		"Number":             {plainSelection, "2", "blue", "blue", ""},
		"NumberInWords":      {plainSelection, "选项2", "blue", "blue", ""},
		"ChineseLabel":       {plainSelection, "蓝色。", "blue", "blue", ""},
		"AmbiguousNumber":    {selection, "2", "", "", ""},
		"NoSuchNumber":       {plainSelection, "3", "", "", ""},
		"SelectionNeedsMore": {plainSelection, "yes", "", "", ""},
		"SelectionInProse":   {plainSelection, "not red", "", "", ""},
		"Field":              {oneField, "Ada Lovelace\n\nOn Mon, May 6, 2024 Bot <b@x.y> wrote:\n> Your name?", form.Confirmed, "", "Ada Lovelace"},
		"FieldQuestion":      {oneField, "What do you mean?", "", "", ""},
		"FieldDate":          {oneField, "Friday, if it does not rain", form.Confirmed, "", "Friday, if it does not rain"},
		"FieldLong":          {oneField, strings.Repeat("word ", 500) + "end", form.Confirmed, "", strings.Repeat("word ", 500) + "end"},
		"FieldLater":         {oneField, "Let me check", "", "", ""},
		"FieldReceived":      {oneField, "收到，谢谢", "", "", ""},
		"FieldQuotedOnly":    {oneField, "> Ada", "", "", ""},
		"TwoFields":          {forms, "Ada", "", "", ""},
		"NumberField":        {numbers, "12", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := Classify(Text{Request: c.q, Reply: Reply{Text: c.text}, Listed: true, Threaded: true})
			if j.Classification != c.classification || j.Option != c.option || j.Value != c.value {
				t.Errorf("got %q, option %q, value %q (%s); want %q, %q, %q", j.Classification, j.Option, j.Value, j.Reasoning, c.classification, c.option, c.value)
			}
		})
	}
}

// TestClassify_Bounded reads long and hostile texts to their end; BenchmarkClassify says how long that takes.
func TestClassify_Bounded(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	for name, unit := range map[string]string{
		"Words": "approved ", "Han": "同意", "NoSpaces": "a", "Quotes": "> ", "Newlines": "\n", "Attributions": "On 1 wrote\n", "Tags": "<div>", "Unclosed": "<blockquote", "Comments": "<!--",
		"Entities": "&lt;", "Combining": "a\u0301\u0301", "Emoji": "👍🏽\u200d", "Invalid": "\xff\xfe", "Headers": "From: a\nTo: b\n", "Ellipsis": "…", "Shortcodes": ":+1", "QuotationMarks": "\"a", "Dashes": "-", "Digits": "1,", "Signatures": "Thanks,\nBob\n", "Long lines": "please go ahead and go ahead and ",
		"Questions": "? ", "Tilde": "~~a", "Deep": "((((", "Spaces": " \t",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := replyTo("en", strings.Repeat(unit, size/len(unit)))
			if j := Classify(text); j.Classification == form.Confirmed {
				t.Errorf("taken for an approval: %s", j.Reasoning)
			}
		})
	}
}

// BenchmarkClassify reads a mail of usual size beside long and hostile ones.
func BenchmarkClassify(b *testing.B) {
	for name, text := range map[string]string{
		"Mail":        "Hi,\n\napproved, please go ahead.\n\nBest regards\nAnn\n\n> Pay invoice INV-1042 to Acme?\n",
		"Words100KB":  strings.Repeat("approved ", 100<<10/9),
		"Quotes100KB": strings.Repeat("> ", 100<<10/2),
		"Tags100KB":   strings.Repeat("<div>", 100<<10/5),
	} {
		b.Run(name, func(b *testing.B) {
			t := replyTo("en", text)
			for b.Loop() {
				Classify(t)
			}
		})
	}
}

func FuzzCleanReply(f *testing.F) {
	for _, seed := range []string{"Approved\n\nOn Mon, May 6, 2024 Bob <b@x.y> wrote:\n> no", "同意\n\n发件人: a\n发送时间: b\n收件人: c\n\n不", "<div>ok<blockquote>no</blockquote></div>", "-- \nBob", "\xff\u202e👍🏽", "> \n>", "Thanks,\nBob\n\nThis email is confidential"} {
		f.Add(seed)
	}
	p := theReader()
	f.Fuzz(func(t *testing.T, raw string) {
		c := p.Clean(raw)
		for _, line := range c.Lines {
			if strings.ContainsAny(line, "\n\r\u200b\u202e") || line != strings.TrimSpace(line) {
				t.Fatalf("a line is not normal: %q", line)
			}
		}
		// Cleaning takes away and adds nothing: what is left of what is left is no more.
		if again := p.Clean(c.Text); len(again.Lines) > len(c.Lines)+strings.Count(c.Text, "\n")+1 {
			t.Fatalf("cleaning twice makes more: %q, then %q", c.Lines, again.Lines)
		}
		// A refusal after whatever was written is never an approval.
		if j := Classify(replyTo("en", "Not approved. 不同意\n"+raw)); j.Classification == form.Confirmed {
			t.Fatalf("a refusal before %q is taken for an approval", raw)
		}
	})
}
