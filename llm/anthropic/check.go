package anthropic

import "tandem/llm"

// keyCheck tries an API key.
func keyCheck() llm.KeyCheck {
	return llm.KeyCheck{
		Service: "Anthropic", Base: publicURL, Version: "/v1", Path: "/v1/models",
		Headers: func(key string) []string { return []string{"X-Api-Key", key, "Anthropic-Version", "2023-06-01"} },
	}
}
