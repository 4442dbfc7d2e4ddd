package httpcall

import (
	"encoding/json"
	"net/http"
	"strings"

	"tandem/builtin/early"
	"tandem/node"
)

// Plan checks the address and the headers of a request that are written out. A credential or a template may bring the beginning of the
// address.
func Plan(p *node.Planning) {
	early.Text(p, "url", func(written string) error {
		base := ""
		if p.Templated() || p.Has("credential_id") || strings.HasPrefix(strings.TrimSpace(written), "{") {
			base = "https://host"
		}
		_, err := address(urlVariable.ReplaceAllString(written, "x"), nil, base)
		return err
	})
	early.Read(p, "headers", func(raw json.RawMessage) error {
		if !json.Valid(raw) || raw[0] != '{' {
			return nil // which is refused for what it is
		}
		return AddHeaders(http.Header{}, node.Object(raw), nil)
	})
}
