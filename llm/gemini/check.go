package gemini

import "tandem/llm"

// keyCheck tries an API key.
func keyCheck() llm.KeyCheck {
	return llm.KeyCheck{
		Service: "Gemini", Base: publicURL, Version: "/" + apiVersion, Path: "/" + apiVersion + "/models",
		Headers: func(key string) []string { return []string{"X-Goog-Api-Key", key} },
	}
}
