package importer

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"tandem/credential"
	"tandem/payload"
	"tandem/text"
)

// moveSecret takes the secret at a path out of the draft.
func (d *Draft) moveSecret(path string) {
	n, ok := d.nodeAt(path)
	if !ok {
		d.def.Metadata.Description = Cleaned(d.def.Metadata.Description)
		for i := range d.def.Notes {
			d.def.Notes[i].Text = Cleaned(d.def.Notes[i].Text)
		}
		for i := range d.def.Connections {
			d.def.Connections[i].ConversionFunction = Cleaned(d.def.Connections[i].ConversionFunction)
		}
		d.Note(text.Of("a secret that stood in the file was taken out"))
		return
	}
	if n.Config["credential_id"] == nil && TakesHTTPAuth(n.Kind) && d.moveAuth(n, path) {
		d.settle()
		return
	}
	n.line.Approximate(text.Of("a secret that stood in it was taken out; keep it in a credential and use it from there"))
	n.Description = Cleaned(n.Description)
	n.Config, n.Input = cleaned(n.Config).(map[string]any), cleaned(n.Input).(map[string]any)
	d.settle()
}

// TakesHTTPAuth says that a kind sends requests with a credential of the type http_auth.
func TakesHTTPAuth(kind string) bool {
	switch kind {
	case "ACTION.HTTP_REQUEST", "ACTION.WEBHOOK_CALL", "ACTION.FILE_DOWNLOAD", "ACTION.FILE_UPLOAD", "TOOL.HTTP_CLIENT":
		return true
	}
	return false
}

// moveAuth moves a header, a parameter of the query or a part of the address to a credential.
func (d *Draft) moveAuth(n *Node, path string) bool {
	name := n.ID + "_key"
	for field, scheme := range map[string]string{"headers": "header", "query_params": "query"} { // one of them is meant, so the order does not matter
		values, ok := n.Config[field].(map[string]any)
		if !ok || !strings.Contains(path, ".configurations."+field) {
			continue
		}
		for key, value := range values { // the one at the path, so the order does not matter
			words, ok := value.(string)
			if !ok || !strings.HasSuffix(path, payload.JoinKey("configurations."+field, key)) {
				continue
			}
			delete(values, key)
			if len(values) == 0 {
				delete(n.Config, field)
			}
			n.Config["credential_id"] = d.Secret(n.line, name, "http_auth", AuthOf(scheme, key, words))
			return true
		}
	}
	address, ok := n.Config["url"].(string)
	if !ok || !strings.HasSuffix(path, "configurations.url") {
		return false
	}
	return d.moveFromAddress(n, name, address)
}

// moveFromAddress moves a secret parameter of an address to a credential.
func (d *Draft) moveFromAddress(n *Node, name, address string) bool {
	bare, query, ok := strings.Cut(address, "?")
	if !ok {
		return false
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		document, err := payload.Encode(map[string]any{"url": "http://host/?" + pair})
		if err != nil || len(credential.FindInline(document)) == 0 {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		pairs = append(pairs[:i:i], pairs[i+1:]...)
		n.Config["url"] = strings.TrimSuffix(bare+"?"+strings.Join(pairs, "&"), "?")
		n.Config["credential_id"] = d.Secret(n.line, name, "http_auth", AuthOf("query", key, value))
		return true
	}
	return false
}

// AuthOf is the data of a credential of the type http_auth for what stood in a header or a parameter.
func AuthOf(scheme, name, value string) map[string]any {
	if strings.EqualFold(name, "Authorization") && scheme == "header" {
		kind, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
		switch rest = strings.TrimSpace(rest); {
		case strings.EqualFold(kind, "bearer") && rest != "":
			return map[string]any{"scheme": "bearer", "token": rest}
		case strings.EqualFold(kind, "basic"):
			if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
				user, password, _ := strings.Cut(string(plain), ":")
				return map[string]any{"scheme": "basic", "username": user, "password": password}
			}
		}
	}
	return map[string]any{"scheme": scheme, "name": name, "value": value}
}

// piece is a stretch of a text that could be a secret. read-only
var piece = regexp.MustCompile("[^\\s\"'`,;()<>\\\\]{6,}")

// Cleaned is a text without the secrets in it that are known by their form.
func Cleaned(words string) string {
	if !hasSecret(words) {
		return words
	}
	words = piece.ReplaceAllStringFunc(words, func(part string) string {
		if hasSecret(part) {
			return "***"
		}
		return part
	})
	if hasSecret(words) {
		return "***"
	}
	return words
}

// hasSecret says that a text certainly holds a secret.
func hasSecret(words string) bool {
	document, err := payload.Encode(map[string]any{"text": words})
	return err == nil && certain(document)
}

// cleaned is a value without the secrets in it, also those that are known by the name of their field.
func cleaned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v { // each by itself, so the order does not matter
			v[key] = cleaned(inner)
			document, err := payload.Encode(map[string]any{key: v[key]})
			if err != nil {
				continue
			}
			if s, ok := v[key].(string); ok && s != "" && certain(document) {
				v[key] = "***"
			}
		}
		if name, ok := v["name"].(string); ok && v["value"] != nil {
			if document, err := payload.Encode(map[string]any{"name": name, "value": v["value"]}); err == nil && certain(document) {
				v["value"] = "***"
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
		return v
	case string:
		return Cleaned(v)
	}
	return value
}

// certain says that a document certainly holds a secret.
func certain(document json.RawMessage) bool {
	for _, found := range credential.FindInline(document) {
		if found.Certain {
			return true
		}
	}
	return false
}
