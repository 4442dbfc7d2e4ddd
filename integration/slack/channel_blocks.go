package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"tandem/human"
	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

// The bounds of Slack, in characters as it counts them, and numbers of elements.
const (
	headerMax      = 150
	sectionMax     = 3000
	contextMax     = 2000
	buttonTextMax  = 75
	buttonValueMax = 2000
	rowMax         = 5
	confirmMax     = 300
	optionTextMax  = 75
	urlMax         = 3000
)

// The ids of what can be pressed.
const (
	actionChoose = "choose" // followed by a number that tells the buttons apart
	actionForm   = "form"
	actionLink   = "link"
)

// touch is what a button, and the form that it opens, bring back.
type touch struct {
	Interaction string `json:"i"`
	Value       string `json:"v,omitempty"`
	// Hash is the arguments that were shown.
	Hash     string `json:"h,omitempty"`
	Language string `json:"l,omitempty"`
	// Channel and TS are where a form was opened.
	Channel string `json:"c,omitempty"`
	TS      string `json:"m,omitempty"`
}

func (t touch) text() string {
	raw, _ := json.Marshal(t) // texts can always be written
	return string(raw)
}

// page lays a message out. After blocks, live says whether it has something to press that answers.
type page struct {
	message human.Message
	// buttons offers what answers; short leaves out what the first message of the thread says.
	buttons, short bool
	live           bool
}

func (p *page) words() words { return wordsIn(p.message.Request.Language) }

// summary is what notifications show.
func (p *page) summary() string {
	text := p.message.Headline()
	if len(p.message.Lines) > 0 {
		text += ": " + p.message.Lines[0]
	}
	return escape(text, sectionMax)
}

func (p *page) blocks() []slack.Block {
	if p.short {
		return p.shortBlocks()
	}
	m, r, w := p.message, p.message.Request, p.words()
	blocks := []slack.Block{slack.NewHeaderBlock(plain(p.message.Headline(), headerMax))}
	lines := strings.Join(m.Lines, "\n")
	if p.buttons {
		blocks = section(blocks, p.mention(), r.Description)
		blocks = section(blocks, "", lines)
	} else {
		blocks = section(blocks, "", lines)
		blocks = section(blocks, "", r.Description)
	}
	blocks = quoted(blocks, w, w.Content, r.Content)
	blocks = quoted(blocks, w, w.Arguments, r.Arguments)
	blocks = append(blocks, p.facts()...)
	if p.buttons {
		blocks = append(blocks, p.actions()...)
	}
	return blocks
}

func (p *page) shortBlocks() []slack.Block {
	text := strings.Join(p.message.Lines, "\n")
	blocks := section(nil, p.mention(), cmp.Or(text, p.message.Headline()))
	if b := p.linkButton(); b != nil {
		blocks = append(blocks, slack.NewActionBlock("", b))
	}
	return blocks
}

// facts are what else people should know before they decide.
func (p *page) facts() []slack.Block {
	i, r, w := p.message.Interaction, p.message.Request, p.words()
	var facts []string
	if i.WorkflowName != "" {
		facts = append(facts, w.Workflow+": "+escape(i.WorkflowName, 200))
	}
	if level := w.Level(r.Risk); level != "" {
		facts = append(facts, w.Risk+": *"+level+"*")
	}
	if i.TimeoutAt > 0 && p.buttons {
		at := time.UnixMilli(i.TimeoutAt).UTC()
		facts = append(facts, fmt.Sprintf("%s: <!date^%d^{date_short_pretty} {time}|%s>", w.Deadline, at.Unix(), at.Format(time.RFC3339)))
	}
	if quorum := w.Quorum(p.message); quorum != "" {
		facts = append(facts, quorum)
	}
	if len(facts) == 0 {
		return nil
	}
	return []slack.Block{slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, strings.Join(facts, "  ·  "), false, true))}
}

// actions are the buttons: one for each choice, one that opens a form where there is more to fill in, and one for the link.
func (p *page) actions() []slack.Block {
	m, r, w := p.message, p.message.Request, p.words()
	var buttons []slack.BlockElement
	t := touch{Interaction: m.Interaction.ID, Hash: m.Interaction.ArgumentsHash, Language: r.Language}
	f := human.FormOf(m.Interaction, r)
	choices, more := choices(f, t)
	for n, c := range choices {
		t.Value = c.Value
		b := slack.NewButtonBlockElement(actionChoose+strconv.Itoa(n), t.text(), plain(c.Label, buttonTextMax))
		switch c.Outcome {
		case human.Confirmed:
			b.Style = slack.StylePrimary
		case human.Rejected:
			b.Style = slack.StyleDanger
		}
		if r.Risk == "high" && c.Outcome == human.Confirmed {
			b.Confirm = slack.NewConfirmationBlockObject(plain(w.sure, 100),
				plain(fmt.Sprintf(w.sureText, p.message.Headline()), confirmMax), plain(w.yes, 30), plain(w.no, 30))
		}
		buttons = append(buttons, b)
	}
	t.Value = ""
	if _, drawn := modal(m.Interaction, r, t); drawn && (more || len(choices) == 0) {
		b := slack.NewButtonBlockElement(actionForm, t.text(), plain(f.Opens(more).In(r.Language), buttonTextMax))
		if len(choices) == 0 {
			b = b.WithStyle(slack.StylePrimary)
		}
		buttons = append(buttons, b)
	}
	p.live = len(buttons) > 0
	if b := p.linkButton(); b != nil {
		buttons = append(buttons, b)
	}
	if len(buttons) == 0 {
		return section(nil, "", form.Instead(false).In(r.Language))
	}
	var rows []slack.Block
	for len(buttons) > 0 {
		n := min(rowMax, len(buttons))
		rows = append(rows, slack.NewActionBlock("", buttons[:n]...))
		buttons = buttons[n:]
	}
	return rows
}

// choices are those that can be buttons: all of them or none. More says that there is something to fill in besides.
func choices(f *form.Form, t touch) (list []form.Choice, more bool) {
	decision, more := medium().Decides(f)
	if decision == nil {
		return nil, false
	}
	for _, c := range decision.Choices {
		if t.Value = c.Value; text.UTF16(t.text()) > buttonValueMax {
			return nil, false
		}
	}
	return decision.Choices, more
}

func (p *page) linkButton() slack.BlockElement {
	if p.message.Link == "" || text.UTF16(p.message.Link) > urlMax {
		return nil
	}
	return slack.NewButtonBlockElement(actionLink, "", plain(form.Instead(true).In(p.message.Request.Language),
		buttonTextMax)).WithURL(p.message.Link)
}

var (
	mentioned = regexp.MustCompile(`^<[@!][^<>|\s]+>$`)
	group     = regexp.MustCompile(`^S[A-Z0-9]+$`)
)

// mention is what a node says about whom to mention, in the form that Slack notices.
func (p *page) mention() string {
	given := strings.TrimSpace(p.message.Request.UserMention)
	name := strings.TrimPrefix(given, "@")
	switch {
	case given == "", mentioned.MatchString(given):
		return given
	case personID.MatchString(name):
		return "<@" + name + ">"
	case group.MatchString(name):
		return "<!subteam^" + name + ">"
	case name == "here", name == "channel", name == "everyone":
		return "<!" + name + ">"
	}
	return escape(given, 200)
}

// section adds a block of text, with something before it that is written as Slack wants it.
func section(blocks []slack.Block, before, said string) []slack.Block {
	if said = strings.TrimSpace(said); said == "" && before == "" {
		return blocks
	}
	if before != "" {
		before += " "
	}
	return append(blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType,
		strings.TrimSpace(before+escape(said, sectionMax-text.UTF16(before))), false, true), nil, nil))
}

// quoted adds a value as it is, in a block in which nothing of it means anything to Slack.
func quoted(blocks []slack.Block, w words, label string, raw json.RawMessage) []slack.Block {
	said := readable(raw)
	if said == "" {
		return blocks
	}
	shown := text.FitUTF16(said, sectionMax)
	if shown != said {
		label += w.Shortened
	}
	return append(blocks,
		slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, "*"+label+"*", false, true)),
		slack.NewRichTextBlock("", &slack.RichTextPreformatted{
			Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(shown, nil)},
		}))
}

// readable is a value for people: a text as it is, anything else as indented JSON, nothing for what is empty.
func readable(raw json.RawMessage) string {
	text, code := payload.Shown(raw)
	if text = strings.TrimSpace(text); code && (text == "{}" || text == "[]") {
		return ""
	}
	return text
}

// plain is a text that Slack takes as it is.
func plain(said string, limit int) *slack.TextBlockObject {
	said = text.FitUTF16(said, limit)
	if said == "" {
		said = "-" // an empty one is refused
	}
	return slack.NewTextBlockObject(slack.PlainTextType, said, false, false)
}

// escape cuts a text to a size and takes the meaning from what Slack would read as a link or a mention.
func escape(said string, limit int) string {
	return text.FitUTF16As(strings.ToValidUTF8(said, "\uFFFD"), limit, func(r rune) string {
		switch r {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		}
		return string(r)
	})
}
