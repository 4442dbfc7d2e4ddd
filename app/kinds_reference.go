package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tandem/agent"
	"tandem/node"
)

// NodesReference is the reference of all kinds that can be run, made from what they say of themselves: pages by file name, one for each family and
// an index.
func NodesReference() map[string]string {
	families := map[string][]node.Kind{}
	for _, k := range theKinds().List() {
		if k.About.Name != agent.TaskKind {
			typ, _, _ := strings.Cut(k.About.Name, ".")
			families[typ] = append(families[typ], k)
		}
	}
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# Kinds of nodes\n\nWhat each kind is configured with, what comes out of it, and what repeating it means, made from the kinds themselves.\n" +
		"每种节点的配置、输出及重复执行的含义，由程序生成。\n\nEvery kind also takes:\n\n")
	writeFields(&index, node.CommonFields())
	for _, typ := range slices.Sorted(maps.Keys(families)) {
		file := strings.ToLower(typ) + ".md"
		fmt.Fprintf(&index, "\n## [%s](%s)\n\n| kind | | |\n| --- | --- | --- |\n", typ, file)
		var page strings.Builder
		fmt.Fprintf(&page, "# %s\n\nMade from the kinds themselves; see [all kinds](README.md).\n", typ)
		for _, k := range families[typ] {
			about := k.About
			fmt.Fprintf(&index, "| [%s](%s#%s) | %s %s | %s |\n", about.Name, file, anchor(about.Name), about.Title.En, about.Title.Zh, about.Description.En)
			writeKind(&page, k)
		}
		pages[file] = page.String()
	}
	pages["README.md"] = index.String()
	return pages
}

// anchor is how a heading is linked to.
func anchor(heading string) string {
	return strings.ToLower(strings.ReplaceAll(heading, ".", ""))
}

func writeKind(b *strings.Builder, k node.Kind) {
	about := k.About
	fmt.Fprintf(b, "\n## %s\n\n%s (%s). %s\n%s\n\n", about.Name, about.Title.En, about.Title.Zh, about.Description.En, about.Description.Zh)
	effects := map[string]string{"pure": "nothing outside notices a repeated run", "idempotent": "a run may be repeated", "once": "a run is never repeated without knowing how it went"}
	effect := string(about.Effect)
	fmt.Fprintf(b, "Effect: `%s`, %s.\n", effect, effects[effect])
	if types := about.Needs.Credential; len(types) > 0 {
		may := "It needs"
		if about.Needs.Optional {
			may = "It can use"
		}
		fmt.Fprintf(b, "%s a credential of the type %s.\n", may, "`"+strings.Join(types, "` or `")+"`")
	}
	if len(about.Keys) > 0 {
		b.WriteString("\n| output key | meaning | 含义 |\n| --- | --- | --- |\n")
		for _, key := range about.Keys {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", key.Name, key.Meaning.En, key.Meaning.Zh)
		}
	} else {
		b.WriteString("\nIts output keys come from its configuration.\n")
	}
	b.WriteString("\n")
	if fields := k.Fields(); len(fields) > 0 {
		writeFields(b, fields)
	} else {
		b.WriteString("It has no configuration of its own.\n")
	}
}

func writeFields(b *strings.Builder, fields []node.Field) {
	b.WriteString("| field | takes | default | meaning | 含义 |\n| --- | --- | --- | --- | --- |\n")
	writeRows(b, "", fields)
}

func writeRows(b *strings.Builder, prefix string, fields []node.Field) {
	for _, f := range fields {
		name, usual := "`"+prefix+f.Name+"`", ""
		if f.Required && f.Default == "" {
			name += " (required)"
		}
		if f.Default != "" {
			usual = "`" + f.Default + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", name, allowedIn(f), strings.ReplaceAll(usual, "|", "\\|"), f.Meaning.En, f.Meaning.Zh)
		below := prefix + f.Name + "."
		if slices.Contains(f.Takes, "list") {
			below = prefix + f.Name + "[]."
		}
		writeRows(b, below, f.Fields)
	}
}

// allowedIn says what may be written in a field.
func allowedIn(f node.Field) string {
	text := strings.Join(f.Takes, " or ")
	if len(f.Values) > 0 {
		text = "`" + strings.Join(f.Values, "`, `") + "`"
		if slices.Contains(f.Takes, "list") {
			text = "list of " + text
		}
	}
	switch {
	case f.Min != nil && f.Max != nil:
		text += fmt.Sprintf(", %s to %s", digits(*f.Min), digits(*f.Max))
	case f.Min != nil:
		text += ", at least " + digits(*f.Min)
	case f.Max != nil:
		text += ", at most " + digits(*f.Max)
	}
	if f.Fixed {
		text += "; not a placeholder"
	}
	return text
}
