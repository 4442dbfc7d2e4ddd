package human

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"tandem/identity"
)

// Everything that is said of an answer that cannot be taken exists in Chinese: the sentences are read from the source, so that a new one
// without a translation is found.
func TestInLanguage_EverySentence(t *testing.T) {
	t.Parallel()
	verb := regexp.MustCompile(`%[a-z]`)
	sentences := 0
	for _, file := range []string{"answer.go", "answer_given.go"} {
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			if name != "add" && name != "wrong" && name != "wrongAnswer" && name != "Sprintf" {
				return true
			}
			for _, arg := range call.Args {
				lit, ok := arg.(*ast.BasicLit)
				if !ok || lit.Kind != gotoken.STRING || !strings.Contains(lit.Value, " ") {
					continue
				}
				format, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				sentences++
				message := verb.ReplaceAllStringFunc(format, func(v string) string {
					return map[string]string{"%q": `"x"`, "%d": "3", "%g": "1.5"}[v] + map[string]string{"%s": "a, b", "%v": "why"}[v]
				})
				if got := InLanguage("zh", message); !strings.ContainsFunc(got, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
					t.Errorf("%s: %q has no Chinese: %q", file, message, got)
				}
				if got := InLanguage("en", message); got != message {
					t.Errorf("%q became %q", message, got)
				}
			}
			return true
		})
	}
	if sentences < 25 {
		t.Errorf("only %d sentences were found: the source is read wrongly", sentences)
	}
	if got := InLanguage("zh", "Please name a cost centre."); got != "Please name a cost centre." {
		t.Errorf("what an author wrote became %q", got)
	}
	if got := InLanguage("zh", `"m" is none of s, l`); got != `"m" 不在可选项之中：s, l。` {
		t.Errorf("got %q", got)
	}
}

// Messages are in the language of who reads them, and what Tandem asks by itself with them; what an author wrote stays.
func TestSender_SpeaksTheReadersLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(newShelf(), nil)
		c.staff.set(identity.User{Workspace: "w", ID: "ann", Email: "ann@example.com", Settings: []byte(`{"language":"zh"}`)})
		c.staff.set(identity.User{Workspace: "w", ID: "bob", Email: "bob@example.com", Settings: []byte(`{"language":"en"}`)})
		ask(t, c.shelf, "a", 0, Request{Title: "Pay?", TimeoutSeconds: 600, Channel: Email, Language: "zh", Approvers: []string{"ann", "bob", "cid", "guest@example.org"}, Credential: "smtp-1"})
		c.Start()
		defer c.Close()
		pass(0)
		want := map[string]string{"ann@example.com": "zh", "bob@example.com": "en", "cid@example.com": "zh", "guest@example.org": "zh"}
		for _, m := range c.mail.messages(KindRequest) {
			first := map[string]string{"zh": "有一个问题等待您答复。", "en": "A question is waiting for your answer."}[want[m.To]]
			if m.Request.Language != want[m.To] || len(m.Lines) == 0 || m.Lines[0] != first || m.Request.Title != "Pay?" {
				t.Errorf("to %s in %q: %q, %q", m.To, m.Request.Language, m.Request.Title, m.Lines)
			}
			delete(want, m.To)
		}
		if len(want) > 0 {
			t.Errorf("nothing was sent to %v", want)
		}
	})
}

func TestRequest_In(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"", "bank/pay"} {
		i, err := Open(Question{Purpose: PurposeOutcomeUnknown, Tool: tool, Ask: "ask:1", Node: "n", Request: json.RawMessage(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRequest(i)
		if err != nil {
			t.Fatal(err)
		}
		zh := r.In("zh", i.Purpose)
		title := "已经完成了吗？"
		if tool != "" {
			title = tool + " 已经完成了吗？"
		}
		if zh.Title != title || !strings.Contains(zh.Description, "节点在执行中被打断") || zh.Options[0].Label != "已完成" || r.Options[0].Label != "done" {
			t.Errorf("in Chinese: %q, %q, %v; before %v", zh.Title, zh.Description, zh.Options, r.Options)
		}
		if back := zh.In("en", i.Purpose); back.Title != r.Title || back.Description != r.Description || back.Options[2].Label != "stop" {
			t.Errorf("back in English: %+v", back)
		}
	}
	own := Request{Language: "en", Title: "Go on with it?"}
	if got := own.In("zh", PurposeConfirm); got.Title != own.Title || got.Language != "zh" {
		t.Errorf("words of its own became %+v", got)
	}
}
