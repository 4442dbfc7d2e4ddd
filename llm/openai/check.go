package openai

import "tandem/llm"

// keyCheck tries an API key.
func keyCheck() llm.KeyCheck {
	return llm.KeyCheck{
		Service: "the service", Base: DefaultBaseURL, Path: "/models",
		Headers: func(key string) []string { return []string{"Authorization", "Bearer " + key} },
	}
}
