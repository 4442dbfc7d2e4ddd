package teams

import (
	"encoding/json"
	"strings"

	"tandem/human"
	"tandem/human/form"
	"tandem/payload"
	"tandem/text"
)

const (
	cardType = "application/vnd.microsoft.card.adaptive"
	// maxCard is how many bytes a card may have; the service refuses larger messages.
	maxCard     = 28 << 10
	maxTitle    = 256
	maxLabel    = 80
	maxAbstract = 1000
)

// markKey is the name of what a button brings back besides what was filled in.
const markKey = "tandem"

// mark is what a button brings back of its question.
type mark struct {
	Interaction string `json:"interaction"`
	// Option is what the button stands for; empty: what was chosen or filled in does.
	Option string `json:"option,omitempty"`
	Hash   string `json:"arguments_hash,omitempty"`
}

// object is a part of a card.
type object = map[string]any

// plain is a text that is shown as it is. Other blocks would read it as markup, with links that are not what they say.
func plain(text string, run object) object {
	if run == nil {
		run = object{}
	}
	run["type"], run["text"] = "TextRun", text
	return object{"type": "RichTextBlock", "inlines": []any{run}}
}

// paragraphs are the question and what is to be said besides.
func paragraphs(m human.Message, whole bool) []any {
	var body []any
	add := func(said string, most int, run object) {
		if said = strings.TrimSpace(said); said != "" {
			body = append(body, plain(text.Fit(said, most), run))
		}
	}
	most := maxCard
	if !whole {
		most = maxAbstract
	}
	add(m.Request.UserMention, maxTitle, nil)
	add(m.Request.Title, maxTitle, object{"weight": "Bolder", "size": "Medium"})
	add(m.Request.Description, most, nil)
	if whole {
		said, code := payload.Shown(m.Request.Content)
		if code {
			add(said, most, object{"fontType": "Monospace"})
		} else {
			add(said, most, nil)
		}
	}
	for _, line := range m.Lines {
		add(line, most, object{"isSubtle": true})
	}
	return body
}

func card(body, actions []any) object {
	c := object{"type": "AdaptiveCard", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "version": "1.4", "body": body}
	if len(actions) > 0 {
		c["actions"] = actions
	}
	return c
}

// question is the card that asks. One that is too large, and one whose buttons would not be heard, only links to the
// response page.
func question(m human.Message, buttons bool) (object, error) {
	if buttons {
		if body, actions, ok := asked(m); ok {
			whole := card(append(paragraphs(m, true), body...), append(actions, links(m)...))
			raw, err := json.Marshal(whole)
			if err != nil || len(raw) <= maxCard {
				return whole, err
			}
		}
	}
	body := paragraphs(m, true)
	if raw, err := json.Marshal(body); err != nil {
		return nil, err
	} else if len(raw) > maxCard-(4<<10) {
		body = paragraphs(m, false)
	}
	if m.Link == "" {
		body = append(body, plain(form.Instead(false).In(m.Request.Language), nil))
	}
	return card(body, links(m)), nil
}

// notice is a card that asks nothing: what became of a question, or that it is still open.
func notice(m human.Message, whole bool) (object, error) {
	body := paragraphs(m, whole)
	if raw, err := json.Marshal(body); err != nil {
		return nil, err
	} else if len(raw) > maxCard-(4<<10) {
		body = paragraphs(m, false)
	}
	return card(body, links(m)), nil
}

func links(m human.Message) []any {
	if m.Link == "" {
		return nil
	}
	return []any{object{"type": "Action.OpenUrl", "title": form.Instead(true).In(m.Request.Language), "url": m.Link}}
}
