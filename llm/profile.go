package llm

// Profile is a model as an installation knows it.
type Profile struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Provider is openai, anthropic, gemini or scripted.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// EmbeddingModel is the one that turns texts into vectors, where the provider has one.
	EmbeddingModel string `json:"embedding_model,omitempty"`
	BaseURL        string `json:"base_url,omitempty"`
	// CredentialID is where the key is; empty for services that want none.
	CredentialID string `json:"credential_id,omitempty"`
	// Params are what a request does not say.
	Params Params `json:"parameters,omitzero"`
	Price  Price  `json:"price,omitzero"`
	// Fallbacks are the profiles that take its place when it fails, in order.
	Fallbacks []string `json:"fallback_profiles,omitempty"`
	Budgets   []Budget `json:"budgets,omitempty"`
	// Script is what the scripted provider answers.
	Script Script `json:"script,omitzero"`
}

// Price is in units of the currency per million tokens.
type Price struct {
	Input  float64 `json:"input,omitempty"`
	Output float64 `json:"output,omitempty"`
	Cached float64 `json:"cached,omitempty"`
}

// Cost is what a completion costs, in millionths of the currency, rounded up.
func (p Price) Cost(u Usage) int64 {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	fresh := max(0, u.InputTokens-u.CachedTokens)
	cost := float64(fresh)*p.Input + float64(u.CachedTokens)*cached + float64(u.OutputTokens)*p.Output
	whole := int64(cost)
	if float64(whole) < cost {
		whole++
	}
	return whole
}

// Budget is a limit on what is spent through a profile.
type Budget struct {
	// Per is execution, workflow or day.
	Per string `json:"per"`
	// Tokens and Cost are the limits, zero for none. Cost is in units of the currency.
	Tokens int64   `json:"tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"`
	// TimeZone is where a day begins; empty means UTC.
	TimeZone string `json:"time_zone,omitempty"`
}
