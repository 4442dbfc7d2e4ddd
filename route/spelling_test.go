package route

import (
	"testing"
)

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"baseURL": "base_url", "baseUrl": "base_url", "base_url": "base_url", "topP": "top_p", "API_KEY": "api_key", "apiKey": "api_key", "ID": "id"} {
		if got := SnakeCase(in); got != want {
			t.Errorf("snakeCase(%q) = %q, want %q", in, got, want)
		}
	}
}
