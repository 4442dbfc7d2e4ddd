package github

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/builtin/values"
	"tandem/credential"
	"tandem/fault"
	"tandem/node"
	"tandem/outbound"
	"tandem/payload"
	"tandem/trigger"
)

// apiAddress is where GitHub is called, unless the credential says otherwise.
const apiAddress = "https://api.github.com"

// source starts executions for what GitHub sends.
type source struct {
	http *outbound.Client
	log  *slog.Logger
}

var _ trigger.Receiver = (*source)(nil)

// account is an opened credential.
type account struct {
	ID      string `json:"-"`
	Token   string `json:"token"`
	Secret  string `json:"webhook_secret"`
	BaseURL string `json:"base_url"`
}

// openAccount reads the credential of a trigger. It is released with the returned function.
func openAccount(ctx context.Context, t trigger.Trigger) (a account, release func(), err error) {
	id := gjson.GetBytes(t.Config, "credential_id").String()
	if id == "" {
		return a, nil, fault.New(fault.CredentialMissing, "credential_id: a GitHub trigger needs a credential of the type github_token with a webhook_secret")
	}
	opened, err := t.Open(ctx, id, credentialType)
	if err != nil {
		return a, nil, err
	}
	if err := payload.Read(opened.Data, &a); err != nil || a.Secret == "" {
		opened.Release()
		return a, nil, fault.Newf(fault.CredentialInvalid, "credential %q has no webhook_secret, by which calls of GitHub are known; set it, and the same secret in the webhook of the repository", id)
	}
	a.ID = id
	return a, opened.Release, nil
}

// Kind implements [trigger.Source].
func (*source) Kind() string { return kind }

// Register implements [trigger.Source]. With a token it looks whether the repository is there. GitHub that cannot be reached does not keep
// a trigger from being deployed, which GitHub calls and not the other way round.
func (s *source) Register(ctx context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[config](t.Config)
	if err != nil {
		return err
	}
	a, release, err := openAccount(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	if a.Token == "" {
		return nil
	}
	address, err := url.Parse(strings.TrimRight(cmp.Or(a.BaseURL, apiAddress), "/") + "/repos/" + cfg.Repository)
	if err != nil {
		return fault.Newf(fault.CredentialInvalid, "credential %q has a base_url that is not an address", a.ID)
	}
	answer, err := s.http.Do(ctx, outbound.Request{
		Method: http.MethodGet, URL: address, Redirects: 3, MaxResponse: 1 << 20,
		Header: http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}, "User-Agent": {"tandem"}},
		Secret: &outbound.Secret{Header: http.Header{"Authorization": {"Bearer " + a.Token}}},
	})
	unsure := func(why string) error {
		s.log.Warn("whether a repository is there could not be found out; the trigger is deployed all the same", "workspace", t.Workspace, "workflow", t.WorkflowID, "node", t.Node, "repository", cfg.Repository, "reason", why)
		return nil
	}
	if err != nil {
		if failed := fault.From(err); failed.Code == fault.BlockedAddress {
			return failed
		}
		return unsure(string(fault.CodeOf(err)))
	}
	body, err := answer.ReadAll()
	switch {
	case answer.Status == http.StatusUnauthorized:
		return fault.Newf(fault.CredentialInvalid, "GitHub does not take the token of credential %q; set a new one, or leave it out", a.ID)
	case answer.Status == http.StatusNotFound:
		return fault.Newf(fault.NotFound, "GitHub has no repository %q, or the token of credential %q may not see it; check repository and token", cfg.Repository, a.ID)
	case answer.Status != http.StatusOK || err != nil:
		return unsure(fmt.Sprint("status ", answer.Status))
	}
	if name := gjson.GetBytes(body, "full_name").String(); name != "" && !strings.EqualFold(name, cfg.Repository) {
		return fault.Newf(fault.InvalidConfig, "repository: %q is called %q now; write that, since GitHub sends it", cfg.Repository, name)
	}
	return nil
}

// Route implements [trigger.Receiver].
func (*source) Route(t trigger.Trigger) (trigger.Route, error) {
	cfg, err := node.Configuration[config](t.Config)
	return trigger.Route{Path: cfg.Path, Methods: []string{http.MethodPost}}, err
}

// Receive implements [trigger.Receiver].
func (s *source) Receive(ctx context.Context, t trigger.Trigger, r *trigger.Request) (trigger.Verdict, error) {
	cfg, err := node.Configuration[config](t.Config)
	if err != nil {
		return trigger.Verdict{}, err
	}
	a, release, err := openAccount(ctx, t)
	if err != nil {
		return trigger.Verdict{}, notGenuine(err)
	}
	defer release()
	if !a.signed(r) {
		return trigger.Verdict{}, notGenuine(nil)
	}
	e, err := readEvent(r)
	if err != nil {
		return trigger.Verdict{}, err
	}
	verdict := trigger.Verdict{Reply: trigger.ReplyAtOnce}
	if why := cfg.unwanted(e); why != "" {
		// It has a key of its own: GitHub may send it again when the filters are others.
		verdict.Event = trigger.Event{Key: "ignored:" + e.delivery, Ignored: why}
		return verdict, nil
	}
	verdict.Event = trigger.Event{Key: e.delivery, Payload: a.hide(e.payload(cfg.IncludePayload))}
	return verdict, nil
}

// notGenuine is the one refusal of everything that is wrong with the proof of a caller: an outsider learns nothing of the trigger. What may
// pass is returned.
func notGenuine(cause error) error {
	if cause != nil && fault.From(cause).Retryable {
		return cause
	}
	refused := fault.New(fault.Unauthorized, "the request is not signed by GitHub with the secret of this trigger; set the same secret in the webhook of the repository")
	if cause != nil {
		refused = refused.WithDetail(fault.From(cause).Message)
	}
	return refused
}

// signed says whether GitHub has signed a request with the secret of the account. It takes the same time whatever the signature is.
func (a account) signed(r *trigger.Request) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
	hash := hmac.New(sha256.New, []byte(a.Secret))
	_, _ = hash.Write(r.Body) // a hash takes everything
	return hmac.Equal(given, hash.Sum(nil)) && err == nil
}

// hide takes the secrets of the account out of what is kept.
func (a account) hide(raw json.RawMessage) json.RawMessage {
	var secrets credential.Redactor
	defer secrets.Hold(a.Secret, a.Token)()
	return secrets.JSON(raw)
}

// event is what GitHub has sent.
type event struct {
	name, delivery string
	body           json.RawMessage
}

// readEvent reads a request, whichever content type the webhook is set to.
func readEvent(r *trigger.Request) (*event, error) {
	e := &event{name: r.Header.Get("X-GitHub-Event"), delivery: strings.TrimSpace(r.Header.Get("X-GitHub-Delivery"))}
	if e.name == "" {
		return nil, fault.New(fault.InvalidInput, "the header X-GitHub-Event is missing; let GitHub call this address")
	}
	if e.delivery == "" { // the same signed request a second time is a repetition
		sum := sha256.Sum256(append([]byte(e.name+"\n"), r.Body...))
		e.delivery = "sha256:" + hex.EncodeToString(sum[:])
	}
	body := r.Body
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil &&
		mediaType == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(r.Body))
		if err != nil || !form.Has("payload") {
			return nil, fault.New(fault.InvalidInput, "body: it is a form without a field payload; set the content type of the webhook to application/json")
		}
		body = []byte(form.Get("payload"))
	}
	read, err := payload.Normalize(body, payload.Limits{Unique: true})
	if wrong, bad := errors.AsType[*payload.Error](err); bad {
		return nil, fault.Newf(fault.InvalidInput, "%s: the payload cannot be read: %s", cmp.Or(wrong.Path, "body"), wrong.Reason)
	}
	if err == nil && !values.IsObject(read) {
		err = fault.New(fault.InvalidInput, "body: the payload must be an object")
	}
	e.body = read
	return e, err
}

func (e *event) text(path string) string { return gjson.GetBytes(e.body, path).String() }

// places are the branch and the commit that an event is about, and the branch that the filter looks at; about says that there is one.
func (e *event) places() (branch, commit, filtered string, about bool) {
	switch e.name {
	case "push":
		branch, is := strings.CutPrefix(e.text("ref"), "refs/heads/")
		if !is { // a tag
			branch = ""
		}
		commit = e.text("after")
		if strings.Trim(commit, "0") == "" { // the branch was removed
			commit = ""
		}
		return branch, commit, branch, true
	case "pull_request", "pull_request_review":
		return e.text("pull_request.head.ref"), e.text("pull_request.head.sha"), e.text("pull_request.base.ref"), true
	case "release":
		return e.text("release.target_commitish"), "", "", false
	case "workflow_run":
		return "", e.text("workflow_run.head_sha"), "", false
	}
	return "", "", "", false
}

// payload is what the trigger hands on.
func (e *event) payload(whole bool) json.RawMessage {
	branch, commit, _, _ := e.places()
	body := json.RawMessage("null")
	if whole {
		body = e.body
	}
	return values.Object([]values.Member{
		values.Field("event_type", e.name), values.Field("action", e.text("action")),
		values.Field("repository", e.text("repository.full_name")), values.Field("sender", e.text("sender.login")),
		values.Field("branch", branch), values.Field("commit_sha", commit), values.Field("delivery_id", e.delivery),
		{Key: "github_payload", Value: body},
	})
}

// unwanted says why an event starts nothing; empty: it does.
func (c *config) unwanted(e *event) string {
	_, _, branch, about := e.places()
	switch name := e.text("repository.full_name"); {
	case e.name == "ping":
		return "GitHub has tried the address out, and reaches it"
	case name == "":
		return "it is not about a repository"
	case !strings.EqualFold(name, c.Repository):
		return fmt.Sprintf("it is about the repository %q", name)
	case !slices.Contains(c.Events, e.name):
		return fmt.Sprintf("the event %q is not among events", e.name)
	case about && len(c.Branches) > 0 && branch == "":
		return "it is not about a branch, and branches is set"
	case about && len(c.Branches) > 0 && !slices.ContainsFunc(c.Branches, func(glob string) bool { return fitsGlob(glob, branch) }):
		return fmt.Sprintf("the branch %q is not among branches", branch)
	}
	for _, m := range payload.Members(c.Conditions) {
		if !e.fits(m.Key, m.Value) {
			return "it does not fit filter_conditions." + m.Key
		}
	}
	return ""
}

// fits says whether an event fits a condition.
func (e *event) fits(path string, wanted json.RawMessage) bool {
	if path == commentContains {
		return e.says(wanted)
	}
	steps, err := values.ParsePath(path)
	if err != nil {
		return false
	}
	found, ok := steps.Walk(e.body)
	if !ok {
		found = json.RawMessage("null")
	}
	options := []json.RawMessage{wanted}
	if values.IsList(wanted) {
		options = values.Elements(wanted)
	}
	return slices.ContainsFunc(options, func(option json.RawMessage) bool {
		return values.Equal(values.Decode(found),
			values.Decode(option))
	})
}

// says says whether a comment or a review has one of the texts, in any letter case. Other events have no comment, and are not narrowed by
// it.
func (e *event) says(wanted json.RawMessage) bool {
	var said string
	switch e.name {
	case "issue_comment":
		said = e.text("comment.body")
	case "pull_request_review":
		said = e.text("review.body")
	default:
		return true
	}
	list, _ := texts(wanted)
	return slices.ContainsFunc(list, func(text string) bool { return strings.Contains(strings.ToLower(said), strings.ToLower(text)) })
}

// fitsGlob says whether a branch fits a pattern: * stands for anything but a slash, ** for anything, ? for one letter that is not a slash.
func fitsGlob(glob, branch string) bool {
	var pattern strings.Builder
	for rest := strings.TrimSpace(glob); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**"):
			pattern.WriteString(".*")
			rest = rest[2:]
		case rest[0] == '*':
			pattern.WriteString("[^/]*")
			rest = rest[1:]
		case rest[0] == '?':
			pattern.WriteString("[^/]")
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, "*?")
			if end < 0 {
				end = len(rest)
			}
			pattern.WriteString(regexp.QuoteMeta(rest[:end]))
			rest = rest[end:]
		}
	}
	fits, err := regexp.MatchString("^(?s:"+pattern.String()+")$", branch)
	return err == nil && fits
}
