package credential

import (
	"slices"
	"strings"

	"tandem/fault"
	"tandem/text"
)

// Label is a text in the languages that people read.
type Label = text.Text

// Format is what a field's value looks like.
type Format string

// The formats.
const (
	FormatText     Format = "text"     // one line
	FormatURL      Format = "url"      // an absolute address without a password in it
	FormatPort     Format = "port"     // 1 to 65535
	FormatChoice   Format = "choice"   // one of Choices
	FormatTexts    Format = "texts"    // a list of lines
	FormatObjects  Format = "objects"  // a list of objects
	FormatDocument Format = "document" // a JSON object, or the same as text
	FormatAuth     Format = "auth"     // an object with the fields of another type, see Field.Of, but its base_url
)

// Field is one value of a credential.
type Field struct {
	Name     string   `json:"name"`
	Label    Label    `json:"label"`
	Format   Format   `json:"format"`
	Required bool     `json:"required,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	// Default is what an absent value means, as text.
	Default string `json:"default,omitempty"`

	// Schemes are those that a FormatURL may begin with; http and https if nil.
	Schemes []string `json:"-"`
	// Members are the members of a FormatDocument that are secret. One with YAML may also be a text in YAML; it has no secrets.
	Members []string `json:"-"`
	YAML    bool     `json:"-"`
	// Chosen marks a secret that people make up themselves and by which strangers are believed: a weak one is refused.
	Chosen bool `json:"-"`
	// Of is the type whose fields a FormatAuth has.
	Of *Type `json:"-"`
}

// Alternative is one complete way to fill in a type, besides its required fields. A type that has alternatives needs one
// of them whole; those with When count only if the type's selector has that value.
type Alternative struct {
	When     string   `json:"when,omitempty"`
	Requires []string `json:"requires"`
}

// Type says what a credential of a kind consists of. Each is defined by the package that needs it and registered with its extension.
type Type struct {
	Name         string        `json:"name"`
	Label        Label         `json:"label"`
	Fields       []Field       `json:"fields"`
	Selector     string        `json:"selector,omitempty"`
	Alternatives []Alternative `json:"alternatives,omitempty"`

	// OAuth says how a person authorizes a credential of the type with a browser, and where its tokens are renewed; nil: not at all.
	OAuth *OAuth `json:"-"`

	// Check tries a credential of the type at its service without changing anything there; nil: that is not possible, and Untried says why.
	Check   Check `json:"-"`
	Untried Label `json:"-"`
}

// addressField is a field that every type has, if it does not define one of this name itself: where the service is.
const addressField = "base_url"

// Complete returns the type with the fields that all types have.
func (t Type) Complete() Type {
	t.Fields = slices.Clone(t.Fields)
	if !slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Name == addressField }) {
		t.Fields = append(t.Fields, Address(addressField, "Base URL", "接口地址"))
	}
	return t
}

// Types are the types of credentials that a program knows, in the order of their names. It does not change.
type Types []Type

// NewTypes completes and sorts types. Two of one name are a mistake of the program; package plug refuses them with an error that names both
// sides.
func NewTypes(list ...Type) Types {
	types := make(Types, len(list))
	for i, t := range list {
		types[i] = t.Complete()
	}
	slices.SortFunc(types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return types
}

// Find returns a type by its name. The error of one that is not there proposes another.
func (ts Types) Find(name string) (Type, error) {
	if i := slices.IndexFunc(ts, func(t Type) bool { return t.Name == name }); i >= 0 {
		return ts[i], nil
	}
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}
	return Type{}, fault.Newf(fault.Invalid, "there is no credential type %s%s", quoteName(name), hint(name, names)).With("known", names)
}

// Text is a field that holds one line.
func Text(name, en, zh string) Field {
	return Field{Name: name, Label: text.Beside(en, zh), Format: FormatText}
}

// Secret is a field that holds one line which nobody may see.
func Secret(name, en, zh string) Field {
	return Field{Name: name, Label: text.Beside(en, zh), Format: FormatText, Secret: true}
}

// Address is a field that holds the address of a service.
func Address(name, en, zh string) Field {
	return Field{Name: name, Label: text.Beside(en, zh), Format: FormatURL}
}

// Choice is a field that holds one of several values.
func Choice(name, en, zh string, choices ...string) Field {
	return Field{Name: name, Label: text.Beside(en, zh), Format: FormatChoice, Choices: choices}
}

// Needed is the field as one that must be filled in.
func (f Field) Needed() Field { f.Required = true; return f }

// Or is the field with what its absence means.
func (f Field) Or(value string) Field { f.Default = value; return f }

// ChosenByPeople is the secret as one that people make up themselves.
func (f Field) ChosenByPeople() Field { f.Chosen = true; return f }

// Schemed is the address as one that begins with other schemes than http and https.
func (f Field) Schemed(list ...string) Field { f.Schemes = list; return f }

// Fields that several types have.

// Token is an access token, which must be filled in.
func Token() Field { return Secret("token", "Access token", "访问令牌").Needed() }

// APIKey is the key of an API.
func APIKey() Field { return Secret("api_key", "API key", "API 密钥") }

// WebhookSecret is by what the calls of a service are recognised.
func WebhookSecret() Field {
	return Secret("webhook_secret", "Webhook secret", "Webhook 密钥").ChosenByPeople()
}

// Username is a name to log in with.
func Username() Field { return Text("username", "User name", "用户名") }

// Password is a password to log in with.
func Password() Field { return Secret("password", "Password", "密码") }
