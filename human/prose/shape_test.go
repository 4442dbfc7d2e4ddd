package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// mostBranches is how many ways through a function there may be.
const mostBranches = 24

// TestSmallFunctions keeps the reader a number of small functions: what is many is data, in files.
func TestSmallFunctions(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := branches(f); n > mostBranches {
					t.Errorf("%s in %s has %d branches, more than %d", f.Name.Name, e.Name(), n, mostBranches)
				}
			}
		}
	}
}

// branches is the cyclomatic complexity of a function.
func branches(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// TestWordsInFiles keeps what replies are recognised by in the tables: the code has no word of a language, no Chinese character and no emoji
// in its texts, but for the names of what it looks for.
func TestWordsInFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range phrasesInCode(t, string(source)) {
			t.Errorf("%s: %q belongs into a table (words.txt, phrases.txt or acts.txt)", name, said)
		}
	}
}

// TestWordsInFiles_Cases: the rule sees what it is for.
func TestWordsInFiles_Cases(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		`func f(s string) bool { return s == "approved" }`:                         1,
		`func f(s string) bool { return s == "同意" }`:                               1,
		`func f(r rune) bool { return r == '批' || r == '👍' }`:                      2,
		`const words = "yes no maybe of course why not"`:                           1,
		`const word = "同意"`:                                                        1,
		"var x = regexp.MustCompile(`\\bdo you\\b`)":                               1,
		`func f(s string) bool { switch s { case "ok", "fine": }; return false }`:  2,
		`const reason = "too_long"`:                                                0,
		`var x = w.list("first names")`:                                            0,
		`var x = w.list("no such section")`:                                        1,
		"var x = regexp.MustCompile(`[a-z]{3,}|\\p{Han}+|^\\[x\\]$`)":              0,
		`func f() { panic("prose: the table cannot be read: " + "it is not so") }`: 0,
		`import "strings"; var mark = "◌ 〃 。？"`:                                    0,
	} {
		if got := phrasesInCode(t, "package x\n"+code); len(got) != want {
			t.Errorf("%s: %q are phrases, want %d", code, got, want)
		}
	}
}

// phrasesInCode are the literals of a source in which words, Chinese characters or emoji stand.
func phrasesInCode(t *testing.T, source string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("words.txt")
	if err != nil {
		t.Fatal(err)
	}
	word, name := regexp.MustCompile(`\pL{2,}`), regexp.MustCompile(`^<?[a-z_]+(?: [a-z]+)?[:>]? ?$`)
	var out []string
	var look func(declared bool) func(ast.Node) bool
	look = func(declared bool) func(ast.Node) bool {
		return func(node ast.Node) bool {
			switch x := node.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.GenDecl:
				if x.Tok == token.CONST && !declared {
					ast.Inspect(x, look(true))
					return false
				}
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "panic" {
					return false
				}
			case *ast.BasicLit:
				if x.Kind != token.STRING && x.Kind != token.CHAR {
					return false
				}
				text, err := strconv.Unquote(x.Value)
				if err != nil {
					t.Fatal(err)
				}
				plain := strings.ReplaceAll(text, `\p{Han}`, "")
				switch {
				case strings.ContainsFunc(plain, sign):
					out = append(out, text)
				case !word.MatchString(plain), declared && len(plain) < 20 && name.MatchString(plain):
				case strings.Contains(string(table), "["+text+" "), strings.Contains(string(table), " "+text+"]\n"): // kinds and names of sections
				default:
					out = append(out, text)
				}
			}
			return true
		}
	}
	ast.Inspect(file, look(false))
	return out
}

// sign says whether a character is a word of Chinese, or an emoji. The marks of what was taken out and of what is no text are none.
func sign(r rune) bool {
	return unicode.Is(unicode.Han, r) || unicode.Is(unicode.So, r) && r != '◌' && r != unicode.ReplacementChar
}
