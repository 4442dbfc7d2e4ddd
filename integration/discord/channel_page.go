package discord

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"tandem/human"
	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

// The bounds of Discord, in characters and numbers of elements. What an embed holds adds up to less than the 6000 it may have.
const (
	contentMax     = 2000
	titleMax       = 256
	descriptionMax = 2000
	fieldMax       = 1024
	labelMax       = 80
	customIDMax    = 100
	urlMax         = 512
	rowMax         = 5
	rowsMax        = 5
	optionsMax     = 25
	optionMax      = 100
)

// What a component does, as the first part of its custom_id.
const (
	doChoose = "c" // a button; its number is the last part
	doSelect = "s" // a menu; the numbers are its values
	doForm   = "f" // opens a form
	doSubmit = "m" // a form that was sent
)

// touch is what a component brings back. There is little room, so options are numbers and ids are shortened.
type touch struct {
	do          string
	interaction string
	// hash is the arguments that were shown.
	hash string
	n    int
}

// text is a custom_id; empty if it would be too long.
func (t touch) text() string {
	text := strings.Join([]string{t.do, pack(t.interaction, "-"), pack(t.hash, ""), strconv.Itoa(t.n)}, ".")
	if len(text) > customIDMax {
		return ""
	}
	return text
}

func readTouch(text string) (touch, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return touch{}, false
	}
	n, err := strconv.Atoi(parts[3])
	interaction, ok := unpack(parts[1])
	hash, good := unpack(parts[2])
	return touch{do: parts[0], interaction: interaction, hash: hash, n: n}, err == nil && ok && good && interaction != ""
}

// pack shortens hexadecimal numbers: an id with dashes in its usual places is marked by u, a plain one by x, anything else by a dash.
func pack(text, dash string) string {
	bare := strings.ReplaceAll(text, "-", "")
	raw, err := hex.DecodeString(bare)
	switch {
	case err == nil && dash != "" && len(raw) == 16 && text == dashed(raw):
		return "u" + base64.RawURLEncoding.EncodeToString(raw)
	case err == nil && text == hex.EncodeToString(raw):
		return "x" + base64.RawURLEncoding.EncodeToString(raw)
	}
	return "-" + base64.RawURLEncoding.EncodeToString([]byte(text))
}

func unpack(text string) (string, bool) {
	if text == "" {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text[1:])
	switch {
	case err != nil:
		return "", false
	case text[0] == 'u' && len(raw) == 16:
		return dashed(raw), true
	case text[0] == 'x':
		return hex.EncodeToString(raw), true
	case text[0] == '-':
		return string(raw), true
	}
	return "", false
}

func dashed(raw []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// page lays a message out. After write, live says whether it has something to press that answers.
type page struct {
	message human.Message
	// offer shows what answers; short leaves out what the first message says.
	offer, short bool
	live         bool
}

func (p *page) words() words { return wordsIn(p.message.Request.Language) }

func (p *page) write(to *discordgo.MessageSend) {
	m, r, w := p.message, p.message.Request, p.words()
	lines := strings.Join(m.Lines, "\n")
	mention := ""
	if p.offer || p.short {
		mention = p.mention(to)
	}
	if p.short {
		to.Content = strings.TrimSpace(mention + " " + safe(cmp.Or(lines, p.message.Headline()), contentMax-text.UTF16(mention)-1))
		if b := p.linkButton(); b != nil {
			to.Components = []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{*b}}}
		}
		return
	}
	to.Content = mention
	e := &discordgo.MessageEmbed{Type: discordgo.EmbedTypeRich, Title: text.FitUTF16(p.message.Headline(), titleMax)}
	e.Description = safe(r.Description, descriptionMax)
	add := func(name, value string) {
		if value != "" {
			e.Fields = append(e.Fields, &discordgo.MessageEmbedField{Name: name, Value: value})
		}
	}
	add("—", safe(lines, fieldMax))
	p.quoted(add, w.Content, r.Content)
	p.quoted(add, w.Arguments, r.Arguments)
	add(w.Workflow, safe(m.Interaction.WorkflowName, 100))
	if level := w.Level(r.Risk); level != "" {
		add(w.Risk, "**"+level+"**")
		e.Color = map[string]int{"high": 0xc0392b, "medium": 0xd68910}[r.Risk]
	}
	if p.offer {
		if at := m.Interaction.TimeoutAt; at > 0 {
			add(w.Deadline, fmt.Sprintf("<t:%d:f>", time.UnixMilli(at).Unix()))
		}
		if quorum := w.Quorum(m); quorum != "" {
			e.Footer = &discordgo.MessageEmbedFooter{Text: quorum}
		}
		to.Components = p.components()
		if len(to.Components) == 0 {
			add("—", form.Instead(false).In(r.Language))
		}
	}
	to.Embeds = []*discordgo.MessageEmbed{e}
}

// components are what can be pressed: a button or a menu for the choices, a button that opens a form where there is more to fill in, and
// one for the link.
func (p *page) components() []discordgo.MessageComponent {
	m := p.message
	t := touch{interaction: m.Interaction.ID, hash: m.Interaction.ArgumentsHash}
	f := human.FormOf(m.Interaction, m.Request)
	link := p.linkButton()
	room := rowMax * rowsMax
	if link != nil {
		room--
	}
	var rows, buttons []discordgo.MessageComponent
	decision, _ := f.Decision()
	switch {
	case decision == nil:
	case decision.Kind != form.Some && len(decision.Choices) <= room:
		t.do = doChoose
		for n, c := range decision.Choices {
			t.n = n
			style := map[string]discordgo.ButtonStyle{human.Confirmed: discordgo.SuccessButton,
				human.Rejected: discordgo.DangerButton}[c.Outcome]
			buttons = append(buttons, discordgo.Button{Label: label(c, labelMax),
				Style: cmp.Or(style, discordgo.SecondaryButton), CustomID: t.text()})
		}
	case len(decision.Choices) <= optionsMax:
		t.do = doSelect
		rows = append(rows, discordgo.ActionsRow{Components: []discordgo.MessageComponent{p.menu(decision, t)}})
	}
	decides := len(rows)+len(buttons) > 0
	t.do, t.n = doForm, 0
	if entries, ok := medium().Draw(f); ok && (!decides || len(entries) > 1 && len(buttons) < room) {
		style := discordgo.PrimaryButton
		if decides {
			style = discordgo.SecondaryButton
		}
		buttons = append(buttons, discordgo.Button{Label: text.FitUTF16(f.Opens(decides).In(m.Request.Language), labelMax),
			Style: style, CustomID: t.text()})
	}
	if t.text() == "" {
		rows, buttons = nil, nil
	}
	p.live = len(rows)+len(buttons) > 0
	if link != nil {
		buttons = append(buttons, *link)
	}
	for len(buttons) > 0 {
		n := min(rowMax, len(buttons))
		rows = append(rows, discordgo.ActionsRow{Components: buttons[:n]})
		buttons = buttons[n:]
	}
	return rows
}

// menu offers choices by their numbers.
func (p *page) menu(decision *form.Entry, t touch) discordgo.SelectMenu {
	one := 1
	menu := discordgo.SelectMenu{MenuType: discordgo.StringSelectMenu, CustomID: t.text(), Placeholder: p.words().choose,
		MinValues: &one, MaxValues: 1}
	if decision.Kind == form.Some {
		menu.MaxValues = len(decision.Choices)
	}
	for n, c := range decision.Choices {
		menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: label(c, optionMax), Value: strconv.Itoa(n)})
	}
	return menu
}

func label(c form.Choice, limit int) string {
	return cmp.Or(text.FitUTF16(strings.TrimSpace(cmp.Or(c.Label, c.Value)), limit), "-")
}

func (p *page) linkButton() *discordgo.Button {
	if p.message.Link == "" || text.UTF16(p.message.Link) > urlMax {
		return nil
	}
	return &discordgo.Button{Label: text.FitUTF16(form.Instead(true).In(p.message.Request.Language), labelMax),
		Style: discordgo.LinkButton, URL: p.message.Link}
}

var mentioned = regexp.MustCompile(`^<?@?(&?)!?([0-9]{5,20})>?$`)

// mention is what a node says about whom to mention. Only that one is notified, whatever else a message says.
func (p *page) mention(to *discordgo.MessageSend) string {
	given := strings.TrimSpace(p.message.Request.UserMention)
	allowed := to.AllowedMentions
	found := mentioned.FindStringSubmatch(given)
	switch {
	case given == "" || allowed == nil:
		return ""
	case found != nil && found[1] == "&":
		allowed.Roles = []string{found[2]}
		return "<@&" + found[2] + ">"
	case found != nil:
		allowed.Users = []string{found[2]}
		return "<@" + found[2] + ">"
	case given == "@here", given == "@everyone":
		allowed.Parse = []discordgo.AllowedMentionType{discordgo.AllowedMentionTypeEveryone}
		return given
	}
	return safe(given, 200)
}

// quoted adds a value as it is, in a block in which nothing of it means anything to Discord.
func (p *page) quoted(add func(name, value string), name string, raw json.RawMessage) {
	said := readable(raw)
	if said == "" {
		return
	}
	said = strings.ReplaceAll(said, "```", "`\u200b`\u200b`")
	const fence = "```"
	shown := text.FitUTF16(said, fieldMax-2*len(fence)-2)
	if shown != said {
		name += p.words().Shortened
	}
	add(name, fence+"\n"+shown+"\n"+fence)
}

// readable is a value for people: a text as it is, anything else as indented JSON, nothing for what is empty.
func readable(raw json.RawMessage) string {
	text, code := payload.Shown(raw)
	if text = strings.TrimSpace(text); code && (text == "{}" || text == "[]") {
		return ""
	}
	return text
}

// safe cuts a text to a size and takes the meaning from what Discord would read as a link, a mention or a layout.
func safe(said string, limit int) string {
	return text.FitUTF16As(strings.TrimSpace(said), limit, func(r rune) string {
		if strings.ContainsRune("\\`*_~|[]()<>#", r) {
			return `\` + string(r)
		}
		return string(r)
	})
}
