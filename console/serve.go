package console

import (
	"fmt"
	"io"
	"strings"

	"tandem/app"
)

// PrintServing says where the server is and how to come in. The secret is shown this once.
func PrintServing(out io.Writer, s app.Serving, o app.ServeOptions) error {
	var b strings.Builder
	data := o.Dir
	if s.Database != "" {
		data += ", database " + s.Database
	}
	if s.StandsBy {
		fmt.Fprintf(&b, "Tandem %s on %s stands by: another server owns the database %s, and is forwarded to\n", o.Version, s.URL, s.Database)
		_, err := io.WriteString(out, b.String())
		return err
	}
	fmt.Fprintf(&b, "Tandem %s on %s (data in %s)\n", o.Version, s.URL, data)
	if len(s.Workflows) > 0 {
		fmt.Fprintf(&b, "Workflows: %s\n", strings.Join(s.Workflows, ", "))
	}
	if len(s.Profiles) > 0 {
		fmt.Fprintf(&b, "Profiles of models: %s\n", strings.Join(s.Profiles, ", "))
	}
	token := "$TANDEM_TOKEN"
	if s.Secret != "" {
		token = s.Secret
		fmt.Fprintf(&b, "\nToken of the user admin, shown this once:\n  %s\nLog in with a browser, once and within an hour (tandem admin link makes another link):\n  %s/login#code=%s\n", s.Secret, s.URL, s.Code)
	}
	fmt.Fprintf(&b, "\nTry:\n  curl -H \"Authorization: Bearer %s\" %s/api/v1/workflows\nEvery operation: %s/openapi\n", token, s.URL, s.URL)
	_, err := io.WriteString(out, b.String())
	return err
}
