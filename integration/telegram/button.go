package telegram

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/store"
	"tandem/text"
)

// choices are what can be answered by one button. Forms, reviews, several choices and too many of them want a page, and so does a note.
func choices(i store.Interaction, r human.Request) []form.Choice {
	decision, _ := medium().Decides(human.FormOf(i, r))
	if decision == nil {
		return nil
	}
	return decision.Choices
}

// keyboard is what a message that asks is answered by. Nil: nothing in the message can.
func (b *bot) keyboard(m human.Message, s settings) (*keyboard, error) {
	var out [][]button
	if options := choices(m.Interaction, m.Request); len(options) > 0 {
		layout, err := readLayout(s.Layout)
		if err != nil {
			return nil, err
		}
		if layout == nil {
			for _, o := range options {
				layout = append(layout, []layoutButton{{Value: o.Value}})
			}
			if width := widest(options); len(layout) <= 3 && width <= 14 { // a few short ones fit beside each other
				layout = [][]layoutButton{slices.Concat(layout...)}
			}
		}
		for _, row := range layout {
			var line []button
			for _, l := range row {
				made, err := b.button(m.Interaction, options, l)
				if err != nil {
					return nil, err
				}
				line = append(line, made)
			}
			if len(line) > 0 {
				out = append(out, line)
			}
		}
	}
	return rows(append(out, linkRow(m)...)), nil
}

func widest(options []form.Choice) int {
	n := 0
	for _, o := range options {
		n = max(n, text.UTF16(o.Label))
	}
	return n
}

// linkRow is the way to the response page.
func linkRow(m human.Message) [][]button {
	if m.Link == "" {
		return nil
	}
	label := form.Instead(true)
	if m.Request.Type == human.Input {
		label = text.Of("Fill in the form")
	}
	return [][]button{{{Text: label.In(m.Request.Language), URL: m.Link}}}
}

func rows(list [][]button) *keyboard {
	if len(list) == 0 {
		return nil
	}
	return &keyboard{Rows: list}
}

// layoutButton is a button of the setting inline_keyboard: an option, which may be written as a text, or a link.
type layoutButton struct {
	Text  string `json:"text"`
	Label string `json:"label"`
	Value string `json:"value"`
	Data  string `json:"callback_data"`
	URL   string `json:"url"`
}

// UnmarshalJSON reads both forms.
func (l *layoutButton) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &l.Value)
	}
	type plain layoutButton
	return json.Unmarshal(raw, (*plain)(l))
}

// readLayout reads rows of buttons; a button where a row could be is a row of its own.
func readLayout(raw json.RawMessage) ([][]layoutButton, error) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "[]" {
		return nil, nil
	}
	wrong := func(err error) error {
		return fault.Newf(fault.InvalidConfig, "inline_keyboard is a list of rows, and a row a list of buttons {text, value} or {text, url}: %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, wrong(err)
	}
	out := make([][]layoutButton, len(list))
	for i, item := range list {
		if len(item) == 0 || item[0] != '[' {
			out[i] = make([]layoutButton, 1)
			if err := json.Unmarshal(item, &out[i][0]); err != nil {
				return nil, wrong(err)
			}
			continue
		}
		if err := json.Unmarshal(item, &out[i]); err != nil {
			return nil, wrong(err)
		}
	}
	return out, nil
}

func (b *bot) button(in store.Interaction, options []form.Choice, l layoutButton) (button, error) {
	said := cmp.Or(l.Text, l.Label)
	if l.URL != "" {
		if u, err := url.Parse(l.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return button{}, fault.Newf(fault.InvalidConfig, "inline_keyboard has a link %q that is not an address of the web", l.URL)
		}
		return button{Text: text.FitUTF16(cmp.Or(said, l.URL), maxLabel), URL: l.URL}, nil
	}
	value := cmp.Or(l.Value, l.Data, said)
	i := slices.IndexFunc(options, func(o form.Choice) bool { return o.Value == value })
	if i < 0 {
		return button{}, fault.Newf(fault.InvalidConfig, "inline_keyboard has a button %q that is not an option of the question", value)
	}
	return button{Text: text.FitUTF16(cmp.Or(said, options[i].Label), maxLabel), Data: b.stamp(in, options, i)}, nil
}

// What a button brings back is a stamp: "t:" and in base64 the question's id, the number of the option, and a seal over
// both, the option's value and what is approved. The service lets 64 bytes pass and clients can send what they like, so it
// is short, and only the bot can make it.
const (
	stampMark = "t:"
	idBytes   = 16
	sealBytes = 12
)

func (b *bot) stamp(i store.Interaction, options []form.Choice, option int) string {
	raw := make([]byte, 0, idBytes+1+sealBytes)
	id, ok := idOf(i.ID)
	if !ok {
		id = [idBytes]byte{} // the message that it hangs on tells
	}
	raw = append(append(raw, id[:]...), byte(option))
	raw = append(raw, b.seal(i, options, option)...)
	return stampMark + base64.RawURLEncoding.EncodeToString(raw)
}

func (b *bot) seal(i store.Interaction, options []form.Choice, option int) []byte {
	mac := hmac.New(sha256.New, []byte(b.token))
	fmt.Fprintf(mac, "tandem telegram button 1\n%q %q %d %q %q", i.Workspace, i.ID, option, options[option].Value, i.ArgumentsHash)
	return mac.Sum(nil)[:sealBytes]
}

// stamped is what a stamp says before its seal is looked at.
type stamped struct {
	interaction string // empty: it does not say
	option      int
	seal        []byte
}

func readStamp(data string) (stamped, bool) {
	text, ok := strings.CutPrefix(data, stampMark)
	if !ok {
		return stamped{}, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != idBytes+1+sealBytes {
		return stamped{}, false
	}
	s := stamped{option: int(raw[idBytes]), seal: raw[idBytes+1:]}
	if id := [idBytes]byte(raw); id != ([idBytes]byte{}) {
		s.interaction = fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	}
	return s, true
}

// opens says that a stamp was made for this question as it is, and returns what was chosen.
func (b *bot) opens(s stamped, i store.Interaction, r human.Request) (*human.Answer, bool) {
	options := choices(i, r)
	if s.option >= len(options) || !hmac.Equal(s.seal, b.seal(i, options, s.option)) {
		return nil, false
	}
	f := human.FormOf(i, r)
	values, wrong := human.Choose(options[s.option].Value)(f)
	return &human.Answer{Given: f.Answer(values)}, len(wrong) == 0
}

// idOf reads an id that looks like a UUID.
func idOf(text string) (id [idBytes]byte, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' || text != strings.ToLower(text) {
		return id, false
	}
	n, err := hex.Decode(id[:], []byte(strings.ReplaceAll(text, "-", "")))
	return id, err == nil && n == idBytes
}
