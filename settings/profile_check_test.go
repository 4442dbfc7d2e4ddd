package settings

import (
	"slices"
	"testing"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		document string
		want     bool
	}{
		{`{"nodes":[{"configurations":{"profile_id":"m"}}]}`, true},
		{`{"nodes":[{"configurations":{"profileId":"m"}}]}`, true},
		{`{"a":{"llm_profile":"m"}}`, true},
		{`{"a":{"embedding_profile":"m"}}`, true},
		{`{"a":{"fallback_profiles":["x","m"]}}`, true},
		{`{"a":{"profile_id":"mm"}}`, false},
		{`{"a":{"name":"m","profile":{"m":1}}}`, false},
		{`{"a":{"user_prompt":"profile_id m"}}`, false},
		{`no JSON with m`, false},
		{``, false},
	} {
		if got := mentions([]byte(c.document), "m"); got != c.want {
			t.Errorf("mentions(%s) = %v", c.document, got)
		}
	}
}

func TestSecretField(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"key", "api_key", "apikey", "openai_api_key", "secret", "client_secret", "access_token", "password", "authorization", "x-api-key", "headers"} {
		if !secretField(name) {
			t.Errorf("%q may hold a secret", name)
		}
	}
	for _, name := range []string{"credential_id", "max_tokens", "stop", "model", "cached", "tokens", "thinking_budget"} {
		if secretField(name) {
			t.Errorf("%q holds none", name)
		}
	}
}

func TestWayTo(t *testing.T) {
	t.Parallel()
	all := map[string][]string{"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"a"}, "e": {"b"}}
	if got := wayTo(all, "b", "a", map[string]bool{}); !slices.Equal(got, []string{"b", "d", "a"}) {
		t.Errorf("way %q", got)
	}
	if got := wayTo(all, "b", "e", map[string]bool{}); got != nil {
		t.Errorf("there is no way, and not %q", got)
	}
}
