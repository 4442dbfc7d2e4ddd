package oauth

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// TokenAnswer is what a token endpoint answers, as far as everybody reads it who asks one.
type TokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	Error       string `json:"error"`
	// ExpiresIn is a number of seconds, which some write as a text.
	ExpiresIn json.RawMessage `json:"expires_in"`
}

// Life is how long the token is good for; zero: it is not said.
func (a *TokenAnswer) Life() time.Duration {
	const most = 1e9 // seconds: what a duration can hold
	n, err := strconv.ParseFloat(strings.Trim(string(a.ExpiresIn), `"`), 64)
	if err != nil || !(n > 0) {
		return 0
	}
	return time.Duration(min(n, most) * float64(time.Second))
}

// Bearer says that the token is one that is sent as it is, as far as the answer says what it is.
func (a *TokenAnswer) Bearer() bool {
	return a.TokenType == "" || strings.EqualFold(a.TokenType, "bearer")
}

// Sendable says that a header can hold a token.
func Sendable(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= 0x20 || r >= 0x7f })
}
