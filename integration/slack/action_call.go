package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"github.com/tidwall/gjson"

	"tandem/credential"
	"tandem/fault"
	"tandem/outbound"
)

// webAPI calls methods of Slack's Web API and returns what it answers as it came. The library that the channel uses reads answers
// into types of its own; a node hands on the whole answer, and calls methods that the library does not know.
type webAPI struct {
	client *outbound.Client
	base   *url.URL
	token  string
}

const usualBase = "https://slack.com/api/"

func readAPI(client *outbound.Client, c credential.Opened) (*webAPI, error) {
	var fields struct {
		Token   string `json:"token"`
		BaseURL string `json:"base_url"`
	}
	if json.Unmarshal(c.Data, &fields) != nil || fields.Token == "" {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has no token of a Slack bot; save it again", c.ID)
	}
	if fields.BaseURL == "" {
		fields.BaseURL = usualBase
	}
	base, err := url.Parse(strings.TrimRight(fields.BaseURL, "/") + "/")
	if err != nil || base.Host == "" || base.RawQuery != "" {
		return nil, fault.Newf(fault.CredentialInvalid, "credential %q has a base_url that cannot be used; write it like https://host/api", c.ID)
	}
	return &webAPI{client: client, base: base, token: fields.Token}, nil
}

// arguments are what a method is called with. Texts, numbers and yes or no are sent as they are, anything else as JSON.
type arguments map[string]any

func (a arguments) form() (url.Values, error) {
	values := url.Values{}
	for name, value := range a { // order does not matter: they are named
		switch v := value.(type) {
		case nil:
		case string:
			if v != "" {
				values.Set(name, v)
			}
		case json.RawMessage:
			if len(v) > 0 {
				values.Set(name, string(v))
			}
		case []string:
			if len(v) > 0 {
				values.Set(name, strings.Join(v, ","))
			}
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return nil, fault.Newf(fault.InvalidInput, "%s cannot be sent: %w", name, err)
			}
			values.Set(name, string(text))
		}
	}
	return values, nil
}

// call calls a method and returns its answer. Repeatable says that it may be sent again when a connection was closed under it.
// Fields are those that an answer has which is that of Slack.
func (w *webAPI) call(ctx context.Context, method, what string, args arguments, repeatable bool,
	fields ...string) (json.RawMessage, error) {
	form, err := args.form()
	if err != nil {
		return nil, err
	}
	target, err := w.base.Parse(url.PathEscape(method))
	if err != nil {
		return nil, fault.Newf(fault.InvalidInput, "%q is not the name of a method of Slack", method)
	}
	response, err := w.client.Do(ctx, outbound.Request{
		Method: http.MethodPost, URL: target, Body: []byte(form.Encode()), Repeatable: repeatable, Redirects: outbound.NoFollow,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		Secret: &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + w.token}}},
	})
	if err != nil {
		return nil, err
	}
	body, err := response.ReadAll()
	if bad := response.Problem(time.Now()); bad != nil {
		return nil, bad
	}
	if err != nil {
		return nil, err
	}
	if response.Status >= 300 {
		return nil, &outbound.Error{Fate: outbound.Answered, Fault: fault.Newf(fault.RemoteRejected,
			"host %q answered %d, which leads elsewhere; check the base_url of the credential", target.Host, response.Status).With("status_code", response.Status)}
	}
	answer := gjson.ParseBytes(body)
	lacks := func(name string) bool { return answer.Get("ok").Bool() && !answer.Get(name).Exists() }
	if !gjson.ValidBytes(body) || !answer.Get("ok").IsBool() || slices.ContainsFunc(fields, lacks) {
		return nil, &outbound.Error{Fate: outbound.Unknown, Fault: fault.Newf(fault.RemoteError, "host %q answers in a way that is not that of Slack; check the base_url of the credential", target.Host)}
	}
	if !answer.Get("ok").Bool() {
		return nil, declined(what, answer)
	}
	return json.RawMessage(body), nil
}

// declined says what an answer means that is not ok.
func declined(what string, answer gjson.Result) error {
	switch code := answer.Get("error").Str; code {
	case "channel_not_found", "user_not_found", "users_not_found", "message_not_found", "thread_not_found", "file_not_found", "not_in_channel", "no_item_specified":
		return fault.Newf(fault.NotFound, "Slack cannot %s (%s); check the channel or the user, and invite the app to the channel", what, code)
	case "msg_too_long", "no_text", "invalid_blocks", "invalid_blocks_format", "too_many_attachments", "invalid_arguments", "invalid_arg_name", "invalid_name_specials", "invalid_name_maxlength", "invalid_name_required":
		f := fault.Newf(fault.InvalidInput, "Slack cannot %s (%s)", what, code)
		if said := answer.Get("response_metadata.messages"); said.IsArray() {
			f = f.WithDetail(said.Raw)
		}
		return f
	case "name_taken", "is_archived":
		return fault.Newf(fault.Conflict, "Slack cannot %s (%s)", what, code)
	default:
		return refused(what, slack.SlackErrorResponse{Err: code, Needed: answer.Get("needed").Str})
	}
}
