package console

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
	"tandem/reference"
	"tandem/text"
)

// InstalledLanguage is that of an instance in this process: as it is set, else that of who sits at the terminal; empty: English.
func InstalledLanguage() string {
	if set := strings.ToLower(os.Getenv("TANDEM_LANGUAGE")); text.CheckLanguage(set) == nil {
		return set
	}
	if spoken := UserLanguage(); spoken != text.English {
		return spoken
	}
	return ""
}

// UserLanguage is the language of who sits at the terminal, as the environment says: one of [text.Languages].
func UserLanguage() string {
	return text.Language(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")))
}

// PrintKinds lists kinds of nodes by family.
func PrintKinds(w *tabwriter.Writer, list []api.NodeKind, language string) {
	family := ""
	for _, k := range list {
		if k.Type != family {
			if family != "" {
				fmt.Fprintln(w)
			}
			family = k.Type
			fmt.Fprintln(w, family)
		}
		table.Row(w, "  "+k.Name, k.Title.In(language), k.Description.In(language))
	}
}

// PrintKind explains a kind of node.
func PrintKind(out io.Writer, k api.NodeKind, language string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s  %s\n%s\n\n", k.Name, k.Title.In(language), k.Description.In(language))
	table.Row(w, "output keys", strings.Join(k.OutputKeys, ", "))
	for i, key := range k.Keys {
		table.Row(w, "  "+key.Name, key.Meaning.In(language))
		if same := reference.SameFields(k.Keys, i); same != "" {
			table.Row(w, "    …", "as "+same)
			continue
		}
		for _, f := range key.Fields {
			table.Row(w, "    "+f.Name, f.Meaning.In(language))
		}
	}
	if len(k.Inputs) > 0 {
		table.Row(w, "input", "what it reads")
	}
	for _, f := range k.Inputs {
		table.Row(w, "  "+f.Name, f.Meaning.In(language))
	}
	printNeeds(w, k.Needs, language)
	effects := map[string]string{"pure": "pure: it may be repeated, nothing outside notices", "idempotent": "idempotent: it may be repeated", "once": "once: it is never repeated without knowing how it went"}
	table.Row(w, "effect", cmp.Or(effects[k.Effect], k.Effect))
	for _, field := range slices.Sorted(maps.Keys(k.EffectBy)) {
		values := map[string][]string{}
		for _, value := range slices.Sorted(maps.Keys(k.EffectBy[field])) {
			effect := k.EffectBy[field][value]
			values[effect] = append(values[effect], value)
		}
		for _, effect := range slices.Sorted(maps.Keys(values)) {
			table.Row(w, "effect", fmt.Sprintf("with %s %s it is %s", field, strings.Join(values[effect], ", "),
				cmp.Or(effects[effect], effect)))
		}
	}
	table.Row(w, "timeout", fmt.Sprintf("%gs for one attempt", k.Timeout))
	table.Row(w, "retries", fmt.Sprintf("up to %d, of errors that may pass", k.MaxRetries))
	if err := printFields(w, k, language); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nEvery kind also takes timeout, max_retries, on_error, default_output, on_unknown, enabled,\ncredential_id, template_id and credit_cost.")
	for _, e := range k.Examples {
		if err := printExample(w, k, e, language); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

func printNeeds(w *tabwriter.Writer, needs *api.NodeNeeds, language string) {
	if needs == nil {
		return
	}
	if types := strings.Join(needs.Credential, " or "); types != "" {
		may := "a credential of type "
		if needs.Optional {
			may = "nothing; it can use a credential of type "
		}
		table.Row(w, "needs", may+types)
	}
	for _, also := range needs.Also {
		table.Row(w, "needs", also.In(language))
	}
}

// printFields explains the configurations of a kind.
func printFields(w *tabwriter.Writer, k api.NodeKind, language string) error {
	fields, err := reference.Fields(k.ConfigSchema)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(fields) == 0 {
		fmt.Fprintln(w, "It has no configurations of its own.")
		return nil
	}
	table.Row(w, "CONFIGURATION", "TYPE", "REQUIRED", "DEFAULT", "ALLOWED")
	for _, f := range fields {
		required := ""
		if f.Required {
			required = "yes"
		}
		table.Row(w, f.Name, f.Type, required, f.Default, f.Allowed)
	}
	fmt.Fprintln(w)
	table.Row(w, "CONFIGURATION", "MEANING")
	for _, f := range fields {
		table.Row(w, f.Name, f.Meaning.In(language))
	}
	return printConditions(w, k, fields)
}

// printConditions tells which configurations go together, and what older files call them.
func printConditions(w *tabwriter.Writer, k api.NodeKind, fields []reference.Field) error {
	needs, err := reference.Needs(k.ConfigSchema)
	if err != nil {
		return err
	}
	for i, group := range needs {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "One of %s must be set.\n", strings.Join(group, ", "))
	}
	title := func(text string, told bool) {
		if !told {
			fmt.Fprintln(w)
			table.Row(w, "CONFIGURATION", text)
		}
	}
	told := false
	for _, f := range fields {
		for _, other := range slices.Sorted(maps.Keys(f.With)) {
			title("ONLY LOOKED AT WITH", told)
			told = true
			table.Row(w, f.Name, other+" "+strings.Join(f.With[other], " or "))
		}
	}
	told = false
	for _, f := range fields {
		if len(f.OlderNames)+len(f.OlderValues) == 0 {
			continue
		}
		title("OLDER SPELLINGS, ALSO TAKEN", told)
		told = true
		table.Row(w, f.Name, strings.Join(append(f.OlderNames, reference.Quoted(f.OlderValues)...), ", "))
	}
	return nil
}

// printExample shows a node to copy, with what it is given and what comes of it.
func printExample(w *tabwriter.Writer, k api.NodeKind, e api.NodeExample, language string) error {
	text, err := reference.ReadExample(k, e)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nexample: %s\n", e.Shows.In(language))
	prefix := "  - "
	for line := range strings.Lines(text.Node) {
		fmt.Fprint(w, prefix+line)
		prefix = "    "
	}
	for _, input := range text.Inputs {
		fmt.Fprint(w, "input:\n", reference.Indented("  ", input))
	}
	for _, reply := range e.Replies {
		fmt.Fprintf(w, "reply:\n  %s\n", reply)
	}
	fmt.Fprint(w, "output:\n", reference.Indented("  ", text.Output))
	return nil
}
