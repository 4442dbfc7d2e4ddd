package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tandem/api"
	"tandem/budget"
	"tandem/identity"
	"tandem/llm"
)

// keepCredential makes a credential as the admin and returns its id.
func (x *site) keepCredential(t *testing.T, name, kind, key string) string {
	t.Helper()
	body := map[string]any{"name": name, "type": kind, "data": map[string]any{"api_key": key}}
	return want[api.Credential](t, x.call(t, "admin", "POST", "/credentials", body), http.StatusCreated).ID
}

func (x *site) putProfile(t *testing.T, id, body string) api.Profile {
	t.Helper()
	return want[api.Profile](t, x.call(t, "editor", "PUT", "/llm/profiles/"+id, body), http.StatusOK)
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	key := x.keepCredential(t, "openai-key", "openai", "sk-canary-0123456789")
	x.putProfile(t, "spare", `{"provider":"scripted","script":{"rules":[{"matches":"^a(.)$","reply":"$1"},{"fail":"rate_limited"}]}}`)

	full := `{"name":"My Main Model!","provider":"openai","model":"gpt","embedding_model":"e","baseUrl":"https://models.example.com/v1","credential_id":"openai-key",
		"parameters":{"temperature":0,"topP":0.5,"maxTokens":100,"stop":["x"],"reasoning_effort":"low"},"price":{"input":1.5,"output":3,"cached":0.1},
		"fallback_profiles":["spare"],"budgets":{"per":"day","tokens":1000,"cost":2.5,"timeZone":"Asia/Shanghai"}}`
	made := want[api.Profile](t, x.call(t, "editor", "POST", "/llm/profiles", full), http.StatusCreated)
	zero, half := 0.0, 0.5
	expected := api.Profile{
		ID: "my-main-model", Name: "My Main Model!", Provider: "openai", Model: "gpt", EmbeddingModel: "e", BaseURL: "https://models.example.com/v1", CredentialID: key,
		Parameters: api.ProfileParameters{Temperature: &zero, TopP: &half, MaxTokens: 100, Stop: []string{"x"}, ReasoningEffort: "low"},
		Price:      api.ProfilePrice{Input: 1.5, Output: 3, Cached: 0.1}, Fallbacks: []string{"spare"},
		Budget:      []api.ProfileBudget{{Per: "day", Tokens: 1000, Cost: 2.5, TimeZone: "Asia/Shanghai"}},
		CreatedTime: made.CreatedTime, UpdatedTime: made.UpdatedTime,
	}
	if diff := cmp.Diff(expected, made); diff != "" || made.CreatedTime == 0 {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	// What is read can be written as it is.
	got := x.call(t, "viewer", "GET", "/llm/profiles/my-main-model", nil)
	if diff := cmp.Diff(made, want[api.Profile](t, got, http.StatusOK)); diff != "" {
		t.Errorf("read (-made +read):\n%s", diff)
	}
	again := want[api.Profile](t, x.call(t, "editor", "PUT", "/llm/profiles/my-main-model", string(got.body)), http.StatusOK)
	again.UpdatedTime = made.UpdatedTime
	if diff := cmp.Diff(made, again); diff != "" {
		t.Errorf("written again (-made +again):\n%s", diff)
	}
	if second := want[api.Profile](t, x.call(t, "editor", "POST", "/llm/profiles", full), http.StatusCreated); second.ID != "my-main-model-2" {
		t.Errorf("the second of the name is %q", second.ID)
	}
	refused(t, x.call(t, "editor", "POST", "/llm/profiles", `{"id":"spare","provider":"scripted"}`), http.StatusConflict, "conflict")

	var ids []string
	for _, p := range want[api.Profiles](t, x.call(t, "viewer", "GET", "/llm/profiles", nil), http.StatusOK).Profiles {
		ids = append(ids, p.ID)
	}
	if !slices.Equal(ids, []string{"demo", "my-main-model", "my-main-model-2", "spare"}) {
		t.Errorf("listed %q", ids)
	}
	stored, err := x.Profile(t.Context(), "default", "my-main-model")
	if err != nil || stored.Params.Temperature == nil || stored.Budgets[0].TimeZone != "Asia/Shanghai" || stored.Fallbacks[0] != "spare" {
		t.Errorf("nodes see %+v, %v", stored, err)
	}

	t.Run("Roles", func(t *testing.T) {
		for _, role := range []string{"viewer", "approver", "operator"} {
			refused(t, x.call(t, role, "PUT", "/llm/profiles/p", `{"provider":"scripted"}`), http.StatusForbidden, "forbidden")
			refused(t, x.call(t, role, "POST", "/llm/profiles", `{"provider":"scripted"}`), http.StatusForbidden, "forbidden")
			refused(t, x.call(t, role, "DELETE", "/llm/profiles/spare", nil), http.StatusForbidden, "forbidden")
			refused(t, x.call(t, role, "POST", "/llm/profiles/spare/test", nil), http.StatusForbidden, "forbidden")
		}
	})
	t.Run("Tenants", func(t *testing.T) {
		for _, c := range [][2]string{{"GET", ""}, {"DELETE", "?force=true"}, {"POST", "/test"}} {
			refused(t, x.call(t, "stranger", c[0], "/llm/profiles/spare"+c[1], nil), http.StatusNotFound, "not_found")
		}
		if got := want[api.Profiles](t, x.call(t, "stranger", "GET", "/llm/profiles", nil), http.StatusOK).Profiles; len(got) != 1 || got[0].ID != "demo" {
			t.Errorf("another workspace has %+v", got)
		}
		f := refused(t, x.call(t, "stranger", "PUT", "/llm/profiles/p", `{"provider":"openai","model":"m","credential_id":"`+key+`","fallback_profiles":["spare"]}`), 422, "invalid_input")
		if !slices.Equal(fields(f), []string{"credential_id", "fallback_profiles[0]"}) {
			t.Errorf("refused %+v", f.Errors)
		}
	})
}

func TestProfiles_Refused(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.keepCredential(t, "claude", "anthropic", "sk-canary-0123456789")
	x.keepCredential(t, "gpt-key", "openai", "sk-canary-9876543210")
	x.putProfile(t, "a", `{"provider":"scripted"}`)
	x.putProfile(t, "b", `{"provider":"scripted","fallback_profiles":["a"]}`)
	for _, c := range []struct {
		name, body, path, message string
	}{
		{"NoObject", `["x"]`, "body", "must be a JSON object"},
		{"Null", `null`, "body", "must be a JSON object"},
		{"NoProvider", `{"model":"m"}`, "provider", "is missing; there are anthropic, gemini, openai, scripted"},
		{"NearProvider", `{"provider":"opanai","model":"m"}`, "provider", `did you mean "openai"?`},
		{"UnknownProvider", `{"provider":"ollama","model":"m"}`, "provider", "openai is for everything that speaks its API"},
		{"NoModel", `{"provider":"openai","model":" "}`, "model", "is missing"},
		{"URL", `{"provider":"openai","model":"m","base_url":"ftp://x"}`, "base_url", "http or https"},
		{"URLWithoutHost", `{"provider":"openai","model":"m","base_url":"https:///v1"}`, "base_url", "http or https"},
		{"URLWithPassword", `{"provider":"openai","model":"m","base_url":"https://u:p@x.example"}`, "base_url", "put them into a credential"},
		{"URLWithKey", `{"provider":"openai","model":"m","base_url":"https://x.example/v1?key=k"}`, "base_url", "put a key into a credential"},
		{"Credential", `{"provider":"openai","model":"m","credential_id":"sk-secret"}`, "credential_id", `of type openai there are "gpt-key"`},
		{"NearCredential", `{"provider":"openai","model":"m","credential_id":"gpt-kay"}`, "credential_id", `did you mean "gpt-key"?`},
		{"NoCredential", `{"provider":"gemini","model":"m","credential_id":"x"}`, "credential_id", "an admin makes one of type gemini"},
		{"CredentialType", `{"provider":"openai","model":"m","credential_id":"claude"}`, "credential_id", `"claude" is of type anthropic`},
		{"APIKey", `{"provider":"openai","model":"m","apiKey":"sk-secret"}`, "apiKey", "put it into a credential"},
		{"Key", `{"provider":"openai","model":"m","key":"sk-secret"}`, "key", "credential_id"},
		{"Headers", `{"provider":"openai","model":"m","headers":{"Authorization":"sk-secret"}}`, "headers", "credential_id"},
		{"InnerToken", `{"provider":"openai","model":"m","parameters":{"access_token":"sk-secret"}}`, "parameters.access_token", "credential_id"},
		{"Fallback", `{"provider":"scripted","fallback_profiles":["aa"]}`, "fallback_profiles[0]", `did you mean "a"?`},
		{"OwnFallback", `{"provider":"scripted","fallback_profiles":["p"]}`, "fallback_profiles[0]", "its own place"},
		{"FallbackTwice", `{"provider":"scripted","fallback_profiles":["a","a"]}`, "fallback_profiles[1]", "twice"},
		{"Price", `{"provider":"scripted","price":{"input":-1}}`, "price.input", ">= 0"},
		{"LargePrice", `{"provider":"scripted","price":{"output":1e9}}`, "price.output", "million tokens"},
		{"Temperature", `{"provider":"scripted","parameters":{"temperature":3}}`, "parameters.temperature", "<= 2"},
		{"TopP", `{"provider":"scripted","parameters":{"topP":-1}}`, "parameters.top_p", ">= 0"},
		{"MaxTokens", `{"provider":"scripted","parameters":{"max_tokens":-1}}`, "parameters.max_tokens", ">= 0"},
		{"Effort", `{"provider":"scripted","parameters":{"reasoning_effort":"huge"}}`, "parameters.reasoning_effort", "one of"},
		{"Safety", `{"provider":"scripted","parameters":{"safety":[1]}}`, "parameters.safety", "object"},
		{"Parameters", `{"provider":"scripted","parameters":"warm"}`, "parameters", "object"},
		{"BudgetTokens", `{"provider":"scripted","budget":[{"per":"day","tokens":-1}]}`, "budget[0].tokens", ">= 0"},
		{"BudgetCost", `{"provider":"scripted","budget":[{"per":"day","cost":-0.5}]}`, "budget[0].cost", ">= 0"},
		{"BudgetPer", `{"provider":"scripted","budget":[{"per":"month","tokens":1}]}`, "budget[0].per", "execution"},
		{"BudgetNoPer", `{"provider":"scripted","budget":{"tokens":1}}`, "budget[0].per", "execution"},
		{"BudgetNothing", `{"provider":"scripted","budget":[{"per":"day"}]}`, "budget[0]", "limits nothing"},
		{"BudgetTwice", `{"provider":"scripted","budget":[{"per":"day","tokens":1},{"per":"day","tokens":2}]}`, "budget[1].per", "already a budget per day"},
		{"BudgetZone", `{"provider":"scripted","budget":[{"per":"day","tokens":1,"time_zone":"Mars/Base"}]}`, "budget[0].time_zone", "Asia/Shanghai"},
		{"BudgetLocal", `{"provider":"scripted","budget":[{"per":"day","tokens":1,"time_zone":"Local"}]}`, "budget[0].time_zone", "Asia/Shanghai"},
		{"BudgetZoneOfWorkflow", `{"provider":"scripted","budget":[{"per":"workflow","tokens":1,"time_zone":"UTC"}]}`, "budget[0].time_zone", "when a day begins"},
		{"BudgetWithoutPrice", `{"provider":"scripted","budget":[{"per":"day","cost":1}]}`, "budget[0].cost", "without a price"},
		{"BudgetSpelledTwice", `{"provider":"scripted","budget":[],"budgets":[]}`, "budgets", "another spelling"},
		{"Matches", `{"provider":"scripted","script":{"rules":[{"reply":"x"},{"matches":"(","reply":"x"}]}}`, "script.rules[1].matches", "regular expression"},
		{"Fail", `{"provider":"scripted","script":{"rules":[{"fail":"rate_limit"}]}}`, "script.rules[0].fail", `did you mean "rate_limited"?`},
		{"NoAnswer", `{"provider":"scripted","script":{"rules":[{"contains":"x"}]}}`, "script.rules[0]", "answers nothing"},
		{"ScriptOfOther", `{"provider":"openai","model":"m","script":{"rules":[{"reply":"x"}]}}`, "script", "only"},
		{"Unknown", `{"provider":"scripted","temprature":1}`, "temprature", "unexpected"},
		{"OtherID", `{"id":"q","provider":"scripted"}`, "id", "not the profile of the address"},
		{"WrongType", `{"provider":7,"model":"m"}`, "provider", "string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := x.call(t, "editor", "PUT", "/llm/profiles/p", json.RawMessage(c.body))
			f := refused(t, a, 422, "invalid_input")
			if !slices.Equal(fields(f), []string{c.path}) || !strings.Contains(f.Errors[0].Message, c.message) {
				t.Errorf("refused %+v", f.Errors)
			}
			if strings.Contains(string(a.body), "sk-secret") || strings.Contains(string(a.body), "u:p") {
				t.Errorf("the secret is repeated: %s", a.body)
			}
		})
	}
	t.Run("Circle", func(t *testing.T) {
		t.Parallel()
		f := refused(t, x.call(t, "editor", "PUT", "/llm/profiles/a", `{"provider":"scripted","fallback_profiles":["b"]}`), 422, "invalid_input")
		if len(f.Errors) != 1 || !strings.Contains(f.Errors[0].Message, "a -> b -> a") {
			t.Errorf("refused %+v", f.Errors)
		}
	})
	t.Run("EverythingAtOnce", func(t *testing.T) {
		t.Parallel()
		f := refused(t, x.call(t, "editor", "POST", "/llm/profiles", `{"provider":"x","api_key":"k","base_url":"?","budget":{"per":"year"},"price":{"input":-1},"fallback_profiles":["z"]}`), 422, "invalid_input")
		got := fields(f)
		slices.Sort(got)
		if !slices.Equal(got, []string{"api_key", "base_url", "budget[0]", "budget[0].per", "fallback_profiles[0]", "model", "price.input", "provider"}) {
			t.Errorf("refused %q", got)
		}
	})
	t.Run("ID", func(t *testing.T) {
		t.Parallel()
		for _, id := range []string{"a%2Fb", "...", "a%20b"} {
			f := refused(t, x.call(t, "editor", "PUT", "/llm/profiles/"+id, `{"provider":"scripted"}`), 422, "invalid_input")
			if !slices.Contains(fields(f), "id") {
				t.Errorf("%q: refused %+v", id, f.Errors)
			}
		}
	})
	if _, err := x.stores.Profiles.Get(t.Context(), identity.System("default"), "p"); err == nil {
		t.Error("a profile that was refused is kept")
	}
}

func TestProfiles_Delete(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.putProfile(t, "base", `{"provider":"scripted"}`)
	x.putProfile(t, "top", `{"provider":"scripted","fallback_profiles":["base"]}`)
	f := refused(t, x.call(t, "editor", "DELETE", "/llm/profiles/base?force=true", nil), http.StatusConflict, "conflict")
	if !strings.Contains(f.Detail, `"top"`) || fmt.Sprint(f.Details["profiles"]) != "[top]" {
		t.Errorf("refused %+v", f)
	}
	x.save(t, agentFlow(`{profileId: top, user_prompt: hello}`, ``, ``))
	want[api.NodeTemplate](t, x.call(t, "editor", "POST", "/node-templates", api.NodeTemplate{ID: "tpl", Kind: "AI_AGENT.LLM", Name: "t", KnownParams: json.RawMessage(`{"profile_id":"top"}`)}), http.StatusCreated)
	f = refused(t, x.call(t, "editor", "DELETE", "/llm/profiles/top", nil), http.StatusConflict, "conflict")
	if !strings.Contains(f.Detail, `workflows "talk"`) || !strings.Contains(f.Detail, `templates "tpl"`) || !strings.Contains(f.Detail, "force=true") {
		t.Errorf("refused %+v", f)
	}
	for _, path := range []string{"top?force=true", "base"} {
		if a := x.call(t, "editor", "DELETE", "/llm/profiles/"+path, nil); a.status != http.StatusNoContent {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if f := refused(t, x.call(t, "editor", "DELETE", "/llm/profiles/dem", nil), http.StatusNotFound, "not_found"); !strings.Contains(f.Detail, `did you mean "demo"`) {
		t.Errorf("refused %+v", f)
	}
	refused(t, x.call(t, "editor", "DELETE", "/llm/profiles/demo", nil), http.StatusConflict, "conflict")
	x.putProfile(t, "demo", `{"provider":"scripted","script":{"rules":[{"reply":"own"}]}}`)
	if got := want[api.ProfileTest](t, x.call(t, "editor", "POST", "/llm/profiles/demo/test", nil), http.StatusOK); got.Reply != "own" {
		t.Errorf("own demo answers %+v", got)
	}
}

func TestProfiles_Test(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	const secret = "sk-canary-0123456789"
	key := x.keepCredential(t, "key", "openai", secret)
	try := func(t *testing.T, id string, body any) api.ProfileTest {
		t.Helper()
		return want[api.ProfileTest](t, x.call(t, "editor", "POST", "/llm/profiles/"+id+"/test", body), http.StatusOK)
	}
	t.Run("Streams", func(t *testing.T) {
		t.Parallel()
		model := newModelService(t, func(r chatRequest, _ <-chan struct{}) chatReply {
			return chatReply{text: []string{"ok, ", "your key is " + secret}, tokens: 7}
		})
		x.putProfile(t, "good", fmt.Sprintf(`{"provider":"openai","model":"m","base_url":%q,"credential_id":%q,"price":{"output":1000000},"budget":[{"per":"day","tokens":2000},{"per":"execution","tokens":1}]}`, model.URL+"/v1", key))
		got := try(t, "good", nil)
		if !got.OK || got.Model != "m" || got.Reply != "ok, your key is [redacted]" || got.Usage == nil || got.Usage.OutputTokens != 7 || got.Usage.Cost != 7 || got.Error != nil {
			t.Errorf("answer %+v, usage %+v, error %+v", got, got.Usage, got.Error)
		}
		if asked := model.asked[0]; !asked.Stream || asked.Messages[0].text() != "Say ok." {
			t.Errorf("asked %+v", asked)
		}
		try(t, "good", api.ProfileTestRequest{Prompt: "who?"})
		if asked := model.asked[1]; asked.Messages[0].text() != "who?" {
			t.Errorf("asked %+v", asked)
		}
		list := want[api.Budgets](t, x.call(t, "viewer", "GET", "/budgets?profile_id=good", nil), http.StatusOK).Budgets
		if len(list) != 1 || list[0].Spent != 14 || list[0].Reserved != 0 || list[0].Remaining != 1986 {
			t.Errorf("a test counts for the day: %+v", list)
		}
	})
	t.Run("BudgetOfTheDay", func(t *testing.T) {
		t.Parallel()
		model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{text: []string{"ok"}} })
		x.putProfile(t, "poor", fmt.Sprintf(`{"provider":"openai","model":"m","base_url":%q,"budget":{"per":"day","tokens":10}}`, model.URL+"/v1"))
		if got := try(t, "poor", nil); got.OK || got.Error == nil || got.Error.Code != "budget_exhausted" || model.count() != 0 {
			t.Errorf("answer %+v %+v, asked %d times", got, got.Error, model.count())
		}
	})
	t.Run("Refused", func(t *testing.T) {
		t.Parallel()
		model := newModelService(t, func(chatRequest, <-chan struct{}) chatReply { return chatReply{status: http.StatusUnauthorized} })
		x.putProfile(t, "bad", fmt.Sprintf(`{"provider":"openai","model":"m","base_url":%q,"credential_id":"key","fallback_profiles":["demo"]}`, model.URL+"/v1"))
		if got := try(t, "bad", nil); got.OK || got.Error == nil || got.Error.Code != "credential_invalid" || got.Error.Message == "" || strings.Contains(got.Error.Message, secret) || model.count() != 1 {
			t.Errorf("answer %+v %+v", got, got.Error)
		}
	})
	t.Run("Nowhere", func(t *testing.T) {
		t.Parallel()
		x.putProfile(t, "private", `{"provider":"openai","model":"m","base_url":"http://10.1.2.3/v1"}`)
		if got := try(t, "private", nil); got.OK || got.Error == nil || got.Error.Code != "blocked_address" {
			t.Errorf("answer %+v %+v", got, got.Error)
		}
	})
	t.Run("CredentialGone", func(t *testing.T) {
		t.Parallel()
		gone := x.keepCredential(t, "gone", "openai", "sk-other-0123456789")
		x.putProfile(t, "keyless", `{"provider":"openai","model":"m","credential_id":"gone"}`)
		want[struct{}](t, x.call(t, "admin", "DELETE", "/credentials/"+gone+"?force=true", nil), http.StatusNoContent)
		if got := try(t, "keyless", nil); got.OK || got.Error == nil || got.Error.Code != "credential_missing" {
			t.Errorf("answer %+v %+v", got, got.Error)
		}
	})
	t.Run("Scripted", func(t *testing.T) {
		t.Parallel()
		x.putProfile(t, "script", `{"provider":"scripted","script":{"rules":[{"contains":"long","reply":"`+strings.Repeat("漢", 600)+`"},{"reply":"fine"}]}}`)
		if got := try(t, "script", nil); !got.OK || got.Reply != "fine" {
			t.Errorf("answer %+v", got)
		}
		if got := try(t, "script", api.ProfileTestRequest{Prompt: "long"}); got.Reply != strings.Repeat("漢", tryExcerpt)+"…" {
			t.Errorf("excerpt of %d bytes", len(got.Reply))
		}
	})
	t.Run("Unknown", func(t *testing.T) {
		t.Parallel()
		refused(t, x.call(t, "editor", "POST", "/llm/profiles/nobody/test", nil), http.StatusNotFound, "not_found")
	})
}

// A day begins where the budget says, and a budget of both units has two names.
func TestPurse_Limits(t *testing.T) {
	t.Parallel()
	x := openSite(t)
	x.purse.Now = func() time.Time { return time.Date(2026, 1, 1, 20, 0, 0, 0, time.UTC) }
	x.saveProfile(t, llm.Profile{ID: "m", Provider: "scripted", Price: llm.Price{Input: 1}, Budgets: []llm.Budget{{Per: budget.PerDay, Tokens: 5, Cost: 0.3, TimeZone: "Asia/Shanghai"}}})
	var got []string
	for _, b := range want[api.Budgets](t, x.call(t, "viewer", "GET", "/budgets", nil), http.StatusOK).Budgets {
		got = append(got, fmt.Sprint(b.Budget, " ", b.Unit, " ", b.Limit, " ", b.Remaining))
	}
	if !slices.Equal(got, []string{"m/day/2026-01-02 tokens 5 5", "m/day_cost/2026-01-02 cost 0.3 0.3"}) {
		t.Errorf("budgets %q", got)
	}
}
