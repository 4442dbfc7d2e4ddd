package telegram

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/builtin/values"
	"tandem/fault"
	"tandem/outbound"
	"tandem/payload"
)

// params are those of a method. What is nil is left out.
type params map[string]any

func (p params) clean() params {
	for name, value := range p { // order does not matter: they are named
		if object, ok := value.(json.RawMessage); value == nil || ok && payload.IsNull(object) {
			delete(p, name)
		}
	}
	return p
}

// number writes what is a number as one, and anything else as a text.
func number[T ~string](text T) json.RawMessage {
	if _, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		return json.RawMessage(strings.TrimSpace(string(text)))
	}
	return values.Encode(string(text))
}

// do calls a method. A group that has become a supergroup is followed to its new number, once: Telegram has taken nothing under the old
// one.
func (a *acting) do(c func(chat json.RawMessage) (rest.Call, error)) (out actionResult, err error) {
	chat := number(a.cfg.ChatID)
	for moved := false; ; moved = true {
		call, err := c(chat)
		if err != nil {
			return out, err
		}
		answer, err := a.once(call)
		to := ""
		if refused, ok := errors.AsType[*outbound.Error](err); ok && !moved {
			to, _ = refused.Fault.Details[migrated].(string)
		}
		if to != "" {
			chat = number(to)
			continue
		}
		if err != nil {
			return out, err
		}
		result := answer.Get("result")
		out.Response, out.ChatID = json.RawMessage(result.Raw), strings.Trim(string(chat), `"`)
		if id := result.Get("message_id"); id.Exists() {
			out.MessageID, out.ResourceID = id.Int(), id.String()
		}
		if id := result.Get("chat.id"); id.Exists() {
			out.ChatID = id.String()
		}
		return out, nil
	}
}

// once makes one call, and sees that its answer is one of Telegram.
func (a *acting) once(c rest.Call) (rest.Answer, error) {
	c.Wants, c.Fields = rest.Object, []string{"ok"}
	answer, err := a.api.Do(a.ctx, c)
	if err == nil && !answer.Get("ok").Bool() {
		return answer, &outbound.Error{Fate: outbound.Answered,
			Fault: fault.Newf(fault.RemoteRejected, "Telegram does not do it: %s", answer.Get("description").Str)}
	}
	return answer, err
}

// calls calls a method with parameters.
func (a *acting) calls(method string, repeatable bool, p params) (actionResult, error) {
	return a.do(func(chat json.RawMessage) (rest.Call, error) {
		p["chat_id"] = chat
		return rest.Call{Method: http.MethodPost, Path: "/" + method, Body: p.clean(), Repeatable: repeatable}, nil
	})
}

func (a *acting) send() (actionResult, error) {
	if err := a.fits("message_text", a.cfg.Text, maxText); err != nil {
		return actionResult{}, err
	}
	return a.calls("sendMessage", false, params{"text": a.cfg.Text, "parse_mode": a.mode(), "reply_markup": json.RawMessage(a.cfg.Keyboard),
		"disable_notification": a.silent()})
}

// silent is whether messages arrive without a sound; nil: as usual.
func (a *acting) silent() any {
	if !a.cfg.Silent {
		return nil
	}
	return true
}

// upload sends a file.
func (a *acting) upload(method, field string) (actionResult, error) {
	if err := a.fits("caption", a.cfg.Caption, maxCaption); err != nil {
		return actionResult{}, err
	}
	source, err := fileref.Open(a.ctx, a.store, a.call, a.cfg.File, "file", maxUpload)
	if err != nil {
		return actionResult{}, err
	}
	return a.do(func(chat json.RawMessage) (rest.Call, error) {
		c := rest.Call{Method: http.MethodPost, Path: "/" + method}
		parts := []rest.Part{{Name: "chat_id", Value: []byte(strings.Trim(string(chat), `"`))}}
		if a.cfg.Caption != "" {
			parts = append(parts, rest.Part{Name: "caption", Value: []byte(a.cfg.Caption)})
			if mode, ok := a.mode().(string); ok {
				parts = append(parts, rest.Part{Name: "parse_mode", Value: []byte(mode)})
			}
		}
		if !payload.IsNull(json.RawMessage(a.cfg.Keyboard)) {
			parts = append(parts, rest.Part{Name: "reply_markup", ContentType: "application/json", Value: a.cfg.Keyboard})
		}
		if a.cfg.Silent {
			parts = append(parts, rest.Part{Name: "disable_notification", Value: []byte("true")})
		}
		return c, c.Upload(field, source, parts...)
	})
}

func (a *acting) poll() (actionResult, error) {
	var options []map[string]string
	for _, o := range a.cfg.Options {
		options = append(options, map[string]string{"text": o})
	}
	return a.calls("sendPoll", false, params{"question": a.cfg.Question, "options": options,
		"reply_markup": json.RawMessage(a.cfg.Keyboard), "disable_notification": a.silent()})
}

func (a *acting) forward() (actionResult, error) {
	return a.calls("forwardMessage", false, params{"from_chat_id": number(a.cfg.FromChatID), "message_id": number(a.cfg.MessageID),
		"disable_notification": a.silent()})
}

// already is the result of a repeat that finds what the first has done.
func (a *acting) already(out actionResult, err error) (actionResult, error) {
	if rest.IsCode(err, fault.Conflict) {
		out, err = actionResult{ChatID: string(a.cfg.ChatID), Response: json.RawMessage("true")}, nil
	}
	if err == nil && out.MessageID == 0 {
		out.MessageID, _ = strconv.ParseInt(string(a.cfg.MessageID), 10, 64) // Telegram has taken it as a number
		out.ResourceID = string(a.cfg.MessageID)
	}
	return out, err
}

func (a *acting) edit() (actionResult, error) {
	if err := a.fits("message_text", a.cfg.Text, maxText); err != nil {
		return actionResult{}, err
	}
	return a.already(a.calls("editMessageText", true, params{"message_id": number(a.cfg.MessageID), "text": a.cfg.Text,
		"parse_mode": a.mode(), "reply_markup": json.RawMessage(a.cfg.Keyboard)}))
}

func (a *acting) delete() (actionResult, error) {
	return a.already(a.calls("deleteMessage", true, params{"message_id": number(a.cfg.MessageID)}))
}

func (a *acting) pin() (actionResult, error) {
	return a.already(a.calls("pinChatMessage", true, params{"message_id": number(a.cfg.MessageID), "disable_notification": a.silent()}))
}

func (a *acting) ban() (actionResult, error) {
	out, err := a.calls("banChatMember", true, params{"user_id": number(a.cfg.UserID)})
	out.ResourceID = string(a.cfg.UserID)
	return out, err
}

// request calls a method that the node writes itself.
func (a *acting) request() (actionResult, error) {
	method, path := strings.ToUpper(a.cfg.Method), "/"+strings.TrimPrefix(a.cfg.Path, "/")
	if !slices.Contains([]string{http.MethodGet, http.MethodPost}, method) {
		return actionResult{}, fault.Newf(fault.InvalidInput, "%q is not a method of the Bot API; write GET or POST", a.cfg.Method).With("path", "method")
	}
	if !regexp.MustCompile(`^/[A-Za-z]+$`).MatchString(path) {
		return actionResult{}, fault.Newf(fault.InvalidInput, "%q is not the name of a method of the Bot API, such as /getChat", a.cfg.Path).With("path", "path")
	}
	c := rest.Call{Method: method, Path: path, Query: url.Values{}}
	err := a.cfg.Query.Each(func(name string, value json.RawMessage) error {
		text, ok := values.Scalar(value)
		if !ok {
			text = string(value) // Telegram takes lists and objects as JSON
		}
		c.Query.Set(name, text)
		return nil
	})
	if err != nil {
		return actionResult{}, err
	}
	if !payload.IsNull(a.cfg.Body) && method == http.MethodPost {
		c.Body = a.cfg.Body
	}
	out, err := a.do(func(json.RawMessage) (rest.Call, error) { return c, nil })
	return out, err
}
