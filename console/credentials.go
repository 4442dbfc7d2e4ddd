package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/app"
	"tandem/console/table"
)

// CredentialData gathers the fields of a credential from where they are kept.
func CredentialData(fromEnv []string, file string, stdin io.Reader) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if file != "" {
		var raw []byte
		var err error
		if file == "-" {
			raw, err = io.ReadAll(io.LimitReader(stdin, 1<<20))
		} else {
			raw, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(raw, &fields) != nil {
			return nil, Usage(fmt.Errorf("%s holds no JSON object", cmp.Or(strings.TrimPrefix(file, "-"), "standard input")))
		}
	}
	for _, pair := range fromEnv {
		name, variable, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, Usage(fmt.Errorf("--env %q: write field=VARIABLE", pair))
		}
		value, set := os.LookupEnv(variable)
		if !set || value == "" {
			return nil, Usage(fmt.Errorf("--env %q: the environment has no variable %s", pair, variable))
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	if len(fields) == 0 {
		return nil, Usage(fmt.Errorf("there are no fields; give --env or --file"))
	}
	return json.Marshal(fields)
}

// PrintCredentials lists credentials, without what is secret in them.
func PrintCredentials(w *tabwriter.Writer, list api.Credentials) {
	table.Row(w, "CREDENTIAL", "NAME", "TYPE", "PROBLEM")
	for _, one := range list.Credentials {
		table.Row(w, one.ID, one.Name, one.Type, one.Problem)
	}
}

// PrintCredentialUses lists what uses a credential.
func PrintCredentialUses(w *tabwriter.Writer, list api.CredentialUses) {
	if len(list.Uses) == 0 {
		fmt.Fprintln(w, "Nothing uses it.")
		return
	}
	table.Row(w, "USED BY", "ID", "NAME", "REVISION", "NAMED BY", "WHERE")
	for _, one := range list.Uses {
		revision, by := "", "id"
		if one.Revision > 0 {
			revision = strconv.FormatInt(one.Revision, 10)
		}
		if one.Deployed {
			revision += " (deployed)"
		}
		if one.ByName {
			by = "name"
		}
		table.Row(w, strings.ReplaceAll(one.Kind, "_", " "), one.ID, one.Name, revision, by, strings.Join(one.Paths, ", "))
	}
}

// PrintCredentialTypes lists types of credentials with their fields; those with an asterisk are required.
func PrintCredentialTypes(w *tabwriter.Writer, list api.CredentialTypes) {
	table.Row(w, "TYPE", "FIELDS")
	for _, one := range list.Types {
		var fields []string
		for _, f := range one.Fields {
			name := f.Name
			if f.Required {
				name += "*"
			}
			fields = append(fields, name)
		}
		table.Row(w, one.Name, strings.Join(fields, ", "))
	}
}

// SetCredential keeps a credential, or replaces the one of that name.
func SetCredential(ctx context.Context, tty *Terminal, c *app.Connection, r api.CredentialRequest) error {
	list, err := c.Credentials(ctx)
	if err != nil {
		return err
	}
	var kept api.Credential
	if i := slices.IndexFunc(list.Credentials, func(x api.Credential) bool { return x.Name == r.Name }); i >= 0 {
		kept, err = c.UpdateCredential(ctx, list.Credentials[i].ID, r, false)
	} else {
		kept, err = c.CreateCredential(ctx, r)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(tty.Out, "credential %q of type %s is kept as %s\n", kept.Name, kept.Type, kept.ID)
	return err
}

// RenameCredential gives a credential another name. Its secrets stay.
func RenameCredential(ctx context.Context, tty *Terminal, c *app.Connection, name, other string, force bool) error {
	known, err := c.Credential(ctx, name)
	if err != nil {
		return err
	}
	kept, err := c.UpdateCredential(ctx, known.ID, api.CredentialRequest{Name: other, Type: known.Type}, force)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(tty.Out, "credential %q is called %q now\n", known.Name, kept.Name)
	return err
}

// PrintCredentialTest shows what came of trying a credential.
func PrintCredentialTest(w *tabwriter.Writer, name string, got api.CredentialTest) {
	verdict := "is taken"
	switch {
	case !got.Testable:
		verdict = "cannot be tried"
	case !got.OK:
		verdict = "is not taken"
	}
	fmt.Fprintf(w, "%s %s: %s\n", table.OneLine(name), verdict, table.OneLine(got.Detail))
}
