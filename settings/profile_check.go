package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/llm"
	"tandem/route"
	"tandem/store"
	"tandem/text"
)

// Limits of the numbers in a profile. Larger ones are mistakes, and would not fit into the ledger.
const (
	maxPrice        = 1e6
	maxBudgetTokens = 1e15
	maxBudgetCost   = 1e12
)

// wholeBody is the path of what is wrong with all of a body.
const wholeBody = "body"

// readProfileBody reads a profile and says everything that is wrong with its shape. Older spellings are taken: camel case,
// budgets for budget, one budget without a list.
func (s *settings) readProfileBody(raw []byte) (body api.Profile, wrong []api.FaultField) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return body, []api.FaultField{api.Wrong(wholeBody, text.Of("must be a JSON object with provider, model and so on"))}
	}
	refuse := func(path, format string, args ...any) {
		wrong = append(wrong, api.Wrong(path, text.Formatted(format, args...)))
	}
	fields = respelled(fields, "", map[string]string{"budgets": "budget", "profile_id": "id", "params": "parameters"}, refuse)
	if inner := map[string]json.RawMessage{}; json.Unmarshal(fields["parameters"], &inner) == nil && inner != nil {
		fields["parameters"] = rejoined(respelled(inner, "parameters.", nil, refuse))
	}
	if one := bytes.TrimSpace(fields["budget"]); len(one) > 0 && one[0] == '{' {
		fields["budget"] = slices.Concat(json.RawMessage("["), one, json.RawMessage("]"))
	}
	var budgets []map[string]json.RawMessage
	if json.Unmarshal(fields["budget"], &budgets) == nil && budgets != nil {
		for i := range budgets {
			budgets[i] = respelled(budgets[i], fmt.Sprintf("budget[%d].", i), nil, refuse)
			if budgets[i]["per"] == nil {
				budgets[i]["per"] = json.RawMessage(`""`) // so that its own path is named
			}
		}
		fields["budget"] = rejoined(budgets)
	}
	if fields["provider"] == nil {
		fields["provider"] = json.RawMessage(`""`)
	}
	raw = rejoined(fields)
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		refuse(wholeBody, "cannot be read as JSON")
		return body, wrong
	}
	registry, result := s.Document().Components.Schemas, &huma.ValidateResult{}
	schema := registry.Schema(reflect.TypeFor[api.Profile](), true, "")
	huma.Validate(registry, schema, huma.NewPathBuffer([]byte{}, 0), huma.ModeWriteToServer, value, result)
	for _, err := range result.Errors {
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			refuse(route.FieldPath(detail.Location), "%s", detail.Message)
		} else {
			refuse(wholeBody, "%s", err)
		}
	}
	slices.SortStableFunc(wrong, func(a, b api.FaultField) int { return strings.Compare(a.Path, b.Path) })
	if err := json.Unmarshal(raw, &body); err != nil && len(wrong) == 0 {
		refuse(wholeBody, "cannot be read as a profile")
	}
	return body, wrong
}

// respelled returns fields under the names that they have today. Those that look like secrets are refused and left out.
func respelled(fields map[string]json.RawMessage, path string, older map[string]string,
	refuse func(path, format string, args ...any)) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		today := route.SnakeCase(name)
		if better := older[today]; better != "" {
			today = better
		}
		_, twice := out[today]
		switch {
		case secretField(today):
			refuse(path+name, "a profile holds no secrets, and what was sent was not kept; put it into a credential of the provider's type (POST %s/credentials) and name that in credential_id", route.Prefix)
		case twice:
			refuse(path+name, "is another spelling of %q, which is there as well; leave one of them out", today)
		default:
			out[today] = fields[name]
		}
	}
	return out
}

// rejoined writes what was taken apart.
func rejoined(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // made of JSON, it always is JSON
	}
	return raw
}

// secretField recognises the names under which people send keys.
func secretField(name string) bool {
	name = strings.ReplaceAll(name, "-", "_")
	if slices.Contains([]string{"key", "apikey", "secret", "token", "password", "auth", "authorization", "bearer",
		"credentials", "headers"}, name) {
		return true
	}
	return slices.ContainsFunc([]string{"_key", "_secret", "_token", "_password", "_apikey", "_credentials"},
		func(end string) bool { return strings.HasSuffix(name, end) })
}

// checkProfile says everything that is wrong with what a profile means, apart from fields that were refused before. A
// credential that is named by its name becomes its id.
func (s *settings) checkProfile(ctx context.Context, p identity.Principal, body *api.Profile,
	before []api.FaultField) (wrong []api.FaultField, err error) {
	refuse := func(path, format string, args ...any) {
		if !slices.ContainsFunc(before, func(f api.FaultField) bool { return f.Path == path }) {
			wrong = append(wrong, api.Wrong(path, text.Formatted(format, args...)))
		}
	}
	if strings.Trim(body.ID, ".") == "" || !profileID.MatchString(body.ID) {
		refuse("id", "an id has letters, digits, _, - and dots, at most 128 of them")
	}
	body.Name = strings.TrimSpace(body.Name)
	var known []string
	var provider llm.About
	for _, one := range s.o.Models.Providers() {
		known = append(known, one.Name)
		if one.Name == body.Provider {
			provider = one
		}
	}
	slices.Sort(known)
	switch {
	case body.Provider == "":
		refuse("provider", "is missing; there are %s", strings.Join(known, ", "))
	case !slices.Contains(known, body.Provider):
		if hint := route.DidYouMean(body.Provider, known); !hint.IsZero() {
			refuse("provider", "there is no provider %q%s", body.Provider, hint)
		} else {
			refuse("provider", "there is no provider %q; there are %s, and openai is for everything that speaks its API", body.Provider, strings.Join(known, ", "))
		}
	}
	if strings.TrimSpace(body.Model) == "" && !provider.Scripted {
		refuse("model", "is missing; name the model as the service does")
	}
	if problem := checkBaseURL(body.BaseURL); !problem.IsZero() {
		refuse("base_url", "%s", problem)
	} else if found := inlineFields("", map[string]string{"base_url": body.BaseURL}, text.Of("create a credential with it, and name it in credential_id")); len(found) > 0 {
		refuse("base_url", "%s", found[0].Text())
	}
	if err := s.checkProfileCredential(ctx, p, body, provider, refuse); err != nil {
		return nil, err
	}
	if err := s.checkFallbacks(ctx, p, body, refuse); err != nil {
		return nil, err
	}
	for _, price := range []struct {
		path  string
		value float64
	}{{"price.input", body.Price.Input}, {"price.output", body.Price.Output}, {"price.cached", body.Price.Cached}} {
		if price.value > maxPrice {
			refuse(price.path, "is the price of a million tokens, and at most %g", maxPrice)
		}
	}
	if safety := body.Parameters.Safety; !absent(safety) && json.Unmarshal(safety, &map[string]any{}) != nil {
		refuse("parameters.safety", "must be an object of category to threshold")
	}
	checkBudgets(body, refuse)
	checkScript(body, provider, refuse)
	return wrong, nil
}

var profileID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`) // read-only

// checkBaseURL says what is wrong with the address of a service.
func checkBaseURL(address string) text.Text {
	if address == "" {
		return text.Text{}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return text.Of("is not an http or https address; write it like https://api.example.com/v1")
	case u.User != nil:
		return text.Of("has a user or a password in it; put them into a credential")
	case u.RawQuery != "" || u.Fragment != "":
		return text.Of("has a query or a fragment, which would not be sent; leave it out, and put a key into a credential")
	}
	return text.Text{}
}

// checkProfileCredential finds the credential that a profile names, by id or by name. Errors do not repeat what was sent:
// people put keys there.
func (s *settings) checkProfileCredential(ctx context.Context, p identity.Principal, body *api.Profile, provider llm.About,
	refuse func(string, string, ...any)) error {
	if body.CredentialID == "" {
		return nil
	}
	all, err := s.o.Stores.Credentials.List(ctx, p)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(c store.Credential) bool { return c.ID == body.CredentialID })
	if at < 0 {
		at = slices.IndexFunc(all, func(c store.Credential) bool { return c.Name == body.CredentialID })
	}
	if at < 0 {
		var fitting []string
		for _, c := range all {
			if c.Type == body.Provider {
				fitting = append(fitting, c.Name)
			}
		}
		switch hint := route.DidYouMean(body.CredentialID, fitting); {
		case !hint.IsZero():
			refuse("credential_id", "there is no such credential%s", hint)
		case len(fitting) > 0:
			refuse("credential_id", "there is no such credential; of type %s there are %s", body.Provider, route.Quoted(fitting))
		default:
			refuse("credential_id", "there is no such credential; an admin makes one of type %s with POST %s/credentials", body.Provider, route.Prefix)
		}
		return nil
	}
	if c := all[at]; c.Type != body.Provider && !provider.Scripted {
		refuse("credential_id", "credential %q is of type %s, and the provider is %q", c.Name, c.Type, body.Provider)
	}
	body.CredentialID = all[at].ID
	return nil
}

// checkFallbacks looks for profiles that are not there and for circles.
func (s *settings) checkFallbacks(ctx context.Context, p identity.Principal, body *api.Profile, refuse func(string, string, ...any)) error {
	if len(body.Fallbacks) == 0 {
		return nil
	}
	all, err := s.profileIDs(ctx, p)
	if err != nil {
		return err
	}
	all[body.ID] = body.Fallbacks
	for i, id := range body.Fallbacks {
		path := fmt.Sprintf("fallback_profiles[%d]", i)
		_, there := all[id]
		switch {
		case id == body.ID:
			refuse(path, "a profile cannot take its own place")
		case slices.Contains(body.Fallbacks[:i], id):
			refuse(path, "profile %q is in the list twice", id)
		case !there:
			refuse(path, "there is no profile %q%s", id, route.DidYouMean(id, slices.Sorted(maps.Keys(all))))
		default:
			if way := wayTo(all, id, body.ID, map[string]bool{}); way != nil {
				refuse(path, "goes in a circle: %s", strings.Join(append([]string{body.ID}, way...), " -> "))
			}
		}
	}
	return nil
}

// wayTo is a path of fallbacks from one profile to another, nil when there is none.
func wayTo(all map[string][]string, from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, next := range all[from] {
		if way := wayTo(all, next, to, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}

func checkBudgets(body *api.Profile, refuse func(string, string, ...any)) {
	for i, b := range body.Budget {
		path := fmt.Sprintf("budget[%d]", i)
		if slices.ContainsFunc(body.Budget[:i], func(other api.ProfileBudget) bool { return other.Per == b.Per }) {
			refuse(path+".per", "there is already a budget per %s; one may limit tokens and cost", b.Per)
		}
		switch {
		case b.Tokens == 0 && b.Cost == 0:
			refuse(path, "limits nothing; set tokens, cost or both")
		case b.Tokens > maxBudgetTokens:
			refuse(path+".tokens", "is at most %g", float64(maxBudgetTokens))
		case b.Cost > maxBudgetCost:
			refuse(path+".cost", "is at most %g", maxBudgetCost)
		case b.Cost > 0 && body.Price == (api.ProfilePrice{}):
			refuse(path+".cost", "cannot be kept to without a price; set price, or limit tokens")
		}
		if b.TimeZone == "" {
			continue
		}
		if _, err := time.LoadLocation(b.TimeZone); err != nil || b.TimeZone == "Local" {
			refuse(path+".time_zone", "%q is not a time zone; write it like Asia/Shanghai", b.TimeZone)
		} else if b.Per != "day" {
			refuse(path+".time_zone", "says when a day begins, and the budget is per %s", b.Per)
		}
	}
}

func checkScript(body *api.Profile, provider llm.About, refuse func(string, string, ...any)) {
	if !provider.Scripted && (len(body.Script.Rules) > 0 || len(body.Script.Recorded) > 0) {
		refuse("script", "is for a provider that answers from a script only; %q asks a service", body.Provider)
	}
	for i, r := range body.Script.Rules {
		path := fmt.Sprintf("script.rules[%d]", i)
		if _, err := regexp.Compile(r.Matches); err != nil {
			refuse(path+".matches", "is not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		if r.Fail != "" && !slices.Contains(fault.Codes(), fault.Code(r.Fail)) {
			refuse(path+".fail", "there is no error code %q%s", r.Fail, route.DidYouMean(r.Fail, codeNames()))
		}
		if r.Reply == "" && absent(r.JSON) && len(r.Calls) == 0 && r.Fail == "" && r.FinishReason == "" {
			refuse(path, "answers nothing; set reply, json, calls or fail")
		}
	}
}

func codeNames() []string {
	var names []string
	for _, c := range fault.Codes() {
		names = append(names, string(c))
	}
	return names
}
