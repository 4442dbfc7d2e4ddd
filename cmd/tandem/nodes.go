package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
)

func newNodes() *cobra.Command {
	var at connectFlags
	var show listing
	var language string
	cmd := &cobra.Command{
		Use:   "nodes [KIND]",
		Short: "List the kinds of nodes that can be run, or explain one",
		Long: `Nodes lists the kinds of nodes that can be run, by family. With a kind it shows what the kind is
configured with, what goes in and comes out, what must be there, what repeating it means, and a
node to copy with its input and output.

Without --server it tells what this program can run.`,
		Example: "  tandem nodes\n  tandem nodes FLOW.FOR_EACH\n  tandem nodes --lang zh",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if language != "en" && language != "zh" {
				return fmt.Errorf("--lang %q is not known; use en or zh", language)
			}
			if len(args) == 0 {
				list, err := at.kinds(cmd)
				if err != nil {
					return err
				}
				return failed(cmd, show.show(cmd.OutOrStdout(), api.NodeKinds{NodeKinds: list}, func(w *tabwriter.Writer) { printKinds(w, list, language) }))
			}
			k, err := at.kind(cmd, strings.ToUpper(args[0]))
			if err != nil {
				return err
			}
			if show.json {
				return failed(cmd, printValue(cmd.OutOrStdout(), k))
			}
			return failed(cmd, printKind(cmd, k, language))
		},
	}
	at.add(cmd)
	show.add(cmd, false)
	cmd.Flags().StringVar(&language, "lang", userLanguage(), "the language of titles and descriptions, en or zh")
	return cmd
}

// kinds lists the kinds of a server or of this program, which needs no data directory for it.
func (f *connectFlags) kinds(cmd *cobra.Command) (list []api.NodeKind, err error) {
	if f.server == "" {
		return app.NodeKinds(), nil
	}
	err = f.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
		answer, err := c.NodeKinds(ctx)
		list = answer.NodeKinds
		return err
	})
	return list, err
}

func (f *connectFlags) kind(cmd *cobra.Command, name string) (k api.NodeKind, err error) {
	if f.server == "" {
		k, err = app.NodeKind(name)
		return k, failed(cmd, err)
	}
	err = f.with(cmd, false, func(ctx context.Context, c *app.Connection) (err error) {
		k, err = c.NodeKind(ctx, name)
		return err
	})
	return k, err
}

// installedLanguage is that of an instance in this process: as it is set, else that of who sits at the terminal; empty: English.
func installedLanguage() string {
	switch language := strings.ToLower(os.Getenv("TANDEM_LANGUAGE")); {
	case language == "zh" || language == "en":
		return language
	case userLanguage() == "zh":
		return "zh"
	}
	return ""
}

// userLanguage is the language of who sits at the terminal, as the environment says: zh or en.
func userLanguage() string {
	if strings.HasPrefix(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), "zh") {
		return "zh"
	}
	return "en"
}

func textIn(language string, t api.Text) string {
	if language == "zh" {
		return t.Zh
	}
	return t.En
}

func printKinds(w *tabwriter.Writer, list []api.NodeKind, language string) {
	family := ""
	for _, k := range list {
		if k.Type != family {
			if family != "" {
				fmt.Fprintln(w)
			}
			family = k.Type
			fmt.Fprintln(w, family)
		}
		row(w, "  "+k.Name, textIn(language, k.Title), textIn(language, k.Description))
	}
}

func printKind(cmd *cobra.Command, k api.NodeKind, language string) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s  %s\n%s\n\n", k.Name, textIn(language, k.Title), textIn(language, k.Description))
	row(w, "output keys", strings.Join(k.OutputKeys, ", "))
	for i, key := range k.Keys {
		row(w, "  "+key.Name, textIn(language, key.Meaning))
		if same := app.SameFields(k.Keys, i); same != "" {
			row(w, "    …", "as "+same)
			continue
		}
		for _, f := range key.Fields {
			row(w, "    "+f.Name, textIn(language, f.Meaning))
		}
	}
	if len(k.Inputs) > 0 {
		row(w, "input", "what it reads")
	}
	for _, f := range k.Inputs {
		row(w, "  "+f.Name, textIn(language, f.Meaning))
	}
	printNeeds(w, k.Needs, language)
	effects := map[string]string{"pure": "pure: it may be repeated, nothing outside notices", "idempotent": "idempotent: it may be repeated", "once": "once: it is never repeated without knowing how it went"}
	row(w, "effect", cmp.Or(effects[k.Effect], k.Effect))
	for _, field := range slices.Sorted(maps.Keys(k.EffectBy)) {
		values := map[string][]string{}
		for _, value := range slices.Sorted(maps.Keys(k.EffectBy[field])) {
			effect := k.EffectBy[field][value]
			values[effect] = append(values[effect], value)
		}
		for _, effect := range slices.Sorted(maps.Keys(values)) {
			row(w, "effect", fmt.Sprintf("with %s %s it is %s", field, strings.Join(values[effect], ", "), cmp.Or(effects[effect], effect)))
		}
	}
	row(w, "timeout", fmt.Sprintf("%gs for one attempt", k.Timeout))
	row(w, "retries", fmt.Sprintf("up to %d, of errors that may pass", k.MaxRetries))
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
		row(w, "needs", may+types)
	}
	for _, also := range needs.Also {
		row(w, "needs", textIn(language, also))
	}
}

// printFields explains the configurations of a kind.
func printFields(w *tabwriter.Writer, k api.NodeKind, language string) error {
	fields, err := app.KindFields(k.ConfigSchema)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(fields) == 0 {
		fmt.Fprintln(w, "It has no configurations of its own.")
		return nil
	}
	row(w, "CONFIGURATION", "TYPE", "REQUIRED", "DEFAULT", "ALLOWED")
	for _, f := range fields {
		required := ""
		if f.Required {
			required = "yes"
		}
		row(w, f.Name, f.Type, required, f.Default, f.Allowed)
	}
	fmt.Fprintln(w)
	row(w, "CONFIGURATION", "MEANING")
	for _, f := range fields {
		row(w, f.Name, textIn(language, f.Meaning))
	}
	return printConditions(w, k, fields)
}

// printConditions tells which configurations go together, and what older files call them.
func printConditions(w *tabwriter.Writer, k api.NodeKind, fields []app.KindField) error {
	needs, err := app.KindNeeds(k.ConfigSchema)
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
			row(w, "CONFIGURATION", text)
		}
	}
	told := false
	for _, f := range fields {
		for _, other := range slices.Sorted(maps.Keys(f.With)) {
			title("ONLY LOOKED AT WITH", told)
			told = true
			row(w, f.Name, other+" "+strings.Join(f.With[other], " or "))
		}
	}
	told = false
	for _, f := range fields {
		if len(f.OlderNames)+len(f.OlderValues) == 0 {
			continue
		}
		title("OLDER SPELLINGS, ALSO TAKEN", told)
		told = true
		row(w, f.Name, strings.Join(append(f.OlderNames, app.Quoted(f.OlderValues)...), ", "))
	}
	return nil
}

// printExample shows a node to copy, with what it is given and what comes of it.
func printExample(w *tabwriter.Writer, k api.NodeKind, e api.NodeExample, language string) error {
	text, err := app.ReadKindExample(k, e)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nexample: %s\n", textIn(language, e.Shows))
	prefix := "  - "
	for line := range strings.Lines(text.Node) {
		fmt.Fprint(w, prefix+line)
		prefix = "    "
	}
	for _, input := range text.Inputs {
		fmt.Fprint(w, "input:\n", app.Indented("  ", input))
	}
	for _, reply := range e.Replies {
		fmt.Fprintf(w, "reply:\n  %s\n", reply)
	}
	fmt.Fprint(w, "output:\n", app.Indented("  ", text.Output))
	return nil
}
