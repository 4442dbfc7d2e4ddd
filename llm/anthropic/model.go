package anthropic

import (
	"strconv"
	"strings"
)

// model is what a model's name tells. Names that tell no version are of models that nobody here knows; they are given
// what they are asked to be given, except for what a service refuses that does not know it.
type model struct {
	family       string
	major, minor int
}

// parse reads names such as claude-opus-4-7, claude-3-5-haiku-20241022 and anthropic.claude-sonnet-4-6-v1.
func parse(name string) model {
	_, rest, found := strings.Cut(strings.ToLower(name), "claude")
	if !found {
		return model{}
	}
	var m model
	numbers := 0
	for word := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune("-.@:_/", r) }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil:
			if m.family == "" {
				m.family = word
			}
		case len(word) > 2: // a date
		case numbers == 0:
			m.major = n
			numbers++
		case numbers == 1:
			m.minor = n
			numbers++
		}
	}
	if m.family == "mythos" && numbers == 0 { // its preview has no number
		m.major = 5
	}
	return m
}

func (m model) known() bool { return m.major > 0 }

func (m model) before(major, minor int) bool {
	return m.major < major || m.major == major && m.minor < minor
}

// samples says that the model takes temperature, top_p and top_k. Later ones answer 400.
func (m model) samples() bool { return !m.known() || m.before(4, 7) }

// budgets says that the model takes a number of tokens for its thoughts. Later ones decide themselves.
func (m model) budgets() bool { return !m.known() || m.before(4, 7) }

// efforts says that the model takes an effort.
func (m model) efforts() bool {
	if m.family == "opus" {
		return !m.known() || !m.before(4, 5)
	}
	return !m.known() || !m.before(4, 6)
}

// shapes says that the service holds the model's answer to a schema.
func (m model) shapes() bool { return m.known() && !m.before(4, 5) }
