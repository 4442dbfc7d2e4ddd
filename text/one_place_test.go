package text_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"tandem/text"
)

// describes are the functions that describe something where it is written: kinds, their inputs and outputs, types of credentials. A
// description brings its Chinese with it, as the tag zh does, since an extension outside of this repository has no catalogue.
var describes = []string{ // read-only
	"text.Beside", "node.Says", "node.Meaning", "Meaning", "Says",
	"credential.Text", "credential.Secret", "credential.Choice", "credential.Address", "Text", "Secret", "Choice", "Address",
}

// readers are the files, or the packages, that read what people write in Chinese, with what they read; and those whose output is in two
// languages at once.
var readers = map[string]string{ // read-only
	"human/prose":                    "the marks of replies; their words are in its tables",
	"human/replies/classify.go":      "replies",
	"human/form/decision.go":         "what is filled in for yes and no",
	"memory/episode.go":              "spans of time",
	"memory/rules_find.go":           "names, places and statements",
	"builtin/toolset/approval.go":    "refusals of tools",
	"integration/mail/reply_auth.go": "subjects of automatic replies",
	"reference/pages.go":             "the reference of kinds has both languages side by side",
}

// TestOnePlace: what people read is said in English, and the words of other languages are in the catalogues; only descriptions bring
// their Chinese with them.
func TestOnePlace(t *testing.T) {
	t.Parallel()
	described, unread := 0, maps.Clone(readers)
	sources(t, ".go", func(name, file string) {
		if strings.HasSuffix(path.Dir(name), "test") {
			return // a suite: what it is made of is data
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, lit := range chinese(tree) {
			if lit.described {
				described++
				continue
			}
			if reader, ok := readerOf(name); ok {
				delete(unread, reader)
				continue
			}
			t.Errorf("%s: %s is said in place; say it in English with text.Of and put the Chinese into text/zh.json", fset.Position(lit.Pos()), lit.Value)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		t.Errorf("%s has nothing Chinese any more; take it out of the list", name)
	}
	if described < 500 {
		t.Errorf("only %d descriptions were found", described)
	}
}

// TestOnePlace_Cases: the rule sees what it is for.
func TestOnePlace_Cases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code            string
		said, described int
	}{
		{`var a = say("是", "yes")`, 1, 0},
		{`var a = fmt.Sprintf("还有 %d 天", 3)`, 1, 0},
		{`var a = "（" + b + "）"`, 2, 0},
		{`var a = c == '是' || strings.HasSuffix(b, "。")`, 0, 0},
		{`var a = strings.Join(list, "、")`, 1, 0},
		{`var a = node.Says("Delay", "延迟")`, 0, 1},
		{`var a = node.Says("Delay", "延迟").In("zh")`, 1, 0},
		{`var a = node.Meaning("n", "number", "How many.", "数量。")`, 0, 1},
		{`var a = node.Says("Delay", words("延迟"))`, 1, 0},
		{"type a struct { B int `json:\"b\" zh:\"等待多久。\"` }", 0, 1},
		{"type a struct { B int `json:\"等待\"` }", 1, 0},
		{`// 延迟
var a = text.Of("yes")`, 0, 0},
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+c.code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		said, described := 0, 0
		for _, lit := range chinese(tree) {
			if lit.described {
				described++
			} else {
				said++
			}
		}
		if said != c.said || described != c.described {
			t.Errorf("%s: %d said and %d described; want %d and %d", c.code, said, described, c.said, c.described)
		}
	}
}

// tongues are the files that name a language and cannot take it from this package, and why.
var tongues = map[string]string{ // read-only
	"fault/fault.go": "it is on the same floor as this package",
}

// TestOnePlace_Languages: the languages are named in this package. Tags of structs, where only a constant can stand, name all of them.
func TestOnePlace_Languages(t *testing.T) {
	t.Parallel()
	tags, unread := 0, maps.Clone(tongues)
	sources(t, ".go", func(name, file string) {
		if dir := path.Dir(name); dir == "text" || strings.HasSuffix(dir, "test") {
			return
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, lit := range languages(tree) {
			if _, ok := tongues[name]; ok {
				delete(unread, name)
				continue
			}
			t.Errorf("%s: %s names a language; take it from package text", fset.Position(lit.Pos()), lit.Value)
		}
		for _, tag := range choices(tree) {
			tags++
			got := strings.FieldsFunc(tag, func(r rune) bool { return r == ',' || r == '|' })
			if slices.Sort(got); !slices.Equal(got, text.Languages()) {
				t.Errorf("%s: the tag enum has %q; the languages are %q", name, tag, text.Languages())
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		t.Errorf("%s names no language any more; take it out of the list", name)
	}
	if tags < 5 {
		t.Errorf("only %d tags with languages were found", tags)
	}
}

// TestOnePlace_LanguagesCases: the rule sees what it is for.
func TestOnePlace_LanguagesCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code        string
		named, tags int
	}{
		{`var a = b == "zh" || b == "en"`, 2, 0},
		{"var a = `zh`", 1, 0},
		{"var a = `{\"enum\":[\"zh\",\"en\"]}`", 1, 0},
		{`var a = "{\"language\":\"zh\"}"`, 1, 0},
		{`var a = "zh or en: the language"`, 0, 0},
		{`var a = text.Chinese`, 0, 0},
		{"type a struct { B string `json:\"zh\" enum:\"zh,en\"` }", 0, 1},
		{"type a struct { B string `enum:\"low|high\"` }", 0, 0},
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+c.code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if named, tags := len(languages(tree)), len(choices(tree)); named != c.named || tags != c.tags {
			t.Errorf("%s: %d names and %d tags; want %d and %d", c.code, named, tags, c.named, c.tags)
		}
	}
}

// languages lists the texts of a file that are the name of a language, or JSON with Chinese among its values.
func languages(tree *ast.File) []*ast.BasicLit {
	tags, list := map[*ast.BasicLit]bool{}, []*ast.BasicLit(nil)
	ast.Inspect(tree, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			tags[x.Tag] = true
		case *ast.BasicLit:
			if x.Kind != token.STRING || tags[x] {
				return true
			}
			words, err := strconv.Unquote(x.Value)
			if err == nil && (slices.Contains(text.Languages(), words) || strings.Contains(words, strconv.Quote(text.Chinese))) {
				list = append(list, x)
			}
		}
		return true
	})
	return list
}

// choices lists the tags of a file that say which languages a field may have.
func choices(tree *ast.File) []string {
	var list []string
	ast.Inspect(tree, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil {
			return true
		}
		raw, err := strconv.Unquote(field.Tag.Value)
		if enum := reflect.StructTag(raw).Get("enum"); err == nil && regexp.MustCompile(`\b`+text.Chinese+`\b`).MatchString(enum) {
			list = append(list, enum)
		}
		return true
	})
	return list
}

// seeks are the functions of package strings that look for one text in another.
var seeks = regexp.MustCompile(`^strings\.(Has|Trim|Contains|Index|Cut|Split|Count)`)

// literalText is a text in quotes that has Chinese in it.
type literalText struct {
	*ast.BasicLit
	described bool
}

// chinese lists the texts of a file that have Chinese in them, and says which of them describe something. What package strings looks for in
// another text is not said to anybody, nor is a single character.
func chinese(tree *ast.File) []literalText {
	described, sought, list := map[ast.Node]bool{}, map[ast.Node]bool{}, []literalText(nil)
	ast.Inspect(tree, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Field:
			if x.Tag != nil && strings.Contains(x.Tag.Value, ` zh:"`) {
				described[x.Tag] = true
			}
		case *ast.SelectorExpr:
			if call, ok := x.X.(*ast.CallExpr); ok && x.Sel.Name == "In" {
				described[call] = true // it is put into words at once, so it describes nothing
			}
		case *ast.CallExpr:
			if seeks.MatchString(called(x.Fun)) {
				for _, arg := range x.Args[1:] {
					sought[arg] = true
				}
			}
			if !described[x] && slices.Contains(describes, called(x.Fun)) {
				for _, arg := range x.Args {
					described[arg] = true
				}
			}
		case *ast.BasicLit:
			if x.Kind == token.STRING && !sought[x] && strings.ContainsFunc(x.Value, isChinese) {
				list = append(list, literalText{x, described[x]})
			}
		}
		return true
	})
	return list
}

// called is the name of a function as a call has it.
func called(fun ast.Expr) string {
	switch x := fun.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		if pkg, ok := x.X.(*ast.Ident); ok {
			return pkg.Name + "." + x.Sel.Name
		}
	}
	return ""
}

// isChinese says whether a character is one of Chinese, or one of its punctuation marks.
func isChinese(r rune) bool {
	return unicode.Is(unicode.Han, r) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff65
}

// readerOf is the entry of the list that a file comes under.
func readerOf(name string) (string, bool) {
	for _, reader := range []string{name, path.Dir(name)} {
		if _, ok := readers[reader]; ok {
			return reader, true
		}
	}
	return "", false
}

// cutters are the files that cut bytes between characters in a way of their own: from the front, or where a stream is read in pieces.
var cutters = []string{"text/clip.go", "story/event_task.go", "builtin/file/processor.go", "host/hub.go"} // read-only

// TestOneCut: a text is cut to a length by this package, and nobody does it by hand.
func TestOneCut(t *testing.T) {
	t.Parallel()
	unused := slices.Clone(cutters)
	sources(t, ".go", func(name, file string) {
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if !cuts(n) {
				return true
			}
			if !slices.Contains(cutters, name) {
				t.Errorf("%s cuts a text by hand; use text.Head, First, Clip or Fit", fset.Position(n.Pos()))
			}
			unused = slices.DeleteFunc(unused, func(one string) bool { return one == name })
			return true
		})
	})
	if len(unused) > 0 {
		t.Errorf("%q cut nothing any more; take them out of the list", unused)
	}
}

// cuts says whether something looks for the border of a character, or takes the first runes of a text.
func cuts(n ast.Node) bool {
	switch x := n.(type) {
	case *ast.CallExpr:
		return called(x.Fun) == "utf8.RuneStart"
	case *ast.SliceExpr:
		call, ok := x.X.(*ast.CallExpr)
		if !ok || x.High == nil {
			return false
		}
		list, ok := call.Fun.(*ast.ArrayType)
		return ok && list.Len == nil && called(list.Elt) == "rune"
	}
	return false
}
