package reference

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/node"
	"tandem/text"
)

// Kind is a kind, and what a server tells of it.
type Kind struct {
	node.Kind
	Told api.NodeKind
}

// Pages is the reference of kinds, made from what they say of themselves: pages by file name, one for each family and an index.
func Pages(kinds []Kind) (map[string]string, error) {
	families := map[string][]Kind{}
	for _, k := range kinds {
		typ, _, _ := strings.Cut(k.About.Name, ".")
		families[typ] = append(families[typ], k)
	}
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# Kinds of nodes\n\nWhat each kind is given and configured with, what comes out of it, what repeating it means, and a node to copy, made from the kinds themselves.\n" +
		"每种节点的输入、配置、输出、重复执行的含义及示例，由程序生成。\n\nEvery kind also takes:\n\n")
	writeFields(&index, node.CommonFields())
	for _, typ := range slices.Sorted(maps.Keys(families)) {
		file := strings.ToLower(typ) + ".md"
		fmt.Fprintf(&index, "\n## [%s](%s)\n\n| kind | | |\n| --- | --- | --- |\n", typ, file)
		var page strings.Builder
		fmt.Fprintf(&page, "# %s\n\nMade from the kinds themselves; see [all kinds](README.md).\n", typ)
		for _, k := range families[typ] {
			about := k.About
			fmt.Fprintf(&index, "| [%s](%s#%s) | %s %s | %s |\n", about.Name, file, anchor(about.Name),
				about.Title.In(text.English), about.Title.In(text.Chinese), about.Description.In(text.English))
			if err := writeKind(&page, k); err != nil {
				return nil, err
			}
		}
		pages[file] = page.String()
	}
	pages["README.md"] = index.String()
	return pages, nil
}

// writeEffects says which effect each operation has, of a kind whose configuration decides about that.
func writeEffects(b *strings.Builder, told api.NodeKind) {
	for _, field := range slices.Sorted(maps.Keys(told.EffectBy)) {
		property := gjson.GetBytes(told.ConfigSchema, "properties."+gjson.Escape(field))
		values := property.Get("enum").Array()
		if len(values) == 0 {
			values = property.Get("items.enum").Array()
		}
		byEffect := map[string][]string{}
		for _, v := range values {
			effect := cmp.Or(told.EffectBy[field][v.String()], told.Effect)
			byEffect[effect] = append(byEffect[effect], "`"+v.String()+"`")
		}
		fmt.Fprintf(b, "\n| effect | `%s` |\n| --- | --- |\n", field)
		for _, effect := range slices.Sorted(maps.Keys(byEffect)) {
			fmt.Fprintf(b, "| `%s` | %s |\n", effect, strings.Join(byEffect[effect], ", "))
		}
		b.WriteByte('\n')
	}
}

// anchor is how a heading is linked to.
func anchor(heading string) string {
	return strings.ToLower(strings.ReplaceAll(heading, ".", ""))
}

func writeKind(b *strings.Builder, k Kind) error {
	about, told := k.About, k.Told
	fmt.Fprintf(b, "\n## %s\n\n%s (%s). %s\n%s\n\n", about.Name, about.Title.In(text.English), about.Title.In(text.Chinese),
		about.Description.In(text.English), about.Description.In(text.Chinese))
	effects := map[string]string{"pure": "nothing outside notices a repeated run", "idempotent": "a run may be repeated", "once": "a run is never repeated without knowing how it went"}
	effect := string(about.Effect)
	fmt.Fprintf(b, "Effect: `%s`, %s.\n", effect, effects[effect])
	writeEffects(b, told)
	if types := about.Needs.Credential; len(types) > 0 {
		may := "It needs"
		if about.Needs.Optional {
			may = "It can use"
		}
		fmt.Fprintf(b, "%s a credential of the type %s.\n", may, "`"+strings.Join(types, "` or `")+"`")
	}
	for _, also := range about.Needs.Also {
		fmt.Fprintf(b, "It needs: %s %s\n", also.In(text.English), also.In(text.Chinese))
	}
	if len(about.Older) > 0 {
		fmt.Fprintf(b, "Older files call it %s.\n", "`"+strings.Join(about.Older, "` or `")+"`")
	}
	if len(about.Inputs) > 0 {
		b.WriteString("\n| input | meaning | 含义 |\n| --- | --- | --- |\n")
		writeValues(b, "", told.Inputs)
	}
	b.WriteString("\n| output key | meaning | 含义 |\n| --- | --- | --- |\n")
	for i, key := range told.Keys {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key.Name, key.Meaning.En, key.Meaning.Zh)
		if same := SameFields(told.Keys, i); same != "" {
			fmt.Fprintf(b, "| `%s/…` | as `%s` | 同 `%s` |\n", key.Name, same, same)
			continue
		}
		writeValues(b, key.Name+"/", key.Fields)
	}
	b.WriteString("\n")
	if fields := k.Fields(); len(fields) > 0 {
		writeFields(b, fields)
	} else {
		b.WriteString("It has no configuration of its own.\n")
	}
	for i, group := range k.NeedGroups() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "One of %s must be set.\n", "`"+strings.Join(group, "`, `")+"`")
	}
	return writeExamples(b, told)
}

// writeExamples shows nodes to copy, each with what it is given and what comes of it.
func writeExamples(b *strings.Builder, k api.NodeKind) error {
	for _, e := range k.Examples {
		text, err := ReadExample(k, e)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		fmt.Fprintf(b, "\nExample: %s %s\n\n", e.Shows.En, e.Shows.Zh)
		b.WriteString("<!-- not run here: TestKinds_Examples runs it -->\n```yaml\n# node\n" + text.Node)
		for _, input := range text.Inputs {
			b.WriteString("---\n# input\n" + input)
		}
		for _, reply := range e.Replies {
			b.WriteString("# reply\n" + Indented("#   ", reply+"\n"))
		}
		b.WriteString("---\n# output\n" + text.Output + "```\n")
	}
	return nil
}

func writeValues(b *strings.Builder, prefix string, list []api.NodeValue) {
	for _, v := range list {
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, v.Name, v.Meaning.En, v.Meaning.Zh)
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
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", name, allowedIn(f), strings.ReplaceAll(usual, "|", "\\|"),
			f.Meaning.In(text.English), f.Meaning.In(text.Chinese))
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
	for _, c := range f.With {
		text += fmt.Sprintf("; only with `%s` %s", c.Field, "`"+strings.Join(c.Values, "` or `")+"`")
	}
	if len(f.OlderNames)+len(f.OlderValues) > 0 {
		text += "; also as " + "`" + strings.Join(slices.Concat(f.OlderNames, Quoted(f.OlderValues)), "`, `") + "`"
	}
	return text
}
